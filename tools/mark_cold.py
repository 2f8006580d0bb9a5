"""Mark functions of translated Cython sources that calls and kernels do not pass: they are compiled for size.

The compiler optimises a function with the attribute `cold` as with ``-Os``, and others around it as before. In modules
of kernels these are the functions that hold Python's lock, which run once for a plan. Those that let go of it may have
loops over elements, and stay as they are. In all other modules they are what starts a module, and what raises errors.
The build calls `mark` on each file that Cython wrote.
"""

from __future__ import annotations

import re
from pathlib import Path

MARK = "CYTHON_SMALL_CODE"  # `cold` where the compiler knows that
NOTE = "/* marked: what is for size */\n"
# A function as Cython writes it: its heading, and what is before the first brace in the first column.
FUNCTION = re.compile(
    r"^static [^;={}]*?\b(__pyx_\w+)\([^;{}]*\) \{\n((?:.*\n)*?)\}\n", re.MULTILINE
)
HOLDS_LOCK = re.compile(r"__Pyx_RefNannyDeclarations|__Pyx_AddTraceback\(")
LETS_GO = re.compile(r"Py_UNBLOCK_THREADS|PyEval_SaveThread")
HEADING = re.compile(r"^static (?!CYTHON_)(?=[^\n=(]*?\b(__[Pp]yx_\w+)\()", re.MULTILINE)
# Methods and other functions of Python's protocols, and what Cython adds to each module.
GLUE = re.compile(r"__pyx_(?:tp|gb|getprop|setprop|mp|sq|nb)_|__Pyx_")
SELDOM = re.compile(
    r"__Pyx_\w*(?:Raise|Traceback|Import|Init|Setup|Unpickle|Coroutine|Generator|CodeObject|Vtable|FromSpec|Ready|"
    r"Bases|Metaclass|modinit)|__pyx_\w+(?:reduce|setstate)_cython__|__pyx_\w*unpickle"
)


def holders(text: str) -> set[str]:
    """The names of functions that hold Python's lock from their begin to their end."""
    bodies = dict(FUNCTION.findall(text))
    held = {name for name, body in bodies.items() if HOLDS_LOCK.search(body)}
    open_ = {name for name in held if LETS_GO.search(bodies[name])}
    # Those around a function, which is inlined there.
    return {
        name
        for name in held - open_
        if open_.isdisjoint(re.findall(r"\b__pyx_pf_\w+", bodies[name]))
    }


def marked(text: str, is_kernel: bool) -> str:
    """A C file whose functions for size have the mark.

    Parameters
    ----------
    text : str
        What Cython wrote.
    is_kernel : bool
        Whether all functions with the lock are for size.

    Examples
    --------
    >>> print(marked("static void __Pyx_RaiseTooFew(int n) {\\n}\\n", False), end="")
    static CYTHON_SMALL_CODE void __Pyx_RaiseTooFew(int n) {
    }
    """
    held = holders(text) if is_kernel else set()
    before, defined, behind = text.rpartition(f"#define {MARK}")

    def heading(found: re.Match[str]) -> str:
        name = found[1]
        cold = name in held or (GLUE if is_kernel else SELDOM).match(name)
        return f"static {MARK} " if cold else found[0]

    return before + defined + HEADING.sub(heading, behind)


def mark(path: Path, is_kernel: bool) -> None:
    """Mark the functions of a file, once."""
    text = path.read_text(encoding="utf-8")
    if not text.endswith(NOTE):
        path.write_text(marked(text, is_kernel) + NOTE, encoding="utf-8")
