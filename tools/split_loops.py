"""Division of a kernel module's C into a file with all that Python sees and some with loops.

The first is compiled once, the others once for each instruction set, with a table of their loops.  The first finds a
loop in the table of the set in use (`aclnn/kernels/instruction_sets.h`).  A file of loops has its own and the functions
that they reach, so that a formula that changes changes one of them.  The build calls `write` on what Cython wrote.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import NamedTuple

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
COMMENT = re.compile(
    r'^/\* "[^\n]*\n(?: \*[^\n]*\n)*\*/\n', re.MULTILINE
)  # of loops, whose sources change
OF_OBJECTS = re.compile(r"\bPyObject\b|\bstruct __pyx_obj_")  # what Python keeps, and how it calls
CODE = "/* #### Code section: module_code ### */\n"
SHARED = '__attribute__((visibility("hidden")))'  # by the files of a module
OF_SET = "#define ACLNN_JOINED(name, set) name##set\n#define ACLNN_OF(name, set) ACLNN_JOINED(name, set)\n"
SETS = ("generic", "neon", "v3", "v4")


def formula_of(function: str) -> str:
    """The formula that a loop is for: all of its loops are in one file.

    Examples
    --------
    >>> formula_of("__pyx_f_5aclnn_7kernels_16_formula_kernels_gelu_half_in_float")
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
    """The files of a module: that of Python, those of loops, that of the tables of all sets.

    Parameters
    ----------
    text : str
        What Cython wrote. Its loops are the functions without Python's lock or objects that others name.
    parts : int
        How many files of loops there are.
    """
    code = dict(sections(text))["module_code"]
    bodies = {one[1]: one[0] for one in FUNCTION.finditer(code)}
    held = {name for name, body in bodies.items() if is_held(body)}
    free = {name for name in bodies.keys() - held if name.startswith("__pyx_f")}
    glue = COMMENT.sub("", _with(text, bodies.keys() - free, free))
    loops = {*NAME.findall(glue)} & free
    refuse_shared(text, reached(loops, bodies), bodies)
    own_text = without_python(text)
    roots = [
        sorted(name for name in loops if part_of(name, parts) == part) for part in range(parts)
    ]
    shared = drivers(roots, bodies)
    files, tables = [], []
    for part in range(parts):
        table = Table(part, [member(bodies[name]) for name in roots[part]])
        tables.append(table)
        own = {name for name in shared if part_of(name, parts) == part}
        inner = {name: body for name, body in bodies.items() if name not in shared - own}
        made = _with(own_text, reached((*roots[part], *own), inner), bodies.keys())
        head = OF_SET + "".join(map(declared_for_set, sorted(bodies[name] for name in shared)))
        for name in own:
            made = made.replace(bodies[name], f"{SHARED} {bodies[name].removeprefix('static ')}")
        files.append(made.replace(CODE, CODE + head) + table.declared() + table.defined())
    head = "".join(one.declared() + one.found() for one in tables)
    return [glue.replace(CODE, CODE + head), *files, gathered(tables)]


def drivers(roots: Iterable[Iterable[str]], bodies: Mapping[str, str]) -> set[str]:
    """Functions that loops of several files call and that are not for being inlined: one file has each."""
    times = Counter(name for some in roots for name in reached(some, bodies) - set(some))
    return {
        name
        for name, count in times.items()
        if count > 1 and "CYTHON_INLINE" not in heading(bodies[name])
    }


def heading(body: str) -> str:
    return body.partition(" {\n")[0]


def declared_for_set(body: str) -> str:
    """The declaration of a function that other files of the instruction set have."""
    found = FUNCTION.match(body)
    declared = heading(body).removeprefix("static ")
    return f"#define {found[1]} ACLNN_OF({found[1]}_, ACLNN_SET)\n{SHARED} {declared};\n"


def is_held(body: str) -> bool:
    """Whether a function runs with Python's lock."""
    return bool(HOLDS_LOCK.search(body) or OF_OBJECTS.search(heading(body)))


def member(body: str) -> tuple[str, str]:
    """The name of a function, and what a pointer to it is declared with.

    Examples
    --------
    >>> member("static CYTHON_INLINE void __pyx_f_exp(int n) {\\n}\\n")
    ('__pyx_f_exp', 'void (*__pyx_f_exp)(int n)')
    """
    found = FUNCTION.match(body)
    declared = heading(body).removeprefix("static ").removeprefix("CYTHON_INLINE ")
    return found[1], re.sub(rf"\b{found[1]}\(", f"(*{found[1]})(", declared, count=1)


class Table(NamedTuple):
    """Addresses of the loops of one file, of which each instruction set has its own."""

    part: int
    members: list[tuple[str, str]]

    @property
    def name(self) -> str:
        return f"aclnn_loops_{self.part}"

    def declared(self) -> str:
        """Its type; what is empty has one member, as C wants it."""
        lines = [f"  {declared};\n" for _, declared in self.members] or ["  int none;\n"]
        return f"struct {self.name} {{\n{''.join(lines)}}};\n"

    def defined(self) -> str:
        """That of the instruction set that a file of loops is compiled for."""
        lines = [f"  .{name} = {name},\n" for name, _ in self.members] or ["  0\n"]
        return (
            f"{SHARED} const struct {self.name} ACLNN_OF({self.name}_, ACLNN_SET) = {{\n"
            f"{''.join(lines)}}};\n"
        )

    def found(self) -> str:
        """How the names of loops find them in that of the set in use."""
        text = [f"extern {SHARED} const struct {self.name} *const {self.name}_of[];\n"]
        text += [
            f"#define {loop} ({self.name}_of[set_in_use()]->{loop})\n" for loop, _ in self.members
        ]
        return "".join(text)

    def gathered(self) -> str:
        """Those of all instruction sets that are built."""
        kind = f"const struct {self.name}"
        own = [f"extern {SHARED} {kind} {self.name}_{isa};\n" for isa in SETS]
        places = [f"  [SET_{isa.upper()}] = &{self.name}_{isa},\n" for isa in SETS]
        table = f"{SHARED} {kind} *const {self.name}_of[SETS] = {{\n{if_built(places)}}};\n"
        return f"struct {self.name};\n{if_built(own)}{table}"


def if_built(lines: Iterable[str]) -> str:
    """Lines for each instruction set, where the build says that it compiles its loops."""
    return "".join(
        f"#ifdef ACLNN_HAS_{isa.upper()}\n{line}#endif\n"
        for isa, line in zip(SETS, lines, strict=True)
    )


def gathered(tables: Iterable[Table]) -> str:
    """The file that knows which instruction sets are built, so that no other is compiled for each choice of them."""
    bits = if_built(f"    | 1 << SET_{isa.upper()}\n" for isa in SETS)
    built = f'#include "instruction_sets.h"\n\nconst int SETS_BUILT = 0\n{bits};\n'
    return built + "".join(table.gathered() for table in tables)


def sections(text: str) -> Iterator[tuple[str, str]]:
    """The parts of what Cython wrote by their names; what is before the first one has none."""
    found = ["", *SECTION.split(text)]
    return zip(found[::2], found[1::2], strict=True)


def without_python(text: str) -> str:
    """The text without functions and tables that Python sees."""
    kept = []
    for name, body in sections(text):
        if name == "module_code":
            kept += [CODE, *(one[0] for one in FUNCTION.finditer(body))]
        elif name not in OF_PYTHON:
            kept.append(body)
    return MAIN.sub("", "".join(kept))


def refuse_shared(text: str, functions: Iterable[str], bodies: Mapping[str, str]) -> None:
    """Refuse variables that loops read and Python sets: each file would have one of its own."""
    variables = set(VARIABLE.findall(text))
    for name in functions:
        if found := variables.intersection(NAME.findall(bodies[name])):
            sys.exit(f"{name} has a variable of its module: {', '.join(sorted(found))}")


def _with(text: str, defined: Set[str], among: Set[str]) -> str:
    """The text with those of some functions that it defines."""

    def kept(found: re.Match[str]) -> str:
        return "" if found[1] in among - defined else found[0]

    return DECLARATION.sub(kept, FUNCTION.sub(kept, text))


def write(source: Path, folder: Path, parts: int) -> list[Path]:
    """Write a module's files to a folder, those that changed, and return the paths of all."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    names = ["", *(f"_{number + 1}" for number in range(parts)), "_sets"]  # in order, as sorted
    texts = divided(source.read_text(encoding="utf-8"), parts)
    for name, text in zip(names, texts, strict=True):
        path = folder / f"{source.stem}{name}.c"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths
