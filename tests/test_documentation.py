"""Examples in docstrings run, and every public name has one of its own."""

import doctest
import importlib
import pathlib
import pkgutil
import re
import runpy

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


def test_the_readmes_code_runs():
    readme = pathlib.Path(__file__).parent.parent / "README.md"
    if not readme.exists():
        pytest.skip("run from an installation without sources")
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
    assert len(blocks) == 3
    namespace = {}
    for block in blocks:
        exec(block, namespace)
    np.testing.assert_array_equal(namespace["status"], aclnn.ACLNN_SUCCESS)
    np.testing.assert_array_equal(namespace["out"][3:], np.float32([0, 1, 2, 3]))


EXAMPLES = sorted((pathlib.Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_programs_run(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
