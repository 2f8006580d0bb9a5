"""The models that `measure_onnx.py` measures: architectures that people run from ONNX files, with random weights."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import measured_models
import numpy as np
import torch
from torch import nn
from torch.nn import functional

Arrays = dict[str, np.ndarray]
Model = tuple[bytes, Arrays]  # a file and what it is run with

# --- Convolutional models -----------------------------------------------------------------------------


def layers(
    inner: int, outer: int, kernel: int, stride: int = 1, groups: int = 1,
    activation: nn.Module | None = None,
) -> nn.Sequential:  # fmt: skip
    """Convolution, batch norm and activation."""
    made: list[nn.Module] = [
        nn.Conv2d(inner, outer, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outer),
    ]
    return nn.Sequential(*made, *([activation] if activation else []))


class Bottleneck(nn.Module):
    """A 3 x 3 convolution between products, beside a shortcut."""

    def __init__(self, inner: int, width: int, stride: int):
        super().__init__()
        self.calls = nn.Sequential(
            layers(inner, width, 1, activation=nn.ReLU()),
            layers(width, width, 3, stride, activation=nn.ReLU()),
            layers(width, 4 * width, 1),
        )
        is_plain = stride == 1 and inner == 4 * width
        self.short = nn.Identity() if is_plain else layers(inner, 4 * width, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.calls(x) + self.short(x))


def resnet50() -> nn.Module:
    made: list[nn.Module] = [layers(3, 64, 7, 2, activation=nn.ReLU()), nn.MaxPool2d(3, 2, 1)]
    inner = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for n in range(count):
            made.append(Bottleneck(inner, width, stride if n == 0 else 1))
            inner = 4 * width
    return nn.Sequential(*made, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, 1000))


class Squeeze(nn.Module):
    """Channels scaled by what their means say."""

    def __init__(self, width: int, inner: int, activation: nn.Module, gate: nn.Module):
        super().__init__()
        self.calls = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, inner, 1), activation,
            nn.Conv2d(inner, width, 1), gate,
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.calls(x)


class Inverted(nn.Module):
    """A wide depthwise convolution between narrow products."""

    def __init__(
        self, inner: int, wide: int, outer: int, kernel: int, stride: int, activation: nn.Module,
        squeeze: nn.Module | None = None,
    ):  # fmt: skip
        super().__init__()
        made = [layers(inner, wide, 1, activation=activation)] if wide != inner else []
        made.append(layers(wide, wide, kernel, stride, wide, activation))
        made += [squeeze] if squeeze else []
        self.calls = nn.Sequential(*made, layers(wide, outer, 1))
        self.is_residual = stride == 1 and inner == outer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.calls(x) if self.is_residual else self.calls(x)


def _pooled(features: list[nn.Module], inner: int) -> nn.Module:
    return nn.Sequential(
        *features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, 1000)
    )  # fmt: skip


def mobilenet_v2() -> nn.Module:
    made: list[nn.Module] = [layers(3, 32, 3, 2, activation=nn.ReLU6())]
    inner = 32
    for times, outer, count, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):  # fmt: skip
        for n in range(count):
            made.append(
                Inverted(inner, inner * times, outer, 3, stride if n == 0 else 1, nn.ReLU6())
            )
            inner = outer
    return _pooled([*made, layers(inner, 1280, 1, activation=nn.ReLU6())], 1280)


def mobilenet_v3() -> nn.Module:
    made: list[nn.Module] = [layers(3, 16, 3, 2, activation=nn.Hardswish())]
    inner = 16
    for kernel, wide, outer, is_squeezed, is_hard, stride in (
        (3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2),
        (5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1),
        (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1),
        (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1),
    ):  # fmt: skip
        activation = nn.Hardswish() if is_hard else nn.ReLU()
        squeeze = Squeeze(wide, wide // 4, nn.ReLU(), nn.Hardsigmoid()) if is_squeezed else None
        made.append(Inverted(inner, wide, outer, kernel, stride, activation, squeeze))
        inner = outer
    return _pooled([*made, layers(inner, 960, 1, activation=nn.Hardswish())], 960)


def efficientnet_b0() -> nn.Module:
    made: list[nn.Module] = [layers(3, 32, 3, 2, activation=nn.SiLU())]
    inner = 32
    for times, kernel, stride, outer, count in (
        (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3),
        (6, 5, 2, 192, 4), (6, 3, 1, 320, 1),
    ):  # fmt: skip
        for n in range(count):
            wide = inner * times
            squeeze = Squeeze(wide, inner // 4, nn.SiLU(), nn.Sigmoid())
            made.append(
                Inverted(inner, wide, outer, kernel, stride if n == 0 else 1, nn.SiLU(), squeeze)
            )
            inner = outer
    return _pooled([*made, layers(inner, 1280, 1, activation=nn.SiLU())], 1280)


class UNet(nn.Module):
    """Five levels, each read again on the way up."""

    def __init__(self, width: int = 32):
        super().__init__()

        def pair(inner: int, outer: int) -> nn.Sequential:
            one = layers(inner, outer, 3, activation=nn.ReLU())
            return nn.Sequential(one, layers(outer, outer, 3, activation=nn.ReLU()))

        widths = [width * 2**n for n in range(5)]
        self.down = nn.ModuleList(map(pair, [3, *widths[:-1]], widths))
        self.wider = nn.ModuleList(
            [nn.ConvTranspose2d(2 * one, one, 2, 2) for one in reversed(widths[:-1])]
        )
        self.up = nn.ModuleList([pair(2 * one, one) for one in reversed(widths[:-1])])
        self.last = nn.Conv2d(width, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = []
        for n, one in enumerate(self.down):
            x = one(functional.max_pool2d(x, 2) if n else x)
            seen.append(x)
        for wider, up, before in zip(self.wider, self.up, reversed(seen[:-1]), strict=True):
            x = up(torch.cat([before, wider(x)], 1))
        return self.last(x)


class Detector(nn.Module):
    """Boxes and scores of 80 classes at three scales, as YOLO makes them."""

    def __init__(self, width: int = 32):
        super().__init__()

        def fewer(inner: int, outer: int) -> nn.Sequential:
            return layers(inner, outer, 3, 2, activation=nn.SiLU())

        def mixed(wide: int) -> nn.Sequential:
            return nn.Sequential(
                layers(wide, wide // 2, 1, activation=nn.SiLU()),
                layers(wide // 2, wide, 3, activation=nn.SiLU()),
            )

        self.stem = nn.Sequential(fewer(3, width), fewer(width, 2 * width), mixed(2 * width))
        self.stages = nn.ModuleList([
            nn.Sequential(fewer(width * 2**n, width * 2 ** (n + 1)), mixed(width * 2 ** (n + 1)))
            for n in range(1, 4)
        ])  # fmt: skip
        self.heads = nn.ModuleList([
            nn.Sequential(
                layers(width * 2 ** (n + 1), 64, 3, activation=nn.SiLU()), nn.Conv2d(64, 84, 1)
            )
            for n in range(1, 4)
        ])  # fmt: skip

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.stem(x)
        found = []
        for stage, head in zip(self.stages, self.heads, strict=True):
            x = stage(x)
            found.append(head(x).flatten(2))
        both = torch.cat(found, 2)
        return both[:, :4].sigmoid().transpose(1, 2), both[:, 4:].sigmoid()


def picture(model: nn.Module, size: int, batch: int = 1) -> Model:
    """A model of pictures, whose batch norms know of ordinary numbers."""
    for one in model.modules():
        if isinstance(one, nn.BatchNorm2d):
            nn.init.uniform_(one.weight, 0.6, 1.0)
            nn.init.uniform_(one.running_var, 0.6, 1.0)
            nn.init.normal_(one.bias, 0.0, 0.1)
        elif isinstance(one, nn.Conv2d):
            nn.init.kaiming_normal_(one.weight)
    return exported(model, {"x": torch.randn(batch, 3, size, size)})


def exported(model: nn.Module, given: dict[str, torch.Tensor], opset: int = 17) -> Model:
    """A model as PyTorch's exporter writes it, for the sizes of what is given."""
    buffer = io.BytesIO()
    torch.onnx.export(
        model.eval(), tuple(given.values()), buffer, dynamo=False, opset_version=opset,
        input_names=list(given),
    )  # fmt: skip
    return buffer.getvalue(), {key: one.numpy() for key, one in given.items()}


# --- Transformers -----------------------------------------------------------------------------------


class RootMeanSquare(nn.Module):
    """RMS norm in the pieces that exporters write."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Cached(nn.Module):
    """A layer that decodes with a cache, as GPT-2's, or with RMS norm, rotation and a gate, as Llama's."""

    def __init__(self, width: int, heads: int, is_llama: bool, reads: bool = False):
        super().__init__()
        norm = RootMeanSquare if is_llama else nn.LayerNorm
        self.heads, self.is_llama = heads, is_llama
        self.before, self.after = norm(width), norm(width)
        self.qkv, self.out = (
            nn.Linear(width, 3 * width, not is_llama),
            nn.Linear(width, width, not is_llama),
        )
        inner = 8 * width // 3 // 64 * 64 if is_llama else 4 * width
        self.up = nn.Linear(width, 2 * inner if is_llama else inner, not is_llama)
        self.down = nn.Linear(inner, width, not is_llama)
        self.crossed = nn.MultiheadAttention(width, heads, batch_first=True) if reads else None

    def forward(
        self, x: torch.Tensor, past: torch.Tensor, seen: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        if self.is_llama:
            q, k = _rotated(q), _rotated(k)
        both = torch.cat([past, torch.stack([k, v])], 3)
        mask = torch.ones(length, length + past.shape[3], dtype=torch.bool).tril(past.shape[3])
        made = functional.scaled_dot_product_attention(q, both[0], both[1], mask)
        x = x + self.out(made.transpose(1, 2).reshape(batch, length, width))
        if self.crossed is not None and seen is not None:
            x = x + self.crossed(x, seen, seen, need_weights=False)[0]
        wide = self.up(self.after(x))
        if self.is_llama:
            gate, wide = wide.chunk(2, -1)
            return x + self.down(functional.silu(gate) * wide), both
        return x + self.down(functional.gelu(wide, approximate="tanh")), both


def _rotated(x: torch.Tensor) -> torch.Tensor:
    """Turned by the angles of the first positions, constants of the model."""
    length, size = x.shape[2:]
    angles = np.outer(np.arange(int(length)) + 1, 1e4 ** (-np.arange(0, int(size), 2) / int(size)))
    turn = np.tile(angles, 2)
    cos, sin = (torch.from_numpy(one.astype(np.float32)) for one in (np.cos(turn), np.sin(turn)))
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


class Decoder(nn.Module):
    def __init__(
        self, words: int, width: int, heads: int, count: int, is_llama: bool, reads: bool = False
    ):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.layers = nn.ModuleList([Cached(width, heads, is_llama, reads) for _ in range(count)])
        self.norm = RootMeanSquare(width) if is_llama else nn.LayerNorm(width)
        self.last = nn.Linear(width, words, False)

    def forward(
        self, words: torch.Tensor, past: torch.Tensor, seen: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x, found = self.words(words), []
        for n, layer in enumerate(self.layers):
            x, both = layer(x, past[n], seen)
            found.append(both)
        return self.last(self.norm(x)), torch.stack(found)


class Encoder(nn.Module):
    """Blocks over words, patches of a picture, or sound."""

    def __init__(self, first: nn.Module, width: int, heads: int, count: int):
        super().__init__()
        blocks = [measured_models.Block(width, heads) for _ in range(count)]
        self.calls = nn.Sequential(first, *blocks, nn.LayerNorm(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.calls(x)


class Rows(nn.Module):
    """Positions of a convolution's result as rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(2).transpose(1, 2)


def decoded(
    words: int, width: int, heads: int, count: int, length: int, is_llama: bool = False,
    sound: int = 0,
) -> Model:  # fmt: skip
    """So many words behind a cache of 128, or none."""
    given = {
        "words": torch.randint(0, words, (1, length)),
        "past": torch.randn(count, 2, 1, heads, 128 if length == 1 else 0, width // heads),
    }
    if sound:
        given["seen"] = torch.randn(1, sound, width)
    return exported(Decoder(words, width, heads, count, is_llama, bool(sound)), given)


def bert() -> Model:
    return exported(
        Encoder(nn.Embedding(30522, 768), 768, 12, 12), {"x": torch.randint(0, 30522, (1, 128))}
    )


def vit() -> Model:
    first = nn.Sequential(nn.Conv2d(3, 768, 16, 16), Rows())
    return exported(Encoder(first, 768, 12, 12), {"x": torch.randn(1, 3, 224, 224)})


def whisper() -> Model:
    first = nn.Sequential(
        nn.Conv1d(80, 384, 3, 1, 1), nn.GELU(), nn.Conv1d(384, 384, 3, 2, 1), nn.GELU(), Rows()
    )
    return exported(Encoder(first, 384, 6, 4), {"x": torch.randn(1, 80, 3000)})


def blocks(batch: int, length: int) -> Model:
    return exported(
        measured_models.blocks(), {"x": torch.randn(batch, length, measured_models.WIDTH)}
    )


# --- Others -----------------------------------------------------------------------------------------


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers, self.last = nn.LSTM(128, 256, 2, batch_first=True), nn.Linear(256, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.layers(x)[0])


def detection() -> Model:
    """Boxes and scores, and the standard's NonMaxSuppression of them."""
    import onnx

    content, given = picture(Detector(), 320)
    model = onnx.load_from_string(content)
    graph = model.graph
    numbers = {"most": np.int64([100]), "overlap": np.float32([0.45]), "least": np.float32([0.6])}
    graph.initializer.extend([onnx.numpy_helper.from_array(a, name) for name, a in numbers.items()])
    names = [one.name for one in graph.output]
    graph.node.append(onnx.helper.make_node("NonMaxSuppression", [*names, *numbers], ["chosen"]))
    del graph.output[:]
    graph.output.append(onnx.helper.make_tensor_value_info("chosen", 7, ["n", 3]))
    return model.SerializeToString(), given


def quantized() -> Model:
    """ResNet-50 with int8 weights for each channel, as ONNX Runtime's quantiser writes it."""
    import tempfile
    from pathlib import Path

    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):
        def __init__(self, given: Arrays):
            self.left = [given]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    content, given = picture(resnet50(), 224)
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder, "before.onnx"), Path(folder, "after.onnx")
        before.write_bytes(content)
        quantization.quantize_static(
            before,
            after,
            Reader(given),
            quant_format=quantization.QuantFormat.QDQ,
            per_channel=True,
        )
        return after.read_bytes(), given


def four_bits() -> Model:
    """A Llama of 100 million weights, whose products read blocks of 32 weights of four bits."""
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    content, given = decoded(8192, 768, 12, 12, 1, True)
    made = MatMulNBitsQuantizer(onnx.load_from_string(content), block_size=32)
    made.process()
    return made.model.model.SerializeToString(), given


MODELS: dict[str, Callable[[], Model]] = {
    **{
        f"four blocks, {batch} x {length}": lambda batch=batch, length=length: blocks(batch, length)
        for batch, length in measured_models.SIZES
    },
    "BERT-base": bert,
    "GPT-2, a token": lambda: decoded(50257, 768, 12, 12, 1),
    "GPT-2, 128 tokens": lambda: decoded(50257, 768, 12, 12, 128),
    "ViT-B/16": vit,
    "ResNet-50": lambda: picture(resnet50(), 224),
    "MobileNetV2": lambda: picture(mobilenet_v2(), 224),
    "MobileNetV3": lambda: picture(mobilenet_v3(), 224),
    "EfficientNet-B0": lambda: picture(efficientnet_b0(), 224),
    "U-Net": lambda: picture(UNet(), 128),
    "LSTM": lambda: exported(Lstm(), {"x": torch.randn(1, 100, 128)}),
    "detection": detection,
    "Whisper-tiny, encoder": whisper,
    "Whisper-tiny, decoder": lambda: decoded(51865, 384, 6, 4, 1, sound=1500),
    "ResNet-50, QDQ": quantized,
    "Llama, four bits": four_bits,
}
