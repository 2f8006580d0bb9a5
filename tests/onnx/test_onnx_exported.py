"""Small models that PyTorch's exporters write, of both kinds and several versions, beside PyTorch."""

import io
import logging
import warnings

import numpy as np
import pytest

import aclnn

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
nn, F = torch.nn, torch.nn.functional


def of(function):
    """A function as a module without weights."""
    return type("Plain", (nn.Module,), {"forward": lambda self, *given: function(*given)})()


class Rows(nn.Module):
    """The first result of a recurrent layer."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


class Heads(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.project, self.options = nn.Linear(16, 48), options

    def forward(self, x):
        parts = self.project(x).unflatten(-1, (3, 4, 4)).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(*parts, **self.options).transpose(1, 2).flatten(2)


class Squeezed(nn.Module):
    """A convolution whose channels are weighted by what all of them hold."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 2, 1), nn.Conv2d(2, 4, 1)

    def forward(self, x):
        share = self.second(F.silu(self.first(x.mean((2, 3), keepdim=True))))
        return x * share.sigmoid()


def root_mean(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


X, IMAGE, IDS = (2, 5, 16), (2, 4, 9, 8), "ids"
# The module, its input, and versions that the older exporter writes it in.
MODELS = {
    "linear": (nn.Linear(16, 8), X, (17,)),
    "perceptron": (nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)), X, (20,)),
    "tanh gelu": (nn.Sequential(nn.Linear(16, 32), nn.GELU("tanh")), X, (20,)),
    "silu": (nn.Sequential(nn.Linear(16, 32), nn.SiLU()), X, (11,)),
    "gated": (of(lambda x: F.silu(x[..., :8]) * x[..., 8:]), X, (17,)),
    "layer norm": (nn.LayerNorm(16), X, (11,)),
    "rms norm": (of(root_mean), X, (17,)),
    "group norm": (nn.GroupNorm(2, 4), IMAGE, (11,)),
    "batch norm": (nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.ReLU()), IMAGE, (17,)),
    "instance norm": (nn.InstanceNorm2d(4), IMAGE, (11,)),
    "heads": (Heads(), X, (17,)),
    "causal heads": (Heads(is_causal=True), X, (14,)),
    "embedding": (nn.Embedding(10, 6), IDS, (17,)),
    "lstm": (Rows(nn.LSTM(16, 8, 2, batch_first=True)), X, (11,)),
    "gru": (Rows(nn.GRU(16, 8, bidirectional=True)), X, (17,)),
    "rnn": (Rows(nn.RNN(16, 8)), X, (11,)),
    "depthwise": (nn.Conv2d(4, 4, 3, padding=1, groups=4), IMAGE, (17,)),
    "dilated": (nn.Conv2d(4, 6, 3, stride=2, dilation=2, padding=2), IMAGE, (11,)),
    "line": (nn.Sequential(nn.Conv1d(5, 6, 3, padding=1), nn.MaxPool1d(2)), X, (17,)),
    "turned": (nn.ConvTranspose2d(4, 3, 2, stride=2), IMAGE, (11,)),
    "squeezed": (Squeezed(), IMAGE, (17,)),
    "pools": (of(lambda x: F.max_pool2d(x, 2) + F.avg_pool2d(x, 2)), IMAGE, (11,)),
    "adaptive": (nn.AdaptiveAvgPool2d(1), IMAGE, (17,)),
    "enlarged": (of(lambda x: F.interpolate(x, scale_factor=2, mode="nearest")), IMAGE, (11,)),
    "bilinear": (of(lambda x: F.interpolate(x, size=(5, 13), mode="bilinear")), IMAGE, (17,)),
    "bicubic": (of(lambda x: F.interpolate(x, size=(12, 13), mode="bicubic")), IMAGE, (11,)),
    "shuffled": (nn.PixelShuffle(2), IMAGE, (17,)),
    "reflected": (nn.ReflectionPad2d(2), IMAGE, (11,)),
    "einsum": (of(lambda x: torch.einsum("bij,bkj->bik", x, x)), X, (17,)),
    "best": (of(lambda x: torch.topk(x, 3, -1).values), X, (11,)),
    "sums": (of(lambda x: torch.cumsum(x, 1) + x.amax(-1, keepdim=True)), X, (17,)),
    "gathered": (of(lambda x: torch.gather(x, 1, x.argsort(1)[:, :2])), X, (11,)),
    "chosen": (of(lambda x: torch.where(x > 0, x.exp(), x.clamp(-1, 0))), X, (17,)),
}  # fmt: skip
EVERY = [
    (name, version)
    for name, (_, _, versions) in MODELS.items()
    for version in ("dynamo", *versions)
]


def exported(module, x, version):
    logging.disable(logging.WARNING)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if version == "dynamo":
                return torch.onnx.export(module, (x,), dynamo=True, verbose=False).model_proto
            buffer = io.BytesIO()
            torch.onnx.export(module, (x,), buffer, dynamo=False, opset_version=version)
            return onnx.load_from_string(buffer.getvalue())
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "version"), EVERY, ids=[f"{name}-{n}" for name, n in EVERY])
def test_exported_models_give_what_pytorch_gives(name, version):
    module, shape, _ = MODELS[name]
    torch.manual_seed(0)
    x = torch.arange(8).reshape(2, 4) if shape == IDS else torch.randn(shape)
    module = module.eval()
    model = aclnn.from_onnx(exported(module, x, version), fallback="refuse")
    made = model(x.numpy())
    with torch.no_grad():
        wanted = module(x).numpy()
    assert (made.shape, made.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-5 * max(1, np.abs(wanted).max()))
    assert {*model.report().counts} <= {"kernel", "body", "folded", "control"}
