"""Examples in docstrings run, and every public name has one of its own."""

import doctest
import importlib
import inspect
import pathlib
import pickle
import pkgutil
import re
import runpy
import shlex

import aclnn.graph
import numpy as np
import pytest
from aclnn.graph.views import json as documents

import aclnn
from aclnn import cli, functional
from aclnn.operators import ENTRIES, REGISTRY
from aclnn.profiling import PROFILE_SCHEMA

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
    plan, run = getattr(aclnn, f"{name}GetWorkspaceSize"), getattr(aclnn, name)
    assert list(inspect.signature(plan).parameters) == [p.name for p in entry.parameters]
    assert str(inspect.signature(run)) == "(workspace, workspaceSize, executor, stream)"
    for function in (plan, run):
        assert function.__module__ == "aclnn.entries"
        assert pickle.loads(pickle.dumps(function)) is function


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


# --- Documents whose examples run: Python sessions, and consoles --------------------------------

DOCS = pathlib.Path(__file__).parent.parent / "docs"
RUN = ("json.md", "tutorial-workspace.md", "views.md")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def console_examples(text):
    """Command and expected output of every example in the ```console blocks of a document."""
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, want = example.replace("\\\n", " ").partition("\n")
            yield command, want


def console_output(command, want, status, capsys):
    """What a console prints for a command, and its exit status; `cat` makes the file it shows."""
    words = shlex.split(command)
    if words[0] == "cat":
        pathlib.Path(words[1]).write_text(want)
        return want, 0
    if words[:2] == ["echo", "$?"]:
        return f"{status}\n", 0
    assert words[0] == "aclnn", command
    target = words[words.index(">") + 1] if ">" in words else None
    done = cli.main(words[1:] if target is None else words[1 : words.index(">")])
    out, err = capsys.readouterr()
    if target is not None:
        pathlib.Path(target).write_text(out)
        out = ""
    return out + err, done


@pytest.fixture
def in_a_folder(tmp_path, monkeypatch):
    """An empty folder, and two threads, which documents show."""
    before = aclnn.get_num_threads()
    monkeypatch.chdir(tmp_path)
    aclnn.set_num_threads(2)
    yield
    aclnn.set_num_threads(before)


def document(name):
    path = DOCS / name
    if not path.exists():
        pytest.skip("run from an installation without sources")
    return path.read_text(encoding="utf-8")


@pytest.mark.usefixtures("in_a_folder")
@pytest.mark.parametrize("name", RUN)
def test_documents_show_what_happens(name, capsys):
    text = document(name)
    status, count = 0, 0
    for command, want in console_examples(text):
        got, status = console_output(command, want, status, capsys)
        same = doctest.OutputChecker().check_output(want, got, FLAGS)
        assert same, f"$ {command}\nshown:\n{want}\nis:\n{got}"
        count += 1
    session = re.sub(r"^```$", "", text, flags=re.MULTILINE)
    found = doctest.DocTestParser().get_doctest(session, {}, name, name, 0)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(found)
    assert result.failed == 0, capsys.readouterr().out
    assert count + result.attempted > 0


def field_paths(schema, prefix=""):
    """Every field of a JSON Schema, as `buffers[].name`."""
    for name, facts in schema.get("properties", {}).items():
        yield prefix + name
        for one in (facts, *facts.get("oneOf", ())):
            yield from field_paths(one, f"{prefix}{name}.")
            if isinstance(one.get("items"), dict):
                yield from field_paths(one["items"], f"{prefix}{name}[].")


def test_every_field_of_every_document_is_documented():
    sections = document("json.md").split("\n## ")
    schemas = [
        PROFILE_SCHEMA,
        *(getattr(documents, name) for name in dir(documents) if name.endswith("_SCHEMA")),
    ]
    assert len(schemas) == 6
    for schema in schemas:
        (section,) = [text for text in sections if text.startswith(f"{schema['title']}\n")]
        for path in field_paths(schema):
            assert f"| `{path}` |" in section


@pytest.mark.parametrize("name", RUN)
def test_documents_link_to_what_exists(name):
    for target in re.findall(r"\]\(([^)#:]+)\)", document(name)):
        assert (DOCS / target).exists(), target


@pytest.mark.parametrize("name", sorted(path.name for path in DOCS.glob("*.md")))
def test_the_readme_lists_every_document(name):
    assert f"(docs/{name})" in (DOCS.parent / "README.md").read_text(encoding="utf-8")


EXAMPLES = sorted((pathlib.Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_programs_run(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
