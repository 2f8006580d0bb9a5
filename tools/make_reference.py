"""Reference pages in `build/docs/reference`, and the README's table of operators.

They are generated from docstrings and declarations.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import aclnn.graph
from aclnn.graph.views.tables import make, to_markdown

import aclnn
from aclnn import environment
from aclnn.acl import constants
from aclnn.cli import ops
from aclnn.operators import ENTRIES, FAMILIES, REGISTRY, Operator

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "docs" / "reference"
README = ROOT / "README.md"
MADE = "<!-- Made by tools/make_reference.py (`make docs`); changes here are lost. -->"

# Title and names of the sections of the page about all that is no operator.
RUNTIME: dict[str, tuple[str, ...]] = {
    "Plan once, run often, look inside": (
        "executor", "aclOpExecutor", "profile", "Profile",
    ),
    "Functions as plans": ("compile", "call", "WorkspacePool"),
    "Settings": (
        "show_config", "set_num_threads", "get_num_threads", "set_soc_version", "get_soc_version",
        "cache_info", "clear_cache", "set_verbose",
    ),
    "Errors": ("AclnnError", "AclnnTypeError", "explain", "aclGetRecentErrMsg"),
    "Tensors": (
        "tensor", "aclTensor", "aclCreateTensor", "aclInitTensor", "aclDestroyTensor", "aclGetViewShape",
        "aclGetStorageShape", "aclGetViewStrides", "aclGetViewOffset", "aclGetFormat",
        "aclGetDataType", "aclGetRawTensorAddr", "aclSetRawTensorAddr",
    ),
    "Scalars": ("aclScalar", "aclCreateScalar", "aclDestroyScalar"),
    "Arrays": (
        "aclIntArray", "aclCreateIntArray", "aclDestroyIntArray", "aclGetIntArraySize",
        "aclFloatArray", "aclCreateFloatArray", "aclDestroyFloatArray",
        "aclGetFloatArraySize", "aclBoolArray", "aclCreateBoolArray", "aclDestroyBoolArray",
        "aclGetBoolArraySize",
    ),
    "Lists": (
        "aclTensorList", "aclCreateTensorList", "aclDestroyTensorList",
        "aclGetTensorListSize", "aclScalarList", "aclCreateScalarList",
        "aclDestroyScalarList", "aclGetScalarListSize",
    ),
    "Executors": (
        "aclSetAclOpExecutorRepeatable", "aclDestroyAclOpExecutor", "aclSetInputTensorAddr",
        "aclSetOutputTensorAddr", "aclSetTensorAddr", "AclSetInputTensorAddr",
        "AclSetOutputTensorAddr", "AclSetTensorAddr", "aclSetDynamicInputTensorAddr",
        "aclSetDynamicOutputTensorAddr", "aclSetDynamicTensorAddr", "AclSetDynamicInputTensorAddr",
        "AclSetDynamicOutputTensorAddr", "AclSetDynamicTensorAddr",
    ),
    "Library and device": (
        "aclInit", "aclFinalize", "aclnnInit", "aclnnFinalize", "aclrtSetDevice",
        "aclrtResetDevice", "aclrtGetDevice", "aclrtGetDeviceCount", "aclrtGetSocName",
    ),
    "Memory": (
        "aclrtMalloc", "aclrtFree", "aclrtMemcpy", "aclrtMemcpyAsync", "aclrtMemset",
        "aclrtMallocHost", "aclrtFreeHost", "aclrtGetMemInfo",
    ),
    "Streams": (
        "aclrtCreateStream", "aclrtDestroyStream", "aclrtSynchronizeStream",
        "aclrtSynchronizeStreamWithTimeout", "aclrtStreamQuery", "aclrtSynchronizeDevice",
    ),
    "Events": (
        "aclrtCreateEvent", "aclrtDestroyEvent", "aclrtRecordEvent", "aclrtStreamWaitEvent",
        "aclrtSynchronizeEvent", "aclrtEventElapsedTime", "aclrtCreateEventWithFlag",
        "aclrtCreateEventExWithFlag", "aclrtResetEvent", "aclrtRecordEventWithFlag",
        "aclrtStreamWaitEventWithFlag", "aclrtStreamWaitEventWithTimeout",
        "aclrtSynchronizeEventWithTimeout", "aclrtQueryEventStatus", "aclrtEventGetTimestamp",
        "aclrtGetEventId",
    ),
    "Stream capture": (
        "aclmdlRI", "aclmdlRICaptureBegin", "aclmdlRICaptureGetInfo", "aclmdlRICaptureEnd",
        "aclmdlRICaptureThreadExchangeMode", "aclmdlRIExecute", "aclmdlRIExecuteAsync",
        "aclmdlRIDestroy", "aclmdlRISetName", "aclmdlRIGetName", "aclmdlRIDebugJsonPrint",
    ),
    "Task groups": (
        "aclmdlRICaptureTaskGrpBegin", "aclmdlRICaptureTaskGrpEnd",
        "aclmdlRICaptureTaskUpdateBegin", "aclmdlRICaptureTaskUpdateEnd",
    ),
}  # fmt: skip

# The same for the page about aclnn.graph.
GRAPH: dict[str, tuple[str, ...]] = {
    "Graphs": (
        "DType", "GraphBuilder", "Graph", "Node", "Value", "Argument", "GraphError", "check",
        "contiguous_strides", "broadcast_strides", "is_contiguous",
    ),
    "Passes": ("run_passes", "PassResult", "Note"),
    "Workspace plans": (
        "plan_workspace", "plan_lifetimes", "WorkspacePlan", "Buffer", "Tiling", "Assignment",
        "BudgetError", "PlanError", "SpareMemory", "validate", "Lifetime", "graph_lifetimes",
        "lifetimes_from_csv", "lifetimes_to_csv",
    ),
    "Schedules": ("compile", "Schedule"),
}  # fmt: skip
GRAPH_CONSTANTS = {
    "FUSED": "the passes of a graph that runs as fused loops",
    "MATERIALIZED": "the passes of a graph whose every intermediate is kept whole",
    "PARALLEL_WORK": "nanoseconds of work from which a step uses several threads",
    "STREAM_FROM": "bytes for each thread from which results bypass the cache",
}


class Word(str):
    """What stands for a value in a signature."""

    __slots__ = ()
    __repr__ = str.__str__


# Pipelines as defaults would be shown with the addresses of their functions.
NAMED = {id(getattr(aclnn.graph, name)): Word(name) for name in ("FUSED", "MATERIALIZED")}


def pages() -> dict[str, str]:
    """The pages by name of their file."""
    made = {
        "README.md": index(),
        "operators.md": "\n\n".join(
            ["# Operators", phase_two(), *map(operator, REGISTRY.values())]
        ),
        "runtime.md": "\n\n".join(["# Everything else", *sections(RUNTIME)]),
        "graph.md": "\n\n".join(["# Executor graphs", graph(), *sections(GRAPH, aclnn.graph)]),
        "constants.md": "\n\n".join(["# Constants", *map(constant, constants.ENUMERATIONS)]),
    }
    return {name: f"{MADE}\n\n{text}\n" for name, text in made.items()}


def readme(text: str) -> str:
    """The README with its table of operators as the declarations have it, a row for each family."""
    rows = []
    for family in FAMILIES.values():
        names = [name for one in family for name in one.functional_names]
        rows.append((code(*names), ", ".join(e.name for one in family for e in one.entries)))
    made = table(("functional", "C-shaped"), rows)
    before, heading, after = text.partition("\n## Operators\n\n")
    return before + heading + made + after[after.index("\n\n") :]


def index() -> str:
    """What there is, where it is described, and the variables of the environment."""
    functions = [
        (link("operators.md", one.name), code(*(entry.name for entry in one.entries)), one.summary)
        for one in REGISTRY.values()
    ]
    others, graphs = (
        [(link(page, title, title), code(*names)) for title, names in listed.items()]
        for page, listed in (("runtime.md", RUNTIME), ("graph.md", GRAPH))
    )
    kinds = [(link("constants.md", k.__name__), summary(k)) for k in constants.ENUMERATIONS]
    return "\n\n".join(
        [
            "# Reference",
            "Every name of `aclnn` and `aclnn.graph`, as its docstring describes it. "
            "`help(aclnn.gelu)` says the same.",
            "## Operators",
            table(("functional form", "C-shaped functions", "what it is"), functions),
            "## Everything else",
            table(("what", "names"), others),
            "## Executor graphs",
            table(("what, in `aclnn.graph`", "names"), graphs),
            "## Constants",
            "Members are names of `aclnn` too: `aclnn.ACL_FLOAT`.",
            table(("enumeration", "what it is"), kinds),
            "## Environment variables",
            inspect.cleandoc(environment.__doc__ or "").partition("\n\n")[2],
            environment.to_markdown(),
            "When the package is built, `ACLNN_OPENMP=0` leaves OpenMP out, and with it the limits that "
            "threadpoolctl sets.",
        ]
    )


def operator(one: Operator) -> str:
    """An operator: its dtypes, its functional forms, and its C-shaped functions."""
    facts = ops.describe(one)
    dtypes = [(soc, ", ".join(names) or "does not exist") for soc, names in facts["dtypes"].items()]
    parts = [
        f"## {one.name}",
        one.summary,
        table(("SoC", "dtypes, where all tensors have one"), dtypes),
    ]
    parts += [function(name) for name in one.functional_names]
    parts += [function(f"{entry.name}GetWorkspaceSize") for entry in one.entries]
    return "\n\n".join(parts)


def phase_two() -> str:
    """What is the same for all functions of phase two."""
    doc = getattr(aclnn, next(iter(ENTRIES))).__doc__
    return "\n\n".join(
        [
            "Functions of phase two, `aclnnXxx`, differ in nothing but their names; those of phase one "
            "are below.",
            "## Phase two",
            "```python\naclnn.aclnnXxx(workspace, workspaceSize, executor, stream)\n```",
            markdown(
                "Run what phase one planned."
                + doc[doc.index("\n\nParameters\n") : doc.index("\n\nSee Also\n")]
            ),
        ]
    )


def graph() -> str:
    """What the package of graphs is, and its constants."""
    doc = inspect.cleandoc(aclnn.graph.__doc__ or "").replace("::", ":")
    rows = [(f"`{name}`", text, shown(name)) for name, text in GRAPH_CONSTANTS.items()]
    return "\n\n".join([doc, "## Constants of graphs", table(("name", "what", "value"), rows)])


def shown(name: str) -> str:
    """The value of a constant of the graphs."""
    value = getattr(aclnn.graph, name)
    return code(*(one.__name__ for one in value)) if isinstance(value, tuple) else f"{value:,}"


def sections(listed: dict[str, tuple[str, ...]], home: Any = aclnn) -> Iterable[str]:
    """Sections of what is no operator."""
    for title, names in listed.items():
        yield f"## {title}"
        yield from (function(name, home) for name in names)


def constant(kind: Any) -> str:
    """An enumeration and its members."""
    rows = [(f"`{member.name}`", str(int(member))) for member in kind]
    return "\n\n".join(
        [f"## {kind.__name__}", markdown(kind.__doc__), table(("name", "value"), rows)]
    )


def function(name: str, home: Any = aclnn) -> str:
    """A function or class: heading, signature, docstring, and a class's methods."""
    value = getattr(home, name)
    if value.__name__ != name:
        return f"### {name}\n\nThe older spelling of `{value.__name__}`."
    parts = [
        f"### {name}",
        f"```python\n{home.__name__}.{signature(name, value)}\n```",
        markdown(value.__doc__),
    ]
    listed = list(methods(value)) if isinstance(value, type) else []
    return "\n\n".join([*parts, *(["**Methods**", "\n".join(listed)] if listed else [])])


def methods(kind: type) -> Iterable[str]:
    """A class's own public methods, with their docstrings' first lines."""
    for name, value in sorted(vars(kind).items()):
        value = getattr(value, "__func__", value)  # of static and class methods
        if not name.startswith("_") and callable(value) and value.__doc__:
            yield f"- `{signature(name, value, method=True)}`: {summary(value)}"


def signature(name: str, value: Any, method: bool = False) -> str:
    """How a function is called; types are in the docstring."""
    if isinstance(value, type) and not is_dataclass(value):
        return name
    found = inspect.signature(value)
    # An operator's `self` is a tensor; only that of a method is given by what stands before it.
    plain = [
        p.replace(annotation=p.empty, default=NAMED.get(id(p.default), p.default))
        for p in found.parameters.values()
        if not (method and p.name in ("self", "cls"))
    ]
    return f"{name}{found.replace(parameters=plain, return_annotation=found.empty)}"


# --- Docstrings in numpydoc style as Markdown -------------------------------------------------


def markdown(doc: str) -> str:
    """A docstring; headings become bold, definitions lists, examples blocks."""
    first, *others = re.split(r"\n\n([A-Z][A-Za-z ]+)\n-+\n", inspect.cleandoc(doc))
    parts = [examples(first)]
    for title, text in zip(others[::2], others[1::2], strict=True):
        parts += [f"**{title}**", section(title, text)]
    return "\n\n".join(parts)


def section(title: str, text: str) -> str:
    if title in ("Examples", "Notes"):
        return examples(text)
    if title == "See Also":
        return code(*text.split(", "))
    return "\n".join(definitions(text))


def definitions(text: str) -> Iterable[str]:
    """Terms and descriptions as a list; numbers of rules stay what they are."""
    for line in text.splitlines():
        if not line.startswith(" "):
            term, colon, kind = line.partition(" : ")
            yield f"- `{term}`{colon}{kind}"
        else:
            yield re.sub(r"^( +)(\d+)\. ", r"  - (\2) ", re.sub("^    ", "  ", line))


def examples(text: str) -> str:
    """Paragraphs, with those that are sessions or drawn tables as blocks."""
    languages = {">>>": "python", "===": ""}
    parts = [(p, languages.get(p[:3])) for p in re.split(r"\n\n", text)]
    return "\n\n".join(p if word is None else f"```{word}\n{p}\n```" for p, word in parts)


# --- Parts of Markdown ------------------------------------------------------------------------


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table."""
    return to_markdown((make(header, rows),))


def code(*names: str) -> str:
    return ", ".join(f"`{name}`" for name in names)


def link(page: str, title: str, text: str = "") -> str:
    return f"[{text or f'`{title}`'}]({page}#{anchor(title)})"


def anchor(title: str) -> str:
    """The anchor that viewers make of a heading."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def summary(value: Any) -> str:
    return inspect.cleandoc(value.__doc__).partition("\n")[0]


def main() -> None:
    """Write the pages and, unless only these are wanted, the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--pages", action="store_true", help="leave the README as it is")
    if not parser.parse_args().pages:
        README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(FOLDER.relative_to(ROOT) / name)


if __name__ == "__main__":
    main()
