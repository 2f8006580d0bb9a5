"""Division of a kernel module's C into a file with all that Python sees and several with loops.

A formula that changes has one of these compiled again.  A file has its own loops and the functions that they reach, so
that nothing else changes it.  The build calls `write` on what Cython wrote.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path

HOLDS_LOCK = re.compile(r"__Pyx_RefNannyDeclarations|__Pyx_AddTraceback\(")
# A function as Cython writes it, and its declaration.
FUNCTION = re.compile(r"^static [^;={}]*?\b(__pyx_\w+)\([^;{}]*\) \{\n(?:.*\n)*?\}\n", re.MULTILINE)
DECLARATION = re.compile(
    r"^static [^;={}\n]*?\b(__pyx_\w+)\([^;{}\n]*\); ?/\*proto\*/\n", re.MULTILINE
)
MAIN = re.compile(r"^(?:extern )?int __pyx_module_is_main\w*(?: = 0)?;\n", re.MULTILINE)
VARIABLE = re.compile(r"^static (?!CYTHON)[^(\n]*?\b(__pyx_vp?_\w+)[^(\n]*;", re.MULTILINE)
NAME = re.compile(r"\b__pyx_\w+")
FORM = re.compile(r"_(in|half|f32|f64|f16|bf16|whole|complex|vec|pair|form|exact|step|to)(_.*)?$")
SECTION = re.compile(r"^/\* #### Code section: (\w+) ### \*/\n", re.MULTILINE)
OF_PYTHON = (
    "module_exttypes", "initfunc_declarations", "init_module", "init_after_shared_utility", "pystring_table", "cached_builtins", "cached_constants", "init_constants",
    "init_globals", "cleanup_globals", "cleanup_module", "main_method",
)  # fmt: skip
SHARED = '__attribute__((visibility("hidden")))'  # by the files of a module


def formula_of(function: str) -> str:
    """The formula that a loop is for: all of its loops are in one file.

    Examples
    --------
    >>> formula_of("__pyx_f_5aclnn_16_formula_kernels_gelu_half_in_float")
    'gelu'
    >>> formula_of("__pyx_f_5aclnn_7kernels_4simd_10leaky_relu_leaky_relu_to_f16")
    'leaky_relu'
    """
    rest = function.partition("_f_")[2]
    while found := re.match(r"\d+", rest):  # names of modules, behind their lengths
        rest = rest[found.end() + int(found[0]) + 1 :]
    while (shorter := FORM.sub("", rest)) != rest:
        rest = shorter
    return rest


def part_of(function: str, parts: int) -> int:
    """The number of a loop's file, in which no other loop has a say."""
    return zlib.crc32(formula_of(function).encode()) % parts


def reached(roots: Iterable[str], bodies: Mapping[str, str]) -> set[str]:
    """The functions that some call or name, directly or not, these included."""
    found: set[str] = set()
    unread = list(roots)
    while unread:
        name = unread.pop()
        if name not in found:
            found.add(name)
            unread += [one for one in NAME.findall(bodies[name]) if one in bodies]
    return found


def divided(text: str, parts: int) -> list[str]:
    """The files of a module, that of Python first.

    Parameters
    ----------
    text : str
        What Cython wrote. Its loops are the functions without Python's lock that those with it name.
    parts : int
        How many files of loops there are.
    """
    code = dict(sections(text))["module_code"]
    bodies = {one[1]: one[0] for one in FUNCTION.finditer(code)}
    held = {name for name, body in bodies.items() if HOLDS_LOCK.search(body)}
    glue = _with(text, held, set(), bodies.keys())
    free = {name for name in bodies.keys() - held if name.startswith("__pyx_f")}
    loops = {*NAME.findall(glue)} & free
    refuse_shared(text, reached(loops, bodies), bodies)
    files = [_with(text, bodies.keys() - free, loops, free)]
    own_text = without_python(text)
    for part in range(parts):
        roots = {name for name in loops if part_of(name, parts) == part}
        files.append(_with(own_text, reached(roots, bodies), roots, bodies.keys()))
    return files


def sections(text: str) -> Iterator[tuple[str, str]]:
    """The parts of what Cython wrote by their names; what is before the first one has none."""
    found = ["", *SECTION.split(text)]
    return zip(found[::2], found[1::2], strict=True)


def without_python(text: str) -> str:
    """The text without functions and tables that Python sees."""
    kept = []
    for name, body in sections(text):
        if name == "module_code":
            kept += [one[0] for one in FUNCTION.finditer(body)]
        elif name not in OF_PYTHON:
            kept.append(body)
    return MAIN.sub("", "".join(kept))


def refuse_shared(text: str, functions: Iterable[str], bodies: Mapping[str, str]) -> None:
    """Refuse variables that loops read and Python sets: each file would have one of its own."""
    variables = set(VARIABLE.findall(text))
    for name in functions:
        if found := variables.intersection(NAME.findall(bodies[name])):
            sys.exit(f"{name} has a variable of its module: {', '.join(sorted(found))}")


def _with(text: str, defined: Set[str], shared: Set[str], among: Set[str]) -> str:
    """The text with those of some functions that it defines or shares with other files."""

    def opened(found: re.Match[str]) -> str:
        if found[1] not in shared:
            return found[0]
        return f"{SHARED} {found[0].removeprefix('static ').removeprefix('CYTHON_INLINE ')}"

    def function(found: re.Match[str]) -> str:
        return "" if found[1] in among - defined else opened(found)

    def declaration(found: re.Match[str]) -> str:
        return "" if found[1] in among - defined - shared else opened(found)

    return DECLARATION.sub(declaration, FUNCTION.sub(function, text))


def write(source: Path, folder: Path, parts: int) -> list[Path]:
    """Write a module's files to a folder, those that changed, and return the paths of all."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, text in enumerate(divided(source.read_text(encoding="utf-8"), parts)):
        path = folder / (f"{source.stem}_{number}.c" if number else f"{source.stem}.c")
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths
