"""Memory that ends in the middle of a call: it fails, and leaves everything as it was."""

import io
import tokenize
from pathlib import Path

import pytest
from setups import fresh

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    path for top in ("aclnn", "graph") for end in ("pyx", "pxd") for path in (ROOT / top).rglob(f"*.{end}")
)  # fmt: skip


def steals(text, before, bracket, caller):
    """Whether a token, in a bracket that comes after `caller`, makes a list of that kind."""
    if text == "for":
        return bracket == "[" or caller in ("sorted", "list")
    return text == "*" and bracket == "[" and before in ("[", ",")


def lists_that_steal(source):
    """Lines with what Cython 3.3 appends to a list by a function that steals.

    It drops the reference even if it fails, and the caller drops it once more. List comprehensions
    are made so, `sorted` of a generator, and displays with a star.
    """
    opened, before = [], ["", ""]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.NL, tokenize.COMMENT):
            continue
        text = token.string
        if text in ("[", "("):
            opened.append((text, before[-1]))
        elif text in ("]", ")"):
            opened.pop()
        elif opened and steals(text, before[-1], *opened[-1]):
            yield token.start[0]
        before.append(text)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_list_is_made_by_stealing(path):
    found = list(lists_that_steal(path.read_text(encoding="utf-8")))
    assert not found, f"{path.relative_to(ROOT)}, lines {found}: append in a loop instead"


@pytest.mark.parametrize(
    "source", ["[x for x in y]", "tuple([\n  x\n  for x in y])", "sorted(x for x in y)", "[*x, y]", "[x, *y]"]
)  # fmt: skip
def test_lists_that_steal_are_found(source):
    assert list(lists_that_steal(source))


def test_other_lists_are_not():
    assert not list(
        lists_that_steal("[x * y, a[i * 2]]\ntuple(x for x in y)\n(*x, y)\n{x: y for x in z}")
    )


def test_calls_for_which_there_is_no_memory():
    """One allocation after the other fails; what a call drops too often ends the process."""
    pytest.importorskip("_testcapi")
    code = """
import sys, _testcapi, numpy as np, aclnn
sys.unraisablehook = lambda _: None  # generators that cannot be closed
class Foreign:
    def __init__(self, array):
        self.array, self.__array_interface__ = array, array.__array_interface__
x = np.ones((1, 1, 2, 1, 1, 3), np.float32)
foreign = Foreign(x)
sizes = [10**6 + k for k in range(8)]
counts = [sys.getrefcount(size) for size in sizes]
packed = aclnn.executor("gelu_backward", x.astype(np.float16), x, materialize=True).schedule.pack()

def tensors():
    made = aclnn.aclCreateTensor(
        [1] * 8, aclnn.ACL_FLOAT, sizes, 0, aclnn.ACL_FORMAT_ND, [10**8], None)
    aclnn.aclGetViewShape(made), aclnn.aclGetViewStrides(made)
def plans():
    aclnn.clear_cache()
    aclnn.gelu(x)
def arrays_of_others():
    aclnn.gelu(foreign)
def schedules():
    packed.describe()

for call in (tensors, plans, arrays_of_others, schedules):
    call()
    failed = 0
    for nth in range(1, 1200):
        _testcapi.set_nomemory(nth, nth + 1)
        try:
            call()
        except BaseException:
            failed += 1
        finally:
            _testcapi.remove_mem_hooks()
    assert failed or call is tensors, call  # which has a status instead
assert [sys.getrefcount(size) for size in sizes] == counts
"""
    done = fresh(code)
    assert done.returncode == 0, done.stderr[-2000:]
