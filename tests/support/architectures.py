"""Models with random weights and small configurations, as people build them, and what they are called with.

Those of transformers are there where it is installed; `NEEDS` names the module that each comes from.
"""

from __future__ import annotations

import torch
from torch import nn


class Squeeze(nn.Module):
    """A weight for each channel from the mean of all of them."""

    def __init__(self, channels: int, hidden: int):
        super().__init__()
        self.down = nn.Conv2d(channels, hidden, 1)
        self.up = nn.Conv2d(hidden, channels, 1)

    def forward(self, x):
        weights = self.down(nn.functional.adaptive_avg_pool2d(x, 1))
        return x * nn.functional.hardsigmoid(self.up(nn.functional.relu(weights)))


class Inverted(nn.Module):
    """MobileNetV3's block: wide inside, one filter for each channel, and back."""

    def __init__(self, channels: int, wide: int, out: int, stride: int, activation: type):
        super().__init__()
        self.residual = stride == 1 and channels == out
        self.layers = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
            activation(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            activation(),
            Squeeze(wide, wide // 4),
            nn.Conv2d(wide, out, 1, bias=False),
            nn.BatchNorm2d(out),
        )

    def forward(self, x):
        made = self.layers(x)
        return x + made if self.residual else made


def mobilenet_v3():
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.Hardswish(),
        Inverted(16, 32, 16, 1, nn.ReLU),
        Inverted(16, 64, 24, 2, nn.ReLU),
        Inverted(24, 96, 24, 1, nn.Hardswish),
        Inverted(24, 96, 40, 2, nn.Hardswish),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(40, 64),
        nn.Hardswish(),
        nn.Linear(64, 10),
    )
    return model, {"input": torch.randn(2, 3, 64, 64)}


def words(length=16):
    return {"input_ids": torch.randint(0, 100, (2, length))}


def bert():
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=100,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return BertModel(config), words()


def gpt2():
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(
        vocab_size=100,
        n_embd=64,
        n_layer=2,
        n_head=4,
        n_positions=64,
        use_cache=False,
        bos_token_id=0,
        eos_token_id=0,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    return GPT2Model(config), words()


def llama():
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=100,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        use_cache=False,
    )
    return LlamaModel(config), words()


def vit():
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        image_size=32,
        patch_size=8,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return ViTModel(config), {"pixel_values": torch.randn(2, 3, 32, 32)}


def mobilenet_v2():
    from transformers import MobileNetV2Config, MobileNetV2Model

    config = MobileNetV2Config(image_size=64, depth_multiplier=0.35)
    return MobileNetV2Model(config), {"pixel_values": torch.randn(2, 3, 64, 64)}


# --- Those that keep a cache ------------------------------------------------------------------------

CACHED = {  # whether they use it: without, their graphs are others
    "Falcon": True,
    "GPT2": True,
    "GPTNeoX": False,
    "Llama": True,
    "Mamba": False,
    "OPT": True,
}
NO_DROPOUT = dict.fromkeys(
    (
        "attention_dropout", "attn_pdrop", "dropout", "dropout_rate", "embd_pdrop", "hidden_dropout",
        "resid_pdrop",
    ),
    0.0,
)  # fmt: skip
SMALL = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
}
TOKENS = {"vocab_size": 100, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
OWN = {
    "GPT2": {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32},
    "Mamba": {"state_size": 4, "time_step_rank": 4},
    "OPT": {"ffn_dim": 32, "word_embed_proj_dim": 16, "max_position_embeddings": 32},
}  # fmt: skip


def cached(name):
    """A model of transformers by name, and what it is called with."""
    import transformers

    torch.manual_seed(0)
    options = TOKENS | SMALL | NO_DROPOUT | {"use_cache": CACHED[name]} | OWN.get(name, {})
    config = getattr(transformers, f"{name}Config")(**options)
    return getattr(transformers, f"{name}Model")(config), words(7)


ARCHITECTURES = {
    "BERT": bert,
    "GPT-2": gpt2,
    "Llama": llama,
    "ViT": vit,
    "MobileNetV2": mobilenet_v2,
    "MobileNetV3": mobilenet_v3,
}
NEEDS = dict.fromkeys(ARCHITECTURES, "transformers") | {"MobileNetV3": "torch"}


def made(name):
    """A model for inference, and its arguments by name."""
    torch.manual_seed(0)
    model, given = ARCHITECTURES[name]()
    for one in model.modules():
        if isinstance(one, nn.BatchNorm2d):
            one.momentum = 1.0  # statistics of what the model is given, or nothing reaches the end
    with torch.no_grad():
        model.train()(**given)
    return model.eval(), given


def tensors_of(output):
    """All tensors of an output, those of caches too, in a fixed order."""
    if isinstance(output, torch.Tensor):
        return [output]
    if isinstance(output, dict):
        output = list(output.values())
    elif type(output).__module__.startswith("transformers"):
        output = [one for _, one in sorted(vars(output).items())]
    several = output if isinstance(output, list | tuple) else ()
    return [tensor for one in several for tensor in tensors_of(one)]


def result_of(output):
    """The tensor that a model gives."""
    return output if isinstance(output, torch.Tensor) else output.last_hidden_state
