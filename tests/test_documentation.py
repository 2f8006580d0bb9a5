"""Examples in docstrings run, and every public name has one of its own."""

import doctest
import importlib
import pkgutil

import aclnn.graph
import numpy as np
import pytest

import aclnn
from aclnn import functional
from aclnn.operators import ENTRIES, REGISTRY

MODULES = sorted(
    module.name
    for package in (aclnn, aclnn.graph)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    if not module.name.endswith("__main__") and "._kernels" not in module.name
)


@pytest.mark.parametrize("name", ["aclnn", *MODULES])
def test_examples(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module)
    assert result.failed == 0


@pytest.mark.parametrize("name", functional.FUNCTIONS)
def test_examples_of_generated_functions(name):
    function = functional.FUNCTIONS[name]
    found = doctest.DocTestFinder().find(function, name, globs={"np": np})
    runner = doctest.DocTestRunner()
    for test in found:
        runner.run(test)
    assert runner.failures == 0
    if name in REGISTRY:
        assert runner.tries > 0


@pytest.mark.parametrize("name", dir(aclnn))
def test_public_names_have_docstrings(name):
    value = getattr(aclnn, name)
    if callable(value):
        assert value.__doc__


@pytest.mark.parametrize("name", ENTRIES)
def test_signatures_are_canns(name):
    _, entry = ENTRIES[name]
    code = getattr(aclnn, f"{name}GetWorkspaceSize").__code__
    assert code.co_varnames[: code.co_argcount] == tuple(p.name for p in entry.parameters)
    code = getattr(aclnn, name).__code__
    assert code.co_varnames[:4] == ("workspace", "workspaceSize", "executor", "stream")
