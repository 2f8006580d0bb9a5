"""Whole models that PyTorch's exporters wrote, of both kinds: results beside PyTorch's own."""

import io
import logging
import warnings

import numpy as np
import pytest

import aclnn

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
pytest.importorskip("transformers")
pytest.importorskip("onnxscript")
import architectures  # noqa: E402

MODELS = ["BERT", "GPT-2", "Llama"]
WITH_CONVOLUTIONS = ["ViT", "MobileNetV2"]


class Plain(torch.nn.Module):
    """A model of one input and one output, without dicts and caches."""

    def __init__(self, model, role):
        super().__init__()
        self.model, self.role = model, role
        self.options = {"use_cache": False} if role == "input_ids" else {}

    def forward(self, x):
        named = dict(self.options)
        if self.role == "input_ids":
            named["attention_mask"] = torch.ones_like(x)
        return architectures.result_of(self.model(**{self.role: x}, **named))


def exported(name, dynamo):
    model, given = architectures.made(name)
    ((role, x),) = given.items()
    plain = Plain(model, role).eval()
    logging.disable(logging.WARNING)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = plain(x)
            if dynamo:
                made = torch.onnx.export(plain, (x,), dynamo=True, verbose=False)
                return made.model_proto, x.numpy(), wanted.numpy()
            buffer = io.BytesIO()
            torch.onnx.export(plain, (x,), buffer, dynamo=False, input_names=["x"])
            return onnx.load_from_string(buffer.getvalue()), x.numpy(), wanted.numpy()
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "torchscript"])
@pytest.mark.parametrize("name", MODELS)
def test_models_give_what_pytorch_gives(name, dynamo):
    proto, x, wanted = exported(name, dynamo)
    model = aclnn.from_onnx(proto)
    far = np.abs(model(x) - wanted).max() / np.abs(wanted).max()
    assert far < 1e-5


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "torchscript"])
@pytest.mark.parametrize("name", WITH_CONVOLUTIONS)
def test_models_with_convolutions_give_what_pytorch_gives(name, dynamo):
    proto, x, wanted = exported(name, dynamo)
    made = aclnn.from_onnx(proto)(x)
    assert np.abs(made - wanted).max() / np.abs(wanted).max() < 1e-4
