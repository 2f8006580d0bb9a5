"""In how many files operators and kernels are named: what a new one has to touch.

Words are counted in code, without comments and docstrings.  What is left out, and why, is in `USES` and
`ORDINARY`.
"""

import ast
import builtins
import collections
import io
import pathlib
import re
import subprocess
import tokenize

import numpy as np
import pytest

from aclnn.kernels import records
from aclnn.operators import REGISTRY

ROOT = pathlib.Path(__file__).parents[2]
if not (ROOT / ".git").exists():
    pytest.skip("asks git for the files", allow_module_level=True)

LIMITS = {"point": 4, "row": 5, "opaque": 5}
# Fast paths by hand: a header, its loops, and steps of programs, besides a formula.
BY_HAND = 3
# Files that are made, and documents.
LEFT_OUT = re.compile(
    r"(tests|docs|examples)/|(README|CHANGELOG|CONTRIBUTING)\.md|aclnn/__init__\.pyi|aclnn/(operators|torch)/\w+\.json"
)
# What uses operators as people do, or translates what others call.
USES = {
    "aclnn/kernels/_convolution_kernels.pyx": "activations that results take in registers",
    "aclnn/benchmark/chains.py": "programs that are measured",
    "aclnn/benchmark/rows.py": "calls of row-wise operators that are measured, as PyTorch's differ in each",
    "aclnn/benchmark/targets.py": "targets of single operators",
    "aclnn/cli/demo.py": "a program that is shown",
    "aclnn/acl/arguments.py": "names that other libraries have for an operator, for hints",
    "aclnn/tracing/numpy_forms.py": "NumPy's functions, of other arguments",
    "aclnn/tracing/numpy_functions.py": "NumPy's functions, of other arguments",
    "aclnn/tracing/array.py": "methods of NumPy's arrays",
    "aclnn/onnx/forms.py": "ONNX's operators, of other arguments",
    "aclnn/onnx/pieces.py": "operators that exporters write in pieces",
    "aclnn/onnx/microsoft.py": "ONNX Runtime's operators, of other arguments",
    "aclnn/onnx/einsum.py": "an operator of ONNX's that is composed of others",
    "aclnn/onnx/numpy_forms.py": "operators of ONNX's that NumPy computes",
    "aclnn/onnx/few_bits.py": "products of ONNX Runtime's operators",
    "aclnn/onnx/pooling.py": "pools of ONNX's, of other arguments",
    "aclnn/onnx/sampling.py": "operators of ONNX's that are composed of others",
    "aclnn/onnx/scattering.py": "operators of ONNX's that are composed of others",
    "aclnn/onnx/narrow.py": "ONNX's casts",
    "aclnn/onnx/selection.py": "ONNX's operators between plans",
    "aclnn/onnx/resizing.py": "an operator of ONNX's that is composed of others",
    "aclnn/onnx/rules.py": "ONNX's operators, whose rules they are",
    "aclnn/onnx/recurrent.py": "activations of recurrent layers",
    "aclnn/onnx/quantized_forms.py": "ONNX's operators, of other arguments",
    "aclnn/onnx/quantized.py": "integer products, which are composed of operators",
    "aclnn/torch/counterparts.py": "PyTorch's operators, of other arguments",
    "aclnn/torch/npu/functions.py": "the vendor's functions, of other arguments",
    "aclnn/torch/npu/compositions.py": "the vendor's functions that are composed of operators",
    "aclnn/torch/npu/equivalents.py": "PyTorch's operators, of other arguments",
    "aclnn/torch/npu/products.py": "a product, which PyTorch composes of others",
    "aclnn/torch/npu/weights.py": "attention that is composed of operators",
    "aclnn/torch/npu/hccl.py": "collectives",
    "aclnn/torch/npu/kernels.py": "cells of recurrent layers",
    "aclnn/torch/npu/transfer.py": "PyTorch's functions that take a device",
    "aclnn/torch/npu/attention.py": "attention, as the NPU's PyTorch fuses it",
    "aclnn/torch/npu/autocast.py": "lists of operators, as PyTorch has them",
    "aclnn/torch/npu/operators.py": "operators that are the device's own business",
    "aclnn/torch/overloads.py": "PyTorch's operators, of other arguments",
    "aclnn/torch/formulas.py": "gradients that are composed of operators",
    "aclnn/torch/partitions.py": "views of PyTorch's",
    "aclnn/torch/support.py": "PyTorch's operators by what they need",
    "aclnn/torch/choice.py": "PyTorch's operators by speed",
    "graph/views/text.py": "English words",
    "Makefile": "an example of a command",
    "tools/bounds.py": "bounds of what formulas are composed of",
    "tools/compare_peaks.py": "programs whose memory is compared",
    "tools/exhaustive.py": "references in many digits, and numbers to try",
    "tools/coefficients.py": "the functions whose coefficients it makes",
    "tools/make_activations.py": "gradients of other names in its table",
    "tools/make_pictures.py": "programs that are drawn",
    "tools/make_reference.py": "examples of the reference",
    "tools/measure_models.py": "programs that are measured",
    "tools/measured_models.py": "programs that are measured",
    "tools/onnx_models.py": "programs that are measured",
    "tools/pytorch_swaps.py": "programs that are measured",
    "tools/vectorized.py": "loops that no compiler vectorises",
}
# Words that mean something else as well: in Python, NumPy or English.
ORDINARY = {
    *("attention", "combine", "gate", "ramp", "route"),
    *("adds", "eq", "ne", "lt", "le", "gt", "ge"),
    *(
        "cat",
        "sub",
        "mul",
        "div",
        "cast",
        "erf",
        "expand",
        "gather",
        "most",
        "neg",
        "norm",
        "permute",
        "place",
    ),
    *(
        "rotated",
        "pow",
        "slice",
        "stack",
        "threshold",
        "where",
        "gemm",
        "shrink",
        "copy_",
        "mm",
        "max",
    ),
}


def is_ordinary(name):
    others = (builtins, np, str, np.ndarray, bytes)
    return name in ORDINARY or any(hasattr(other, name) for other in others)


def without_comments(path, text):
    if path.endswith((".h", ".css", ".js")):
        return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    if path.endswith((".pyx", ".pxd")):
        text = re.sub(r'^\s*"""(?!\\).*?"""', "", text, flags=re.DOTALL | re.MULTILINE)
        return re.sub(r"#(?! *(define|include)).*$", "", text, flags=re.MULTILINE)
    if path.endswith((".py", ".pyi")):
        return python_code(text)
    return text


def python_code(text):
    """Names and strings; docstrings and comments are none."""
    found, begins = [], True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NAME, tokenize.STRING) and not (
            begins and token.type == tokenize.STRING
        ):
            found.append(token.string)
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            begins = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    return " ".join(found)


@pytest.fixture(scope="module")
def files():
    """By word, the files that have it in their code; all families of operators count as one."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    found = collections.defaultdict(set)
    for path in done.stdout.split():
        if LEFT_OUT.match(path) or path in USES or not (ROOT / path).is_file():
            continue
        if not path.endswith((".py", ".pyx", ".pxd", ".pyi", ".h")) and "." in path:
            continue
        text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
        # Operators are composed of others, and name these.
        place = "aclnn/operators" if path.startswith("aclnn/operators/") else path
        for word in set(re.findall(r"\w+", without_comments(path, text))):
            found[word].add(place)
    return found


def test_operators_and_kernels_are_named_in_few_files(files):
    known = records()
    too_many = {}
    for name in dict.fromkeys([*REGISTRY, *known]):
        record = known.get(name)
        limit = LIMITS[record.domain if record else "opaque"]
        limit += BY_HAND if record and record.by_hand else 0
        if not is_ordinary(name) and len(files[name]) > limit:
            too_many[name] = sorted(files[name])
    assert not too_many


def test_what_is_left_out_is_there():
    for path in USES:
        assert (ROOT / path).exists(), path


# What knows no kernel: neither by a name in a string nor by an attribute.
KNOW_NONE = (
    *("aclnn/compiler", "aclnn/dask", "aclnn/reports", "aclnn/execution", "graph", "setup.py"),
    *(
        "aclnn/onnx/formulas.py",
        "aclnn/onnx/writing.py",
        "aclnn/onnx/layouts.py",
        "aclnn/onnx/reading.py",
    ),
    *("tools/make_kernels.py", "aclnn/benchmark/cells.py", "aclnn/benchmark/peers.py"),
)
# Names that are there, and why: the product that is measured.
KNOWN = {
    "aclnn/benchmark/cells.py": {"matmul"},
}
# Strings that are something else there.
ELSEWHERE = {
    "maximum",
    "minimum",
    "add",
    "abs",
    "max",
    "sum",
    "mean",
    "cast",
    "copy",
    "fill",
    "place",
    "round",
    "where",
    "exp",
    "erf",
}


def strings_in(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }


def test_the_engine_names_no_kernel():
    named = {}
    for place in KNOW_NONE:
        path = ROOT / place
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            name = file.relative_to(ROOT).as_posix()
            if found := strings_in(file) & {*records()} - ELSEWHERE - KNOWN.get(name, set()):
                named[name] = found
    assert not named
