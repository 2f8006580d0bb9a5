"""The models that `measure_models.py` measures: blocks of a transformer, a step of decoding, architectures."""

from __future__ import annotations

import inspect
import io
from typing import Any

import torch
from torch import nn

# --- Blocks of a transformer ------------------------------------------------------------------------

WIDTH, HEADS, BLOCKS = 256, 4, 4
SIZES = ((1, 1), (1, 16), (1, 128), (4, 128))  # batch and length


class Block(nn.Module):
    """Attention and an MLP, with norms before each and residuals."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        made = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(made.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.after(x))))


def blocks() -> nn.Module:
    """Four blocks with random weights."""
    torch.manual_seed(0)
    return nn.Sequential(*[Block(WIDTH, HEADS) for _ in range(BLOCKS)]).eval()


def exported(model: nn.Module, given: torch.Tensor, dynamo: bool) -> bytes:
    """A model in ONNX, written by either exporter of PyTorch, for any batch and length."""
    if dynamo:
        sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}
        made = torch.onnx.export(
            model, (given,), dynamo=True, dynamic_shapes=(sizes,), verbose=False
        )
        return made.model_proto.SerializeToString()
    buffer = io.BytesIO()
    torch.onnx.export(
        model, (given,), buffer, dynamo=False, input_names=["x"],
        dynamic_axes={"x": {0: "batch", 1: "length"}},
    )  # fmt: skip
    return buffer.getvalue()


# --- A step of decoding -----------------------------------------------------------------------------

WIDE, ROOM, SIZE, INNER = 1024, 1024, 64, 2816


class Decoder(nn.Module):
    """A layer as Llama's, which decodes one token with a cache of keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.RMSNorm(WIDE, eps=1e-6), nn.RMSNorm(WIDE, eps=1e-6)
        self.qkv, self.out = nn.Linear(WIDE, 3 * WIDE, False), nn.Linear(WIDE, WIDE, False)
        self.gate, self.down = nn.Linear(WIDE, 2 * INNER, False), nn.Linear(INNER, WIDE, False)
        rates = 10000.0 ** (-torch.arange(0, SIZE, 2) / SIZE)
        angles = torch.outer(torch.arange(ROOM), rates).repeat(1, 2)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        for name in ("keys", "values"):
            self.register_buffer(name, torch.randn(1, WIDE // SIZE, ROOM, SIZE))

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(self.before(x)).view(1, 1, 3, WIDE // SIZE, SIZE)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        self.keys.index_copy_(2, position, self._rotated(k, position))
        self.values.index_copy_(2, position, v)
        seen = (torch.arange(ROOM) <= position)[None, None, None]
        made = nn.functional.scaled_dot_product_attention(
            self._rotated(q, position), self.keys, self.values, seen
        )
        x = x + self.out(made.transpose(1, 2).reshape(1, 1, WIDE))
        gate, up = self.gate(self.after(x)).chunk(2, -1)
        return x + self.down(nn.functional.silu(gate) * up)

    def _rotated(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, -1)
        turned = torch.cat([-second, first], -1)
        return x * self.cos[position] + turned * self.sin[position]


def decoder(dtype: torch.dtype) -> nn.Module:
    """A layer with random weights."""
    torch.manual_seed(0)
    return Decoder().to(dtype).eval()


# --- Architectures ----------------------------------------------------------------------------------

TEXT = [
    "Albert", "Bert", "BigBird", "Bloom", "CodeGen", "Cohere", "ConvBert", "Deberta",
    "DebertaV2", "DistilBert", "Electra", "Falcon", "FNet", "Gemma", "Gemma2", "GPT2",
    "GPTBigCode", "GPTNeo", "GPTNeoX", "Granite", "Llama", "Mamba", "Mistral", "Mixtral",
    "MobileBert", "MPNet", "Mpt", "Nystromformer", "OPT", "Phi", "Phi3", "Qwen2", "Qwen3",
    "RoFormer", "Roberta", "SqueezeBert", "StableLm", "Starcoder2", "XLM",
]  # fmt: skip
PAIRS = ["Bart", "T5"]
VISION = ["Beit", "ConvNext", "Dinov2", "MobileNetV2", "ResNet", "Swin", "ViT"]
ARCHITECTURES = [*TEXT, *PAIRS, *VISION]
WIDTHS = (64, 256)
SHAPES = ((1, 16), (4, 32), (2, 128))  # batch and length, of pictures the batch alone

_IMAGE = {"ConvNext": 64, "MobileNetV2": 64, "ResNet": 64, "Swin": 64}  # others 32


def _own_options(name: str, width: int) -> dict[str, Any]:
    """What the configurations of convolutional models are given instead."""
    sizes = [width // 4, width // 2, width, 2 * width]
    found: dict[str, Any] = {
        "ConvNext": {"depths": [1, 1, 1, 1], "hidden_sizes": sizes},
        "MobileNetV2": {"depth_multiplier": width / 256},
        "ResNet": {"depths": [1, 1, 1, 1], "embedding_size": width // 4, "hidden_sizes": sizes},
        "Swin": {"depths": [1, 1], "embed_dim": width // 2, "num_heads": [2, 4], "window_size": 4},
    }
    return found.get(name, {})


def _options(width: int) -> dict[str, Any]:
    """What configurations call their sizes, and everything random switched off."""
    sizes = dict.fromkeys(
        ("hidden_size", "n_embd", "d_model", "dim", "embedding_size", "word_embed_proj_dim", "emb_dim"),
        width,
    )  # fmt: skip
    inner = dict.fromkeys(
        ("intermediate_size", "encoder_ffn_dim", "decoder_ffn_dim", "hidden_dim", "ffn_dim", "d_ff",
         "n_inner", "intermediate_dim"),
        2 * width,
    )  # fmt: skip
    layers = dict.fromkeys(
        ("num_hidden_layers", "n_layer", "encoder_layers", "decoder_layers", "num_layers", "n_layers",
         "num_decoder_layers"),
        2,
    )  # fmt: skip
    heads = dict.fromkeys(
        ("num_attention_heads", "n_head", "encoder_attention_heads", "decoder_attention_heads",
         "n_heads", "num_heads"),
        4,
    )  # fmt: skip
    dropout = dict.fromkeys(
        ("hidden_dropout_prob", "attention_probs_dropout_prob", "attention_dropout", "hidden_dropout",
         "dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop", "resid_dropout", "embed_dropout",
         "dropout_rate", "activation_dropout", "drop_path_rate"),
        0.0,
    )  # fmt: skip
    tokens = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), 0)
    others = {
        "vocab_size": 100, "max_position_embeddings": 256, "n_positions": 256, "num_key_value_heads": 2,
        "head_dim": width // 4, "d_kv": width // 4, "rotary_dim": 8, "use_cache": False,
        "num_experts": 4, "num_local_experts": 4, "state_size": 4, "time_step_rank": 4,
        "attention_types": [[["global", "local"], 1]], "attention_type": "original_full",
        "max_seq_len": 256, "bottleneck_size": 32, "intra_bottleneck_size": 32, "image_size": 32,
        "patch_size": 8,
    }  # fmt: skip
    return sizes | inner | layers | heads | dropout | tokens | others


# What configurations cannot have together with the rest, tried in this order.
_WITHOUT: tuple[tuple[str, ...], ...] = (
    (), ("head_dim",), ("num_key_value_heads",), ("num_heads",)
)  # fmt: skip


def architecture(name: str, width: int) -> nn.Module:
    """A model of transformers with random weights and few layers."""
    import transformers

    kind = getattr(transformers, f"{name}Config")
    options = _own_options(name, width)
    if not options:
        known = {*vars(kind()), *inspect.signature(kind.__init__).parameters, *kind.attribute_map}
        options = {key: value for key, value in _options(width).items() if key in known}
    for left_out in _WITHOUT:
        torch.manual_seed(0)
        try:
            config = kind(**{k: v for k, v in options.items() if k not in left_out})
            return getattr(transformers, f"{name}Model")(config).eval()
        except (TypeError, ValueError, AttributeError) as error:
            failed = error
    raise failed


def inputs_of(name: str, batch: int, length: int) -> dict[str, torch.Tensor]:
    """What a model is called with."""
    torch.manual_seed(1)
    if name in VISION:
        size = _IMAGE.get(name, 32)
        return {"pixel_values": torch.randn(batch, 3, size, size)}
    given = {"input_ids": torch.randint(1, 100, (batch, length))}
    if name in PAIRS:
        given["decoder_input_ids"] = torch.randint(1, 100, (batch, length))
    return given
