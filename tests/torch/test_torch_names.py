"""Names and order of parameters, compared with PyTorch's functions of the same name."""

import inspect
import re
from pathlib import Path

import pytest

import aclnn
from aclnn.acl.arguments import parameter_meant
from aclnn.operators import REGISTRY

torch = pytest.importorskip("torch")

# Parameters that say where or how PyTorch makes a tensor, or that it has deprecated.
OF_PYTORCH = {
    "device", "generator", "inplace", "layout", "memory_format", "out", "pin_memory", "reduce",
    "requires_grad", "size_average", "_stacklevel",
}  # fmt: skip
# Parameters of its functions that ours, which are ATen's or CANN's, lack.
LACKING = {
    "argsort": {"stable"},
    "embedding": {"input", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"},
    "gather": {"sparse_grad"},
    "l1_loss": {"weight"},
    "log_softmax": {"dtype"},
    "max_pool2d": {"args", "kwargs"},  # its own function is chosen when it is called
    "max_pool2d_with_indices": {"return_indices"},
    "mse_loss": {"weight"},
    "norm": {"dtype"},
    "softmax": {"dtype"},
    "split": {"split_size_or_sections"},
    "triangular_solve": {"b"},
}
# The order is ATen's, or does not count as parameters are given by name.
ORDERED_OTHERWISE = {"nll_loss", "var"}
NAMES = [name for one in REGISTRY.values() for name in one.functional_names]


def parameters_in_pytorch(name):
    """Names of the parameters of each public function of PyTorch's that is called so."""
    for home in (torch, torch.nn.functional, torch.special, torch.linalg):
        function = getattr(home, name, None)
        if function is None:
            continue
        try:
            yield list(inspect.signature(function).parameters)
            continue
        except ValueError:  # a built-in function, whose documentation says it
            text = re.search(rf"^\s*{name}\((.*?)\)(?: ->|$)", function.__doc__ or "", re.MULTILINE)
        if text is not None:
            words = re.sub(r"\[[^\]]*\]", "", text[1]).split(",")
            found = [re.split(r"[=:]", word)[0].strip() for word in words]
            yield [word for word in found if word.isidentifier()]


COMPARED = {name: every for name in NAMES if (every := list(parameters_in_pytorch(name)))}


def ours(name):
    return list(inspect.signature(getattr(aclnn, name)).parameters)


def test_many_functions_have_a_counterpart():
    assert len(COMPARED) > 120


@pytest.mark.parametrize("name", COMPARED)
def test_parameters_are_called_as_in_pytorch(name):
    known = ours(name)
    lacking = set()
    for theirs in COMPARED[name]:
        meant = [one if one in known else parameter_meant(one, known) for one in theirs]
        lacking |= {one for one, own in zip(theirs, meant, strict=True) if own is None}
        found = [own for own in meant if own is not None and own != "out"]
        positional = [own for own in known if own in found]
        assert found == positional or name in ORDERED_OTHERWISE
    assert lacking - OF_PYTORCH == LACKING.get(name, set())


@pytest.mark.parametrize("name", NAMES)
def test_numpys_and_canns_words_are_taken(name):
    known = ours(name)
    for given, own in (("axis", "dim"), ("dim", "axis"), ("eps", "epsilon"), ("epsilon", "eps")):
        if own in known and given not in known:
            assert parameter_meant(given, known) == own
    if known[0] in ("self", "x"):
        assert parameter_meant("input", known) == known[0]


# --- PyTorch's own --------------------------------------------------------------------------------


def test_undocumented_interfaces_are_there_and_in_one_file():
    from aclnn.torch import private

    for name, interface in private.INTERFACES.items():
        assert interface.remedy
        assert getattr(private, name) is not None or interface.is_optional, name
    folder = Path(private.__file__).parent
    uses = re.compile(r"\bfunctorch\b|\btorch(\.\w+)*\._[a-zA-Z]|from torch\b.* import _")
    for path in folder.rglob("*.py"):
        code = [line for line in path.read_text().splitlines() if uses.search(line.split("#")[0])]
        code = [line for line in code if "_DYNAMO = " not in line and '"""' not in line]
        assert path.name == "private.py" or not code, (path.name, code)


def test_an_interface_that_is_gone_says_what_to_do(monkeypatch):
    from aclnn.torch import private

    gone = private.Interface(("torch._gone:thing",), "do without")
    monkeypatch.setitem(private.INTERFACES, "thing", gone)
    with pytest.raises(ImportError, match=r"has no torch\._gone\.thing.* do without"):
        private.thing  # noqa: B018
    monkeypatch.setitem(private.INTERFACES, "thing", gone._replace(is_optional=True))
    assert private.thing is None
    with pytest.raises(AttributeError, match="nothing"):
        private.nothing  # noqa: B018
