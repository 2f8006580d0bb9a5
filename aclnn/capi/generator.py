"""Headers of the C interface, and those parts of its library that follow from prototypes.

``python aclnn/capi/generator.py FOLDER`` writes ``FOLDER/include`` with the headers as CANN has them, and
``FOLDER/capi`` with sources of the library: a stub for every function of an operator and of the runtime,
the struct of the runtime's functions (`runtime_table.h`) and the list of exported symbols.
``FOLDER/capi/further_operators`` has the same for the library of further operators, which runs them through
the first one. The build runs this before anything is compiled, so that modules are loaded by their paths.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Mapping
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent


def _load(path: str) -> ModuleType:
    """A module of the package, without the package."""
    file = HERE.parent / path
    spec = importlib.util.spec_from_file_location(f"_capi_{file.stem}", file)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


constants = _load("acl/constants.py")
prototypes = _load("acl/prototypes.py")
pairs = _load("capi/function_pairs.py")

MAJOR = 1  # of the library's name
LIBRARY = f"libaclnn_cpu.so.{MAJOR}"
FURTHER_LIBRARY = f"libaclnn_cpu_further.so.{MAJOR}"
# Names under which programs link or open the library, and those that have the second one's functions, too.
RUNTIME_NAMES = (
    "libaclnn_cpu.so", "libascendcl.so", "libacl_rt.so", "libnnopbase.so", "libacl_op_compiler.so",
)  # fmt: skip
OPERATOR_NAMES = ("libopapi.so", "libopapi_math.so", "libopapi_nn.so")
OTHER_NAMES = RUNTIME_NAMES + OPERATOR_NAMES
# Where links can be: wheels know none.
LINKS = dict.fromkeys(RUNTIME_NAMES, LIBRARY) | dict.fromkeys(OPERATOR_NAMES[1:], OPERATOR_NAMES[0])
HANDLES = tuple(name for name, kind in prototypes.TYPES.items() if kind == "void *")
OBJECTS = tuple(
    name
    for name, kind in prototypes.TYPES.items()
    if kind.startswith("struct ") and name != "aclDataBuffer"
)
BASE_ENUMERATIONS = ("aclDataType", "aclFormat", "aclLogLevel")
WEIGHT_SIZE = (
    "aclnnStatus aclnnCalculateMatmulWeightSizeV2(const aclIntArray *tensorShape, aclDataType dataType, "
    "uint64_t *weightTensorSize)"
)

_STANDARD = """
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
#include <cstdint>
#include <cstdlib>
#endif
"""
_BEGIN = '\n#ifdef __cplusplus\nextern "C" {\n#endif\n'
_END = "\n#ifdef __cplusplus\n}\n#endif\n"


def header(name: str, summary: str, includes: Iterable[str], body: str) -> str:
    """A header: guarded, with C linkage."""
    guard = f"ACLNN_CPU_{name.upper().replace('/', '_').replace('.', '_')}_"
    included = "".join(f'#include "{one}"\n' for one in includes)
    declared = f"{_BEGIN}\n{body.strip()}\n{_END}" if body.strip() else ""
    opening = f"/* {summary} */\n#ifndef {guard}\n#define {guard}\n"
    return f"{opening}\n{included}{declared}\n#endif /* {guard} */\n"


def _enumeration(kind: type[IntEnum]) -> str:
    members = ",\n".join(f"    {name} = {int(value)}" for name, value in kind.__members__.items())
    return f"typedef enum {{\n{members}\n}} {kind.__name__};\n"


def _macros(kind: type[IntEnum]) -> str:
    return "".join(f"#define {name} {int(value)}\n" for name, value in kind.__members__.items())


def _incomplete(names: Iterable[str]) -> str:
    return "".join(f"typedef struct {name} {name};\n" for name in names)


def acl_base() -> str:
    """Types, statuses, and the functions that need neither a device nor an object."""
    statuses = "".join(
        f"static const int {name} ACL_MAYBE_UNUSED = {int(value)};\n"
        for name, value in constants.aclError.__members__.items()
    )
    enumerations = "\n".join(_enumeration(getattr(constants, one)) for one in BASE_ENUMERATIONS)
    handles = "".join(f"typedef void *{name};\n" for name in HANDLES)
    major, minor, patch = prototypes.VERSION
    body = f"""
#define ACL_MAJOR_VERSION {major}
#define ACL_MINOR_VERSION {minor}
#define ACL_PATCH_VERSION {patch}

typedef int aclError;
typedef uint16_t aclFloat16;
typedef struct aclDataBuffer aclDataBuffer;
{handles}typedef void (*aclrtCallback)(void *userData);
typedef void (*aclrtHostFunc)(void *args);

{statuses}
{enumerations}
{_declared(prototypes.RUNTIME, "acl/acl_base.h")}"""
    text = header("acl/acl_base.h", "Types, statuses and enumerations.", (), body)
    defined = f"""{_STANDARD}
#if defined(__GNUC__) || defined(__clang__)
#define ACL_MAYBE_UNUSED __attribute__((unused))
#define ACL_FUNC_VISIBILITY __attribute__((visibility("default")))
#define ACLNN_API __attribute__((visibility("default")))
#else
#define ACL_MAYBE_UNUSED
#define ACL_FUNC_VISIBILITY
#define ACLNN_API
#endif
"""
    return text.replace(_BEGIN, defined + _BEGIN, 1)


def _declared(table: dict, name: str, mark: str = "ACL_FUNC_VISIBILITY") -> str:
    """The functions of a table that a header declares."""
    found = [one for one in table.values() if one.header == name]
    return "".join(f"{mark} {one.declaration};\n" for one in found)


def acl_rt() -> str:
    """The runtime: its enumerations, structs and functions."""
    rest = [
        kind
        for kind in constants.ENUMERATIONS
        if kind.__name__ not in (*BASE_ENUMERATIONS, "aclError", "aclnnStatus")
    ]
    parts = [_macros(k) if k in constants.MACROS else _enumeration(k) for k in rest]
    for name, members in prototypes.STRUCTS.items():
        inner = "".join(f"    {kind} {member};\n" for kind, member in members)
        parts.append(f"typedef struct {name} {{\n{inner}}} {name};\n")
    parts.append(_declared(prototypes.RUNTIME, "acl/acl_rt.h"))
    return header(
        "acl/acl_rt.h",
        "Devices, memory, streams, events, captures.",
        ("acl/acl_base.h",),
        "\n".join(parts),
    )


def acl_meta() -> str:
    """Tensors, scalars, arrays, lists, executors."""
    objects = f"""#ifndef ACLNN_META
#define ACLNN_META
{_incomplete(OBJECTS)}typedef int32_t aclnnStatus;
#ifdef __cplusplus
constexpr aclnnStatus OK = 0;
#endif
#endif
"""
    body = f"{objects}\n{_declared(prototypes.OBJECTS, 'aclnn/acl_meta.h', 'ACLNN_API')}"
    return header("aclnn/acl_meta.h", "Objects that operators take.", ("acl/acl_base.h",), body)


def operator_header(name: str) -> str:
    """The functions of one header."""
    found = [one for one in pairs.EVERY if one.header == name]
    others = [f"aclnnop/aclnn_{one}.h" for one in pairs.HEADERS.get(name, ())]
    lines = [f"ACLNN_API {text};\n" for one in found for text in (one.plan, one.run)]
    if name == "trans_matmul_weight":
        lines.append(f"ACLNN_API {WEIGHT_SIZE};\n")
    names = ", ".join(f"aclnn{one.name}" for one in found)
    names = names or ("Functions of other headers." if others else "No function is here yet.")
    includes = ("aclnn/aclnn_base.h", *others)
    return header(f"aclnnop/aclnn_{name}.h", names, includes, "".join(lines))


def headers() -> dict[str, str]:
    """All headers by their path below ``include/``."""
    base, meta = "acl/acl_base.h", "aclnn/acl_meta.h"
    found = {
        base: acl_base(),
        "acl/acl_rt.h": acl_rt(),
        "acl/acl.h": header(
            "acl/acl.h",
            "Start and end, and everything of the runtime.",
            ("acl/acl_rt.h", "acl/acl_op.h", "acl/acl_mdl.h"),
            _declared(prototypes.RUNTIME, "acl/acl.h"),
        ),
        meta: acl_meta(),
        "aclnn/aclnn_base.h": header(
            "aclnn/aclnn_base.h",
            "Start and end of the operators' library.",
            (meta,),
            _declared(prototypes.OBJECTS, "aclnn/aclnn_base.h", "ACLNN_API"),
        ),
        "aclnn/opdev/op_errno.h": header(
            "aclnn/opdev/op_errno.h",
            "Statuses of operators.",
            (base,),
            _macros(constants.aclnnStatus),
        ),
        "aclnnop/aclnn_util.h": header(
            "aclnnop/aclnn_util.h",
            "What operators' headers share.",
            ("aclnn/aclnn_base.h",),
            "",
        ),
    }
    for name in ("acl_op", "acl_mdl", "acl_op_compiler"):
        path = f"acl/{name}.h"
        found[path] = header(path, "Nothing here: programs include it.", (base,), "")
    for name in sorted({one.header for one in pairs.EVERY} | set(pairs.HEADERS)):
        found[f"aclnnop/aclnn_{name}.h"] = operator_header(name)
    for name in [one for one in found if one.startswith("aclnnop/")]:
        again = name.replace("aclnnop/", "aclnnop/level2/")
        found[again] = header(again, "The same functions.", (name,), "")
    written = HERE / "interface" / "include"
    return found | {
        path.relative_to(written).as_posix(): path.read_text(encoding="utf-8")
        for path in written.rglob("*.h")
    }


def _phases(listed: Iterable[Any]) -> list[str]:
    return [
        name for one in listed for name in (f"aclnn{one.name}GetWorkspaceSize", f"aclnn{one.name}")
    ]


def symbols() -> list[str]:
    """All functions that the library exports."""
    return [
        *prototypes.RUNTIME,
        *prototypes.OBJECTS,
        *_phases(pairs.FIRST),
        "aclnnCalculateMatmulWeightSizeV2",
    ]


def further_symbols() -> list[str]:
    """All functions that the library of further operators exports."""
    return _phases(pairs.FURTHER_OPERATORS)


def version_script(exported: Iterable[str]) -> str:
    """Version script: the symbols that the linker exports, and no others."""
    listed = "".join(f"    {name};\n" for name in exported)
    return f"{{\n  global:\n{listed}  local: *;\n}};\n"


RECORDED = "__builtin_expect(aclnn_recording, 0)"


def _included(listed: Iterable[Any]) -> list[str]:
    names = dict.fromkeys(one.header for one in listed)
    return [f'#include "aclnnop/aclnn_{name}.h"\n' for name in names]


def _stub(number: int, one: Any) -> str:
    """Both phases of a pair, whose number both libraries know."""
    arguments = ", ".join(
        f"{{.{pairs.TYPES[kind].member} = {name}}}" for kind, name in one.parameters
    )
    return f"""
{one.plan} {{
  const aclnn_argument given[] = {{{arguments}, {{.pointer = workspaceSize}}, {{.pointer = executor}}}};
  return aclnn_plan({number}, given, workspaceSize, executor);
}}

{one.run} {{
  return aclnn_run({number}, workspace, workspaceSize, executor, stream);
}}
"""


def operator_stubs() -> str:
    """The pairs of both libraries, and a function in C for each of the operators' of the first one."""
    lines = ['#include "library.h"\n', '#include "acl/acl.h"\n', *_included(pairs.FIRST)]
    lines.append("\nconst aclnn_pair aclnn_pairs[] = {\n")
    lines += [f'    {{"aclnn{one.name}", "{one.tags}"}},\n' for one in pairs.EVERY]
    lines.append("};\n")
    lines.append(f"const int aclnn_n_pairs = {len(pairs.EVERY)};\n")
    first = len(prototypes.RUNTIME) + len(prototypes.OBJECTS)
    lines.append(f"const int aclnn_first_phase = {first};\n")
    lines += [_stub(number, one) for number, one in enumerate(pairs.FIRST)]
    return "".join(lines)


def further_stubs() -> str:
    """A function in C for each of the further operators."""
    first = len(pairs.FIRST)
    lines = ['#include "further_operators.h"\n', *_included(pairs.FURTHER_OPERATORS)]
    lines.append(f"\nconst int aclnn_first_pair = {first};\n")
    lines.append(f"const int aclnn_n_own_pairs = {len(pairs.FURTHER_OPERATORS)};\n")
    lines.append("const aclnn_pair aclnn_own_pairs[] = {\n")
    lines += [f'    {{"aclnn{one.name}", "{one.tags}"}},\n' for one in pairs.FURTHER_OPERATORS]
    lines.append("};\n")
    lines += [_stub(first + number, one) for number, one in enumerate(pairs.FURTHER_OPERATORS)]
    return "".join(lines)


OWN = ("aclGetRecentErrMsg", "aclAppLog")  # which the library has itself
# What functions give that cannot start: 100001 is of aclInit alone.
FAILURES = {"aclError": "ACLNN_ERR_INNER"}


# What functions are called that may wait for others.
WAITING = ("Synchronize", "Execute", "WaitEvent", "Reset", "Finalize", "DestroyStream")


def runtime_stubs() -> str:
    """A function in C for each of the runtime's, which calls that of the table."""
    lines = ['#include "aclnn/opdev/op_errno.h"\n#include "library.h"\n']
    for number, one in enumerate(prototypes.RUNTIME.values()):
        if one.name in OWN:
            continue
        names = ", ".join(parameter.name for parameter in one.parameters)
        failure = FAILURES.get(one.returns, "0")
        if one.name == "aclInit":
            failure = "ACL_ERROR_UNINITIALIZE"
        waits = any(word in one.name for word in WAITING)
        begin, late = ("", "aclnn_begin_note();") if waits else ("aclnn_begin_note();", "")
        lines.append(
            f"""
{one.declaration} {{
  const aclnn_call_table *table = aclnn_table();
  {_result(one)};
  if (!table) return {failure};
  if (!{RECORDED}) return table->runtime->{one.name}({names});
  const aclnn_argument given[] = {{{_given(one)}}};
  {begin}
  result = table->runtime->{one.name}({names});
  {late}
  aclnn_note({number}, given, (int64_t)result, 0);
  aclnn_end_note();
  return result;
}}
"""
        )
    return "".join(lines)


def object_stubs() -> str:
    """A function in C for each of the objects', which are made without an interpreter."""
    lines = ['#include "aclnn/aclnn_base.h"\n#include "library.h"\n']
    for number, one in enumerate(prototypes.OBJECTS.values(), len(prototypes.RUNTIME)):
        own = one.declaration.replace(f"{one.name}(", f"own_{one.name}(")
        names = ", ".join(parameter.name for parameter in one.parameters)
        lines.append(
            f"""
{own};
{one.declaration} {{
  if (!{RECORDED}) return own_{one.name}({names});
  const aclnn_argument given[] = {{{_given(one)}}};
  aclnn_begin_note();
  {_result(one)} = own_{one.name}({names});
  aclnn_note({number}, given, (int64_t)result, 0);
  aclnn_end_note();
  return result;
}}
"""
        )
    return "".join(lines)


def _result(one: object) -> str:
    """The declaration of a variable for what a function gives."""
    kind = getattr(one, "returns")  # noqa: B009
    return f"{kind}result" if kind.endswith("*") else f"{kind} result"


def _given(one: object) -> str:
    """The initializer of an array of arguments."""
    parts = []
    for kind, name in getattr(one, "parameters"):  # noqa: B009
        if kind in ("float", "double"):
            parts.append(f"{{.real = {name}}}")
        elif kind == "aclrtHostFunc":
            parts.append(f"{{.pointer = (const void *){name}}}")
        elif kind.endswith("*") or kind in HANDLES:
            parts.append(f"{{.pointer = {name}}}")
        else:
            parts.append(f"{{.whole = (int64_t){name}}}")
    return ", ".join(parts) or "{.whole = 0}"


def sources() -> dict[str, str]:
    """The generated parts of the library by their name."""
    return {
        "operators.c": operator_stubs(),
        "runtime.c": runtime_stubs(),
        "object_functions.c": object_stubs(),
        "symbols.map": version_script(symbols()),
        "members.h": members(),
        "filters/runtime.c": _empty(symbols()),
        "filters/operators.c": _empty([*symbols(), *further_symbols()]),
        "further_operators/operators.c": further_stubs(),
        "further_operators/symbols.map": version_script(further_symbols()),
    }


def _empty(names: Iterable[str]) -> str:
    """Functions that do nothing: libraries of other names have them in the place of the real ones."""
    return "".join(f"void {name}(void) {{}}\n" for name in names)


def members() -> str:
    """Which numbers are dtypes and formats."""
    found = []
    for function, kind in (
        ("aclnn_is_dtype", constants.aclDataType),
        ("aclnn_is_format", constants.aclFormat),
    ):
        cases = "".join(f"    case {int(one)}:\n" for one in kind)
        found.append(
            f"static inline int {function}(int value) {{\n  switch (value) {{\n{cases}      return 1;\n"
            "    default:\n      return 0;\n  }\n}\n"
        )
    return "\n".join(found)


def write(folder: Path, include: Path) -> None:
    """Write headers to `include` and sources to `folder`; files that are right already are kept."""
    write_headers(include, headers())
    _write({folder / name: text for name, text in sources().items()}, folder.rglob("*.c"))


def write_headers(include: Path, texts: Mapping[str, str]) -> None:
    """Write headers to a folder; files that are right already are kept."""
    _write({include / name: text for name, text in texts.items()}, include.rglob("*.h"))


def _write(requested: Mapping[Path, str], found: Iterable[Path]) -> None:
    for path in [one for one in found if one not in requested]:
        path.unlink()
    for path, text in requested.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) / "capi", Path(sys.argv[1]) / "include")
