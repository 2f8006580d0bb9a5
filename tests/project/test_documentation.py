"""Examples in docstrings run, and every public name has one of its own."""

import ast
import doctest
import graphlib
import importlib
import inspect
import math
import pathlib
import pickle
import pkgutil
import posixpath
import re
import runpy
import shlex
import subprocess
import sys
import textwrap
from dataclasses import replace
from functools import cache

import aclnn.graph
import numpy as np
import oracle
import pytest
from aclnn.graph.views import json as documents
from cases import each

import aclnn
from aclnn import cli
from aclnn.acl import _runtime, dtypes
from aclnn.cli.ops import accuracies, accuracy_in_words
from aclnn.compiler import phase_one
from aclnn.compiler.recording import single_call
from aclnn.operators import ENTRIES, FAMILIES, REGISTRY
from aclnn.operators.checks import TensorSpec
from aclnn.reports.profile_document import PROFILE_SCHEMA


@pytest.fixture(autouse=True)
def runtime():
    """Examples begin and end the runtime, whose state others look at."""
    before = _runtime.exchange_life()
    yield
    _runtime.exchange_life(before)


MODULES = sorted(
    module.name
    for package in (aclnn, aclnn.graph)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    if not module.name.endswith("__main__") and "_kernels_" not in module.name
)


@pytest.mark.parametrize("name", ["aclnn", "aclnn.graph", *MODULES])
def test_examples(name):
    if name.startswith(("aclnn.torch", "aclnn.dask")):
        pytest.importorskip(name.split(".")[1])
    module = importlib.import_module(name)
    result = doctest.testmod(module)
    assert result.failed == 0


FUNCTIONAL = {
    name: (operator, None) for operator in REGISTRY.values() for name in operator.functional_names
}
C_SHAPED = {
    f"{name}{part}": pair for name, pair in ENTRIES.items() for part in ("GetWorkspaceSize", "")
}
CALLABLE = {
    name: getattr(home, name)
    for home in (aclnn, aclnn.graph)
    for name in dir(home)
    if callable(getattr(home, name)) and not name.startswith("_")
}


@each("name", CALLABLE)
def test_every_public_name_has_an_example_of_its_own(name):
    value = CALLABLE[name]
    assert value.__doc__.strip().partition("\n")[0].endswith(".")
    known = vars(importlib.import_module(value.__module__)).copy()
    example = doctest.DocTestParser().get_doctest(value.__doc__, known, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(example)
    assert runner.tries > 0
    assert runner.failures == 0
    if not isinstance(value, type):  # objects are what functions give
        assert any(re.search(rf"\b{name}\b", one.source) for one in example.examples)


def sections_of(doc):
    """The sections of a docstring in numpydoc style, by title; the first has none."""
    found = re.split(r"\n\n([A-Z][A-Za-z ]+)\n-+\n", inspect.cleandoc(doc))
    return {"": found[0]} | dict(zip(found[1::2], found[2::2], strict=True))


def definitions(section):
    """Term and description of every entry of a section."""
    return re.findall(r"^(\S.*)\n((?:    .*(?:\n|$))+)", section, re.MULTILINE)


@each("name", [*FUNCTIONAL, *C_SHAPED])
def test_generated_docstrings_say_all_there_is_to_say(name):
    function = getattr(aclnn, name)
    operator, entry = FUNCTIONAL.get(name) or C_SHAPED[name]
    sections = sections_of(function.__doc__)
    seealso = ["See Also"] if entry or operator.seealso else []
    assert list(sections) == ["", "Parameters", "Returns", "Raises", *seealso, "Notes", "Examples"]
    described = dict(definitions(sections["Parameters"]))
    parameters = list(inspect.signature(function).parameters)
    assert [term.split(" : ")[0] for term in described] == parameters
    assert all(len(words.split()) > 2 for words in described.values())
    assert operator.summary in sections[""].replace("\n", " ")
    assert operator.expression in sections["Notes"].replace("\n", " ")
    if name in ENTRIES:
        for status in ("161001", "161002", "561000", "361001"):
            assert status in sections["Returns"]
        return
    told = " ".join(function.__doc__.split())
    names = {p.role: p.name for p in entry.parameters} if entry else dict.fromkeys(parameters)
    if not entry and name != operator.in_place:
        names |= dict.fromkeys(operator.outputs)
    for rule in operator.rules:
        roles = re.findall(r"`(\w+)`", rule.text)
        text = re.sub(r"`(\w+)`", lambda m: f"`{names.get(m[1]) or m[1]}`", rule.text)
        text = text if entry else dtypes.in_numpys_words(text)
        found = re.search(rf"\. {re.escape(text)}(, else ACLNN_ERR_\w+ \(\d+\))?\.", told)
        assert bool(found) == (set(roles) <= names.keys())
    tensors = [words for term, words in described.items() if re.search(": (array|aclTensor)", term)]
    for words in tensors:
        assert re.search(r"FLOAT|INT|BOOL|float|int|bool|dtype|broadcast", words)
    assert bool(entry) or not re.search(r"\b(FLOAT|DOUBLE|BF16|BOOL|INT\d|COMPLEX)", told)
    for status in ("161001", "161002", "561000") if entry else ("161002",):
        assert status in sections["Returns" if entry else "Raises"]
    if not entry:
        assert re.search("shape|itself", sections["Returns"])


def documented():
    """Public functions, and methods of public classes: whether they are given an object first."""
    for home in (aclnn, aclnn.graph):
        for name in home.__all__:
            value = getattr(home, name)
            if inspect.isroutine(value):
                yield value, False
            for own, method in vars(value).items() if isinstance(value, type) else ():
                function = getattr(method, "__func__", method)  # of static and class methods
                if inspect.isroutine(function) and not own.startswith("_"):
                    first = list(inspect.signature(function).parameters)[:1]
                    yield function, first in (["self"], ["cls"])


@pytest.mark.parametrize("name", [name for name in CALLABLE if isinstance(CALLABLE[name], type)])
def test_attributes_have_an_entry_each(name):
    """Sphinx takes the second of two for a type."""
    section = sections_of(CALLABLE[name].__doc__).get("Attributes", "")
    assert re.findall(r"^\w+, .* : ", section, re.MULTILINE) == []


DOCUMENTED = list(documented())


def what_it_gives(function):
    """The annotation of a function's result; those of compiled functions are in a stub."""
    found = inspect.signature(function).return_annotation
    if found is not inspect.Signature.empty:
        return found
    home = getattr(function, "__objclass__", function)  # a method in C knows its class only
    own = home.__module__.replace(".", "/") + ".pyi"
    stubs = stubs_of(own if (ROOT / own).exists() else "aclnn/__init__.pyi")
    return stubs.get(function.__name__, "Any")


@cache
def stubs_of(path):
    """What the functions of a stub give, by name."""
    found = [
        node for node in ast.walk(ast.parse(source(path))) if isinstance(node, ast.FunctionDef)
    ]
    return {node.name: ast.unparse(node.returns) for node in found}


@each("function, of_object", DOCUMENTED)
def test_docstrings_say_what_is_taken_and_given(function, of_object):
    sections = sections_of(function.__doc__)
    listed = re.findall(r"^(\S[^:\n]*)", sections.get("Parameters", ""), re.MULTILINE)
    terms = [one.strip(" *") for line in listed for one in line.split(",")]
    assert terms == list(inspect.signature(function).parameters)[of_object:]
    gives = what_it_gives(function)
    title = "Yields" if gives.startswith("Iterator") else "Returns"
    assert {"Returns", "Yields"} & sections.keys() == ({title} if gives != "None" else set())


STATUSES = {
    member.name: int(member) for kind in (aclnn.aclError, aclnn.aclnnStatus) for member in kind
}


@each("function, of_object", DOCUMENTED)
def test_docstrings_tell_statuses_by_name_and_number(function, of_object):
    sections = sections_of(function.__doc__)
    told = " ".join(f"{sections.get('Returns', '')} {sections.get('Raises', '')}".split())
    for name, number in re.findall(r"(?:(\w+) \()?\b(\d{6})\b", told):
        assert STATUSES.get(name) == int(number)
    for name, number in re.findall(r"\b(ACL(?:NN)?_(?:ERR|SUCCESS)\w*)(?: \((\d+)\))?", told):
        assert number == str(STATUSES[name])
    gives = what_it_gives(function)
    is_value = function.__name__ in ("aclDataTypeSize", "aclFloatToFloat16")
    if function.__name__.startswith("acl") and re.search(r"\bint(\]|$)", gives) and not is_value:
        assert "SUCCESS (0)" in told


def test_options_that_are_numbers_say_what_these_stand_for():
    described = dict(
        definitions(sections_of(aclnn.aclnnGeluV2GetWorkspaceSize.__doc__)["Parameters"])
    )
    assert "0 is 'none', 1 is 'tanh'" in " ".join(described["approximate : int"].split())
    notes = sections_of(aclnn.aclnnGelu.__doc__)["Notes"]
    assert "Here `approximate` is 'none'." in " ".join(notes.split())


@each("name", ENTRIES)
def test_signatures_are_canns(name):
    _, entry = ENTRIES[name]
    plan, run = getattr(aclnn, f"{name}GetWorkspaceSize"), getattr(aclnn, name)
    assert list(inspect.signature(plan).parameters) == [p.name for p in entry.parameters]
    assert str(inspect.signature(run)) == "(workspace, workspaceSize, executor, stream)"
    for function in (plan, run):
        assert function.__module__ == "aclnn.api.two_phase"
        assert pickle.loads(pickle.dumps(function)) is function


def test_the_readmes_code_runs():
    readme = pathlib.Path(__file__).parents[2] / "README.md"
    if not readme.exists():
        pytest.skip("run from an installation without sources")
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
    assert len(blocks) == 4
    namespace = {}
    for block in blocks:
        exec(block, namespace)
    np.testing.assert_array_equal(namespace["status"], aclnn.ACLNN_SUCCESS)
    np.testing.assert_array_equal(namespace["out"][3:], np.float32([0, 1, 2, 3]))


# --- Documents whose examples run: Python sessions, and consoles --------------------------------

DOCS = pathlib.Path(__file__).parents[2] / "docs"
RUN = (
    "dask.md",
    "device-plans.md",
    "index.md",
    "json.md",
    "npu-program.md",
    "pytorch.md",
    "serving.md",
    "tutorial-decoder.md",
    "tutorial-workspace.md",
    "views.md",
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def console_examples(text):
    """Command and expected output of every example in the ```console blocks of a document, and whether
    its numbers are times, of which only the places are compared."""
    for times, block in re.findall(r"```console( times)?\n(.*?)```", text, re.DOTALL):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, want = example.replace("\\\n", " ").partition("\n")
            yield command, want, bool(times)


def without_numbers(text):
    """Words, with one sign for each number and each gap."""
    text = re.sub(r"[0-9][0-9.,]*", "0", text)
    return re.sub(r" +", " ", text)


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
def in_a_folder(tmp_path, monkeypatch, threads_as_before):
    """An empty folder, and two threads, which documents show."""
    monkeypatch.chdir(tmp_path)
    aclnn.set_num_threads(2)


def document(name):
    path = DOCS / name
    if not path.exists():
        pytest.skip("run from an installation without sources")
    return path.read_text(encoding="utf-8")


@pytest.mark.usefixtures("in_a_folder")
@pytest.mark.parametrize("name", RUN)
def test_documents_show_what_happens(name, capsys):
    text = document(name)
    if name in ("dask.md", "pytorch.md"):
        pytest.importorskip(name.removesuffix(".md").removeprefix("py"))
    status, count = 0, 0
    for command, want, times in console_examples(text):
        got, status = console_output(command, want, status, capsys)
        if times:
            want, got = without_numbers(want), without_numbers(got)
        same = doctest.OutputChecker().check_output(want, got, FLAGS)
        assert same, f"$ {command}\nshown:\n{want}\nis:\n{got}"
        count += 1
    session = re.sub(r"^```$", "", text, flags=re.MULTILINE)
    found = doctest.DocTestParser().get_doctest(session, {}, name, name, 0)
    # Globals are kept: what PyTorch compiled of them takes its own names out when it goes.
    result = doctest.DocTestRunner(optionflags=FLAGS).run(found, clear_globs=False)
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


def test_schemas_are_where_their_documents_say():
    places = re.findall(r"\| `(aclnn/[\w/.]+\.json)` \|", document("json.md"))
    assert len(places) == 6
    for place in places:
        assert (ROOT / place.replace("aclnn/graph/", "graph/")).exists(), place


PAGES = sorted(
    str(path.relative_to(DOCS.parent))
    for pattern in ("*.md", "docs/*.md", "tools/*.md")
    for path in DOCS.parent.glob(pattern)
)


def prose(page):
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """The anchors that viewers make of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_what_exists(name):
    page = DOCS.parent / name
    for target, anchor in re.findall(r"\]\(([^)#:]*)#?([^)]*)\)", prose(page)):
        found = page.parent / target if target else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), f"{target}#{anchor}"


@pytest.mark.parametrize("name", sorted(path.stem for path in DOCS.glob("*.md")))
def test_every_document_is_in_the_navigation(name):
    trees = re.findall(r"```{toctree}\n(.*?)```", document("index.md"), re.DOTALL)
    listed = re.findall(r"^(?:.*<)?([\w/-]+)>?$", "\n".join(trees), re.MULTILINE)
    assert {"index": "self"}.get(name, name) in listed


def test_the_readme_names_files_and_links_to_none():
    """An index of packages shows it without the files beside it."""
    text = source("README.md")
    assert not re.findall(r"\]\((?!https://)[^)]*\)", text)
    named = re.findall(r"`((?:docs/|[A-Z]+\b)[\w-]*\.(?:md|cff))`", text)
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.fixture(scope="module")
def settings():
    """What docs/conf.py defines."""
    if not (DOCS / "conf.py").exists():
        pytest.skip("run from an installation without sources")
    return runpy.run_path(str(DOCS / "conf.py"))


@pytest.mark.parametrize(
    ("in_the_repository", "on_the_site"),
    [
        ("[a](../CONTRIBUTING.md#style)", "[a](contributing.md#style)"),
        ("[a](tools/README.md)", "[a](benchmarks.md)"),
        ("[a](docs/numbers.md), [b](../docs/json.md#x)", "[a](numbers.md), [b](json.md#x)"),
        ("[a](pytorch.md) in `docs/pytorch.md`", "[a](pytorch.md) in `docs/pytorch.md`"),
    ],
)
def test_links_to_files_become_links_to_pages(settings, in_the_repository, on_the_site):
    assert settings["link_pages"](in_the_repository) == on_the_site


def test_files_that_pages_include_are_there(settings):
    for path, page in settings["PAGES"].items():
        assert f"{{include}} ../{path}\n" in document(page)
        assert (ROOT / path).exists()


def test_rules_of_docstrings_become_list_items(settings):
    lines = inspect.cleandoc(aclnn.elu_.__doc__).splitlines()
    told = [line.strip() for line in lines if re.match(r" +\d+\. ", line)]
    assert len(told) > 2
    settings["tidy_docstring"](None, "function", "aclnn.elu_", aclnn.elu_, None, lines)
    items = [place for place, line in enumerate(lines) if line.startswith("    * \\")]
    assert [lines[place].replace("    * \\", "") for place in items] == told
    assert not any(lines[place - 1] for place in items)
    wrapped = ["    1. first", "       goes on |x|", "after"]
    settings["tidy_docstring"](None, "function", "", None, None, wrapped)
    assert wrapped == ["", "    * \\1. first", "      goes on \\|x\\|", "after"]


def test_broken_links_of_a_site_are_found(tmp_path):
    broken = runpy.run_path(str(ROOT / "tools" / "check_site.py"))["broken"]
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">x</a><a href="#top">x</a><img src="gone.svg">'
        '<a href="b.html#there">x</a><a href="https://example.org/gone">x</a><p id="top">'
    )
    (tmp_path / "b.html").write_text('<p id="here"><a href="a.html">x</a>')
    assert list(broken(tmp_path)) == ["a.html: b.html#there", "a.html: gone.svg"]


def test_thresholds_are_those_of_the_sources():
    section = document("engine.md").partition("## Thresholds")[2]
    rows = re.findall(
        r"^\| ([0-9]+) ?(Ki|Mi|µs)?.*\| `(\w+)` in `([\w./]+)` \|", section, re.MULTILINE
    )
    assert len(rows) == section.count("\n| ") - 2  # the heads of the table
    inline = re.findall(r"(\d+) (KiB) \(`(\w+)` in `([\w./]+)`\)", section)
    for number, unit, name, path in rows + inline:
        source = (ROOT / path).read_text(encoding="utf-8")
        (value,) = re.findall(rf"\b{name} = ([0-9_* ]*[0-9])", source)
        size = {"": 1, "Ki": 1 << 10, "KiB": 1 << 10, "Mi": 1 << 20, "µs": 1000}[unit]
        assert math.prod(map(int, value.split("*"))) == int(number) * size, name


# --- What the documentation says of operators and modules ---------------------------------------

ROOT = DOCS.parent


def source(path):
    if not (ROOT / path).exists():
        pytest.skip("run from an installation without sources")
    return (ROOT / path).read_text(encoding="utf-8")


def test_every_operator_is_in_a_table_of_accuracy():
    page = source("docs/numbers.md").partition("\n## Choices")[0]
    exact = set(re.findall(r"`(\w+)`", page))
    measured = set(re.findall(r"^\| (\w+) \| .*[0-9].* \|$", page, re.MULTILINE))
    assert (exact | measured) & set(REGISTRY) == set(REGISTRY), (
        "run `python tools/accuracy.py NAME --write`"
    )
    misrounded = re.findall(r"^\| (\w+) \| .* \| (\d+) \| (\d+|-) \|$", page, re.MULTILINE)
    assert len(misrounded) > 30
    assert all((a, b) in (("0", "0"), ("0", "-")) for _, a, b in misrounded)


def test_measured_errors_are_those_of_the_tables():
    """In the package, of every operator that has a row, the worst of its rows."""
    page = source("docs/numbers.md").partition("\n## Choices")[0]
    worst = {}
    for name, *cells in re.findall(
        r"^\| (\w+) \| [^|]* \| (\d\S*) \| (\d\S*|-) \| (\d\S*|-) \|$", page, re.MULTILINE
    ):
        for dtype, cell in zip(("float32", "float16", "bfloat16"), cells, strict=True):
            if cell != "-":
                worst.setdefault(name, {}).setdefault(dtype, []).append(float(cell))
    kept = {
        name: {dtype: next(iter(one.values())) for dtype, one in facts.items()}
        for name, facts in accuracies().items()
    }
    assert kept == {
        name: {dtype: max(numbers) for dtype, numbers in facts.items()}
        for name, facts in worst.items()
    }, "run `make accuracy`"


ACTIVATIONS = sorted(
    operator.name
    for family in (
        *("relu", "leaky_relu", "elu", "sigmoid", "gelu", "softplus", "hard"),
        *("hardshrink", "shrink", "erfinv", "logit"),
    )
    for operator in FAMILIES[family]
)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_is_measured_and_shown(name, capsys):
    measured = accuracies()[name]
    assert measured["float32"]["ulp"] <= 1
    assert all(found["misrounded"] == 0 for dtype, found in measured.items() if dtype != "float32")
    words = accuracy_in_words(measured["float32"])
    rows = re.findall(
        rf"^\| `{name}` \| .*? \| (.*?) \| (.*?) \|", source("docs/activations.md"), re.MULTILINE
    )
    assert rows, "run `make accuracy`"
    assert set(rows) == {(words, "correctly rounded")}
    assert cli.main(["ops", name]) == 0
    assert f"float32 {words}; float16" in capsys.readouterr().out


def rows_of_places():
    """What the contributing guide's table of places names, row by row, as paths from the root."""
    table = (
        source("docs/architecture.md")
        .partition("| where | responsible for |")[2]
        .partition("\n\n")[0]
    )
    for line in table.splitlines()[2:]:
        first, *others = re.findall(r"`([^`]+)`", line.split("|")[1])
        yield [first, *(n if "/" in n else f"{first.rpartition('/')[0]}/{n}" for n in others)]


def row_of(path):
    """The number of the row where a file or folder has its place, if there is one."""
    for row, places in enumerate(rows_of_places()):
        if any(
            path == place or (place.endswith("/") and path.startswith(place)) for place in places
        ):
            return row
    return None


def modules():
    """Paths from the root of all that is written in Python or Cython."""
    for path in [*ROOT.glob("aclnn/**/*"), *ROOT.glob("graph/**/*")]:
        if path.suffix in (".py", ".pyx", ".pxd"):
            yield str(path.relative_to(ROOT))


def test_every_module_has_a_place_in_the_contributing_guide():
    missing = sorted(module for module in modules() if row_of(module) is None)
    assert missing == [f"aclnn/{name}.py" for name in ("__init__", "__main__", "_version")]


def imported(path):
    """Paths of what a module imports from the package while it is imported itself.

    The package as a whole counts as the last place that its names come from.
    """
    if re.search(r"^import aclnn$", source(path), re.M):
        yield "aclnn/reports/"
    for home, names in re.findall(
        r"^from aclnn([\w.]*) c?import (\([^)]*\)|.*)", source(path), re.M
    ):
        first = home.split(".")[1:2] or re.findall(r"\w+", names)
        for name in first:
            folder = "graph/" if name == "graph" else f"aclnn/{name}/"
            yield folder if (ROOT / folder).is_dir() else f"aclnn/{name}.py"


@each("path", [*modules()])
def test_modules_use_what_stands_above_them_in_the_contributing_guide(path):
    here = row_of(path)
    if here is not None:
        assert [used for used in imported(path) if (row_of(used) or 0) > here] == []


@each("path", [path for path in modules() if path.startswith("aclnn/acl/")])
def test_the_runtime_imports_nothing_above_it_at_any_time(path):
    """Not inside of functions and not by name either; what registers there is `aclnn/deferred.py`'s."""
    here = row_of(path)
    for home, names in statements_of_import(path):
        if home.split(".")[0] != "aclnn":
            continue
        for name in home.split(".")[1:2] or names:
            folder = "graph/" if name == "graph" else f"aclnn/{name}/"
            used = folder if (ROOT / folder).is_dir() else f"aclnn/{name}.py"
            assert (row_of(used) or 0) <= here, f"{path} imports {used}"


def test_the_kernel_interface_is_declared_once():
    found = [path for path in modules() if 'extern from "kernel_abi.h"' in source(path)]
    assert found == ["graph/runtime/kernel_abi.pxd"]


def test_the_graph_is_imported_by_its_installed_name():
    bare = re.compile(r"^\s*(?:from graph\b|c?import graph\b)", re.M)
    assert bare.search("x\nfrom graph.runtime.abi cimport step")
    assert [path for path in modules() if bare.search(source(path))] == []


def test_sizes_of_elements_are_written_once():
    """In C, for `aclDataTypeSize`; `aclnn.acl.dtypes` asks that."""
    assert [path for path in modules() if re.search(r"[\"']float32[\"']: 4\b", source(path))] == []


NO_MODULES = ("aclnn.graph",)  # a domain of ONNX's


def is_module_name(value):
    """Whether a constant is a string that an import may take."""
    return (
        isinstance(value, str)
        and re.fullmatch(r"\.\w+|aclnn(\.\w+)+", value) is not None
        and value not in NO_MODULES
    )


def statements_of_import(path):
    """Home and names of what a module imports or cimports, in functions and by strings too.

    Strings that are the name of a module, such as "aclnn.dask" or ".text" in a package, are imported by
    whatever gets them. What only type checkers import never is.
    """
    if not path.endswith(".py"):
        pattern = r"^\s*from ([\w.]+) c?import (\([^)]*\)|.*)"
        for home, names in re.findall(pattern, source(path), re.M):
            yield home, re.findall(r"\w+", names)
        for home in re.findall(r'^\s*c?import (aclnn[\w.]*)|"(aclnn\.[\w.]+)"', source(path), re.M):
            yield "".join(home), []
        return
    waiting = [ast.parse(source(path))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or ""), [one.name for one in node.names]
        elif isinstance(node, ast.Import):
            yield from ((one.name, []) for one in node.names)
        elif isinstance(node, ast.Constant) and is_module_name(node.value):
            yield node.value, []
        waiting += ast.iter_child_nodes(node)


def module_name(path):
    """The name of a module or package by its path from the root."""
    return path.rpartition(".")[0].removesuffix("/__init__").replace("/", ".")


def imports_inside(folder):
    """For each module of `graph/` or `aclnn/`, without "aclnn." before it, those that it imports."""
    paths = [path for path in modules() if path.startswith(folder)]
    found = {module_name(path).removeprefix("aclnn."): set() for path in paths}
    for path in paths:
        importing = module_name(path).removeprefix("aclnn.")
        for home, names in statements_of_import(path):
            bare = home.lstrip(".")
            above = path.split("/")[: -(len(home) - len(bare))] if bare != home else []
            full = ".".join([*above, *filter(None, [bare])])
            if full.partition(".")[0] not in ("aclnn", "graph"):
                continue  # another package, which may be called as one of ours
            inner = {f"{full}.{name}".removeprefix("aclnn.") for name in names} & found.keys()
            if names == ["graph"]:  # a folder of its own
                continue
            found[importing] |= inner or {full.removeprefix("aclnn.")} & found.keys()
        found[importing].discard(importing)  # ".json" ends names of files, too
    return found


IMPORTS = {
    "graph/": {
        "graph.ir": {"graph.strides"},
        "graph.views": {"graph.ir", "graph.views.text"},  # the latter by a string
        "graph.runtime._program": {"graph.runtime.abi"},  # a cimport
    },
    "aclnn/": {
        "api._functional": {"execution._executor", "execution.arrays"},  # a cimport, and an import
        "api._two_phase": {"errors.error_report"},  # in a function
        "isa": {"environment"},  # from aclnn
        "aclnn": {"dask"},  # by a string
    },
}


@pytest.mark.parametrize("folder", IMPORTS)
def test_modules_import_one_another_in_no_circle(folder):
    found = imports_inside(folder)
    for module, some in IMPORTS[folder].items():
        assert some <= found[module]
    try:
        graphlib.TopologicalSorter(found).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


DECLARE = """
import sys
from aclnn import operators
from aclnn.operators import relu
declared = dict(vars(relu))
exec(sys.argv[1], declared)
new = declared["softshrink"]
operators.REGISTRY = {**operators.REGISTRY, new.name: new}
operators.ENTRIES = {**operators.ENTRIES, **{entry.name: (new, entry) for entry in new.entries}}
"""


def code_of_the_contributing_guide():
    """A pointwise declaration, what judges it, and a row-wise declaration."""
    blocks = re.findall(r"```python\n(.*?)```", source("docs/adding-an-operator.md"), re.DOTALL)
    return [textwrap.dedent(block) for block in blocks]


def declared_softshrink(code, without=""):
    """Run where the contributing guide's example is declared, with a formula that there is.

    `without` is what to leave out of the declaration.
    """
    block, _, _ = code_of_the_contributing_guide()
    declaration = block.replace('formula="softshrink"', 'formula="hardshrink"')
    assert without in declaration
    declaration = declaration.replace(without, "")
    done = subprocess.run(
        [sys.executable, "-c", DECLARE + code, declaration],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_declaration_is_all_that_an_operator_takes():
    code = """
import numpy as np
import aclnn
from aclnn import cli
x = np.float32([-2, 0.25])
print(aclnn.softshrink(x), aclnn.executor("softshrink", x).run())
t, out = (aclnn.aclCreateTensor((2,), 0, None, 0, 2, (2,), a) for a in (x, x))
size, executor, status = aclnn.aclnnSoftshrinkGetWorkspaceSize(t, aclnn.aclCreateScalar(1, 0), out)
print(size, status, aclnn.aclnnSoftshrink(None, size, executor, None), x)
print(">>> softshrink(" in aclnn.softshrink.__doc__)
print("aclnnSoftshrink(bytearray(size)" in aclnn.aclnnSoftshrinkGetWorkspaceSize.__doc__)
for command in (["ops", "softshrink"], ["inspect", "softshrink", "--self", "float32[3]"],
                ["plan", "softshrink", "--self", "float32[3]"],
                ["bench", "--operators", "softshrink", "--sizes", "16", "--rounds", "1", "--peers"]):
    assert cli.main(command) == 0, command
"""
    printed = declared_softshrink(code)
    assert printed.splitlines()[:4] == ["[-2.  0.] [-2.  0.]", "0 0 0 [-2.  0.]", "True", "True"]
    assert "softshrink(self, lambd=0.5, *, out=None)" in printed


def test_without_a_rule_for_it_tensors_still_have_no_more_dimensions_than_plans():
    code = """
import aclnn
t = aclnn.aclCreateTensor((2,) * 9, 0, None, 0, 2, (512,), None)
print(aclnn.aclnnSoftshrinkGetWorkspaceSize(t, aclnn.aclCreateScalar(1, 0), t)[2])
print(aclnn.aclGetRecentErrMsg().splitlines()[0])
"""
    assert declared_softshrink(code, without="self, out: at most 8 dims; ").splitlines() == [
        "161002", "aclnnSoftshrinkGetWorkspaceSize: self has 9 dimensions, at most 8 are supported",
    ]  # fmt: skip


def test_a_docstring_that_cannot_be_made_takes_no_other_function_away():
    code = """
from dataclasses import replace
from aclnn import operators
bad = replace(operators.REGISTRY["gelu"], notes=1)
operators.REGISTRY = {**operators.REGISTRY, "gelu": bad}
operators.ENTRIES = {**operators.ENTRIES, "aclnnGelu": (bad, operators.ENTRIES["aclnnGelu"][1])}
import aclnn
for name in ("gelu", "aclnnGelu"):
    try:
        getattr(aclnn, name)
    except (AttributeError, TypeError) as error:
        print(error)
assert "gelu" in dir(aclnn)
print(aclnn.elu.__name__, aclnn.aclnnGeluV2.__name__, aclnn.aclnnEluGetWorkspaceSize.__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    *refused, others = done.stdout.splitlines()
    assert (len(refused), others) == (2, "elu aclnnGeluV2 aclnnEluGetWorkspaceSize"), done.stderr


def test_a_judge_is_one_function():
    """The contributing guide's example, in float64 and with many digits."""
    _, block, _ = code_of_the_contributing_guide()
    namespace = {
        "judge": lambda *cases: lambda formula: oracle.Judge(formula, False, cases, "", None)
    }
    exec(block, namespace)
    judge = namespace["softshrink"]
    for options, expected in zip(judge.cases, ([-1.5, 0, 0], [-1.75, 0, 0.25]), strict=True):
        points = np.array([-2, 0.125, 0.5])
        np.testing.assert_array_equal(judge.arrays(points, **options), expected)
        assert [float(judge.digits(x, **options)) for x in points] == expected


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_a_row_wise_declaration_becomes_a_row_wise_node(dim):
    """The contributing guide's example: its rules, its results, and its nodes."""
    _, _, block = code_of_the_contributing_guide()
    namespace = {}
    exec(block, namespace)
    softmax = namespace["softmax"]
    given = TensorSpec(aclnn.ACL_FLOAT16, (4, 6), (1, 4))
    request = phase_one.Request(softmax, [given, None], 1, (), None, (dim,), {})
    recording = single_call(request, aclnn.get_soc_version())
    built = recording.build([[0]])
    graph = built.graph
    (node,) = [node for node in graph.nodes if node.kind == "Compute"]
    assert (node.attr("kernel"), node.domain, node.attr("axis")) == ("softmax", "row", dim % 2 - 2)
    assert (str(graph.value(node.output)), built.does_nothing) == ("float16[4,6]", False)
    with pytest.raises(phase_one.RefusedError, match="dim is 2, must be from -2 to 1"):
        phase_one.check_call(replace(request, switches=(2,)), aclnn.get_soc_version())


# --- The reference pages ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference():
    """What tools/make_reference.py defines."""
    path = ROOT / "tools" / "make_reference.py"
    if not path.exists():
        pytest.skip("run from an installation without sources")
    return runpy.run_path(str(path))


@pytest.fixture(scope="module")
def pages(reference):
    """The reference pages by path."""
    return reference["pages"]()


def test_reference_pages_are_written_anew(reference, pages, tmp_path, monkeypatch):
    folder = tmp_path / "docs" / "reference"
    monkeypatch.setitem(reference["write"].__globals__, "FOLDER", folder)
    (folder / "operators").mkdir(parents=True)
    (folder / "operators" / "gone.md").touch()
    reference["write"]()
    written = {str(p.relative_to(folder)): p.read_text("utf-8") for p in folder.rglob("*.md")}
    assert written == pages


def test_the_readmes_table_is_what_the_declarations_say(reference):
    text = source("README.md")
    assert reference["readme"](text) == text, "run `make reference`"
    assert reference["readme"](text.replace("| `logit", "| `logits")) == text
    for operator in REGISTRY.values():
        if operator.functional_names:
            assert re.search(rf"\n\| .*`{operator.functional_names[0]}`", text), operator.name


def test_the_type_stub_is_what_the_declarations_say():
    """And has every public name, and each function's parameters."""
    written = source("aclnn/__init__.pyi")
    assert runpy.run_path(str(ROOT / "tools" / "make_stub.py"))["stub"]() == written, (
        "run `make reference`"
    )
    tree = ast.parse(written)
    functions = {node.name: node.args for node in tree.body if isinstance(node, ast.FunctionDef)}
    named = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(dir(aclnn)) <= {*functions, *named, *imported}
    for name, arguments in functions.items():
        if name != "__dir__":
            found = inspect.signature(getattr(aclnn, name)).parameters
            assert [a.arg for a in (*arguments.args, *arguments.kwonlyargs)] == list(found), name
            optional = [*arguments.defaults, *[d for d in arguments.kw_defaults if d is not None]]
            given = [p for p in found.values() if p.default is not p.empty]
            assert [ast.unparse(d) for d in optional] == [repr(p.default) for p in given], name


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("softmax", ["_Numpy", "int", "_Writable | None"]),
        ("sum", ["_Numpy", "int | Sequence[int] | None", "bool", "Any", "_Writable | None"]),
        ("cat", ["Sequence[_Numpy]", "int", "_Writable | None"]),
        ("gelu", ["_Numpy", "Literal['none', 'tanh']", "_Writable | None"]),
        (
            "rms_norm",
            ["_Numpy", "int | Sequence[int]", "Any", "float | None", "_Writable | None"],
        ),
        ("native_rms_norm", ["_Numpy", "Any", "float", "Any"]),
        ("aclnnCatGetWorkspaceSize", ["aclTensorList | None", "int", "aclTensor | None"]),
        (
            "aclnnReduceSumGetWorkspaceSize",
            ["aclTensor | None", "aclIntArray | None", "bool", "int", "aclTensor | None"],
        ),
    ],
)
def test_the_type_stub_has_types_by_kind(name, types):
    tree = ast.parse(source("aclnn/__init__.pyi"))
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    kinds = ["NDArray[Any]"] if name.startswith("aclnn") else ["NDArray[Any]", "_A"]
    # Before them are one for arrays of NumPy's whose dtypes tell those of results, and one with `out`
    # where it is a single array; all of them again where PyTorch has another name for `self`.
    before = {"gelu": 6, "native_rms_norm": 1}.get(name, 0 if name.startswith("aclnn") else 2)
    assert len(found) - len(kinds) == before
    found = found[-len(kinds) :]
    arguments = [*found[0].args.args, *found[0].args.kwonlyargs]
    assert [ast.unparse(a.annotation) for a in arguments] == types
    for one, kind in zip(found, kinds, strict=True):
        given = f"tuple[{kind}, {kind}]" if name == "native_rms_norm" else kind
        assert name.startswith("aclnn") or ast.unparse(one.returns) == given


def test_every_public_name_is_on_a_reference_page(pages):
    text = "\n".join(pages.values())
    described = re.findall(
        r"^(?:\.\. (?:auto|py:)(?:function|class):: aclnn\.|```{py:function} )([.\w]+)",
        text,
        re.MULTILINE,
    )
    in_tables = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    for name in dir(aclnn):
        if inspect.ismodule(getattr(aclnn, name)) or name == "__version__":
            continue
        assert name in described or name in in_tables, name
    for name in aclnn.graph.__all__:
        assert f"graph.{name}" in described or name in in_tables, name
    again = [name for name in set(described) if described.count(name) > 1]
    assert again == [next(iter(ENTRIES))]  # whose phase two stands for all


@each("name", REGISTRY)
def test_the_page_of_an_operator_follows_from_its_declaration(pages, name):
    operator = REGISTRY[name]
    (family,) = [name for name, members in FAMILIES.items() if operator in members]
    page = pages[f"operators/{family}/{name}.md"]
    assert operator.summary in page
    assert operator.expression in page
    functions = [
        *operator.functional_names,
        *(f"{e.name}GetWorkspaceSize" for e in operator.entries),
    ]
    assert re.findall(r"autofunction:: aclnn\.(\w+)", page) == functions
    for entry in operator.entries:
        assert f"{{py:function}} {entry.name}(workspace, workspaceSize, executor, stream)\n" in page


def test_commands_are_on_a_reference_page(pages):
    page = pages["cli.md"]
    for command in cli.COMMANDS:
        assert f"\n## aclnn {command}\n\n```text\nusage: aclnn {command} " in page
    assert "--budget" in page


def test_links_between_reference_pages_lead_somewhere(pages):
    links = [
        (pathlib.PurePosixPath(path).parent, *found)
        for path, text in pages.items()
        for found in re.findall(r"\]\(([\w./-]+\.md)(?:#([\w-]+))?\)", text)
    ]
    assert len(links) > len(REGISTRY)
    for folder, target, anchor in links:
        page = posixpath.normpath(str(folder / target))
        headings = re.findall(r"^#+ (.*)$", pages[page], re.MULTILINE)
        assert not anchor or anchor in [one.lower().replace(" ", "-") for one in headings]


@pytest.mark.parametrize("name", ["make_pictures.py", "make_tutorial_pictures.py"])
def test_pictures_are_made_where_pages_show_them(name):
    made = runpy.run_path(str(ROOT / "tools" / name))
    assert made["FOLDER"].resolve() == (DOCS / "pictures").resolve()


EXAMPLES = sorted((pathlib.Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_programs_run(path):
    """As a user runs them: one counts what its process allocates."""
    if "import torch" in path.read_text(encoding="utf-8"):
        pytest.importorskip("torch")
    made = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert made.stdout
