"""C headers of the runtime's functions, made of their prototypes.

``runtime_table.h`` has the struct of pointers to them, ``runtime_bindings.h`` a function for each that takes and gives
numbers, as Python calls it.

python tools/make_runtime_table.py FOLDER
"""

from __future__ import annotations

import importlib.util
import re
import sys
import types
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
VERSION = 1  # of the structure's layout

HEAD = """/* The runtime's functions for programs in C: made by tools/make_runtime_table.py, do not edit.
 *
 * `aclnn.acl._runtime.table` is a capsule, named "aclnn.acl._runtime.table", of a pointer to an
 * aclnn_runtime_table. A program checks `version`, and that `size` reaches the members that it uses.
 * None of the functions needs the interpreter's lock to be held; all may be called with it. */
#ifndef ACLNN_RUNTIME_TABLE_H
#define ACLNN_RUNTIME_TABLE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who has the types already, from the public headers, defines ACLNN_HAVE_ACL_TYPES. */
#ifndef ACLNN_HAVE_ACL_TYPES
"""
FURTHER = """
    /* Queue `run(argument)` on a stream, NULL for the default one, which runs it at once. It gives a
     * status, which the stream's next synchronisation reports with the message that `fail` has set.
     * `drop(argument)`, unless NULL, is called once, whether it ran, failed or could not be queued.
     * What a captured stream is given has to go through the Python layer: see `is_redirected`. */
    aclError (*enqueue)(aclrtStream stream, const char *function, int (*run)(void *argument), void *argument,
                        void (*drop)(void *argument));
    /* 0: the stream takes work by `enqueue`. 1: it is captured, or updates a task group, or is the
     * default stream while another one is captured. A status, with a message: it is not live. */
    int (*is_redirected)(aclrtStream stream, const char *function);
    /* Hold the live block that an address lies in, so that its bytes outlast its end; NULL where the
     * runtime gave it not out. 0, and a message, for a freed address, and for one that is too near the end. */
    int (*hold_memory)(const char *function, const char *name, const void *address, size_t nbytes, void **block);
    int (*memory_lives)(void *block);
    void (*drop_memory)(void *block);
    /* Set the thread's message and give the status. `set_message` keeps the latest failure as it was. */
    int (*fail)(int status, const char *message);
    void (*set_message)(const char *message);
    /* 0, or the status, with a message, of a process whose runtime has ended, or was left in its parent. */
    int (*closed)(const char *function);
    /* aclAppLog, for those that pass its arguments on. */
    void (*app_log)(aclLogLevel logLevel, const char *func, const char *file, uint32_t line, const char *fmt,
                    va_list arguments);
    /* Python's object of a live handle, a new reference, and the handle of such an object; the lock is held.
     * NULL and 0, without an exception, where there is none. */
    void *(*object_of)(void *handle);
    void *(*handle_of)(void *object);
    /* Count queued work that uses a held block, which goes on with its bytes although they are freed meanwhile;
     * whether it still has them when its turn comes, unless addresses were taken away; and that it is done. */
    void (*use_memory)(void *block);
    int (*memory_serves)(void *block);
    void (*end_use_of_memory)(void *block);
"""


def load(name: str) -> Any:
    """A module of `aclnn.acl` without the package, which is not built yet."""
    spec = importlib.util.spec_from_file_location(f"_{name}", HERE / "aclnn" / "acl" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def header() -> str:
    """The whole file."""
    prototypes, constants = load("prototypes"), load("constants")
    names = list(prototypes.RUNTIME)
    major, minor, patch = prototypes.VERSION
    table = "\n".join(f"    {one.pointer};" for one in prototypes.RUNTIME.values())
    lines = " \\\n    ".join(f"X({name})" for name in names)
    return (
        f"{HEAD}{types_of(prototypes, constants)}#endif\n\n"
        f"#define ACLNN_RUNTIME_TABLE_VERSION {VERSION}\n"
        '#define ACLNN_RUNTIME_TABLE_NAME "aclnn.acl._runtime.table"\n'
        f"#define ACLNN_RUNTIME_MAJOR {major}\n#define ACLNN_RUNTIME_MINOR {minor}\n"
        f"#define ACLNN_RUNTIME_PATCH {patch}\n\n"
        "typedef struct {\n    uint32_t version;\n    uint32_t size; /* of this structure */\n\n"
        f"{table}\n{FURTHER}}} aclnn_runtime_table;\n\n"
        f"#define ACLNN_RUNTIME_FUNCTIONS(X) \\\n    {lines}\n\n#endif\n"
    )


BINDINGS = """/* The runtime's functions as Python calls them: made by tools/make_runtime_table.py, do not edit.
 *
 * Arguments and results are numbers of 64 bits, in the order of the prototype. `kinds` has a letter for each argument:
 * s and e are handles of streams and events, i is an int of 32 bits, u one without a sign, n a number of 64 bits
 * without a sign; and after a colon one for each result: i with a sign, n without. `names` are those of arguments. */
#include "entries.h"

#define RT_ADDRESS(number) ((void *)(uintptr_t)(number))
typedef struct {
    const char *name, *kinds, *names;
    int (*call)(const uint64_t *given, uint64_t *made);
} rt_binding;

"""
RESULTS = {
    "int32_t *": "i",
    "int64_t *": "i",
    "uint32_t *": "i",
    "uint64_t *": "n",
    "size_t *": "n",
}
NUMBERS = {
    "int32_t": "i",
    "uint32_t": "u",
    "size_t": "n",
    "uint64_t": "n",
    "void *": "n",
    "const void *": "n",
}


def bindings() -> str:
    """The header of the functions that Python calls."""
    prototypes, constants = load("prototypes"), load("constants")
    found = [
        one for each in prototypes.RUNTIME.values() if (one := binding(each, prototypes, constants))
    ]
    table = "".join(f"    {entry},\n" for entry, _ in found)
    functions = "".join(text for _, text in found)
    return f"{BINDINGS}{functions}static const rt_binding rt_bindings[] = {{\n{table}}};\n"


def binding(one: Any, prototypes: Any, constants: Any) -> tuple[str, str] | None:
    """Entry in the table and function; None for one that takes or gives something else than numbers.

    Streams, events and models are made in Python, which has classes of them. Pointers to text are null, those to structures to one of zeros: Python has no such arguments.
    """
    if one.variadic or one.returns != "aclError" or one.name.startswith("aclmdlRI"):
        return None
    numbers = NUMBERS | {"aclrtStream": "s", "aclrtEvent": "e"}
    numbers |= {
        name: "n"
        for name, kind in prototypes.TYPES.items()
        if kind == "void *" and name not in numbers
    }
    numbers |= {kind.__name__: "i" for kind in constants.ENUMERATIONS}
    results = RESULTS | {
        f"{kind} *": letter.replace("u", "i") for kind, letter in numbers.items() if "*" not in kind
    }
    results |= {"void **": "n"}
    given, made, names, words, begin, end = "", "", [], [], "", ""
    for kind, name in one.parameters:
        inner = kind.removeprefix("const ").removesuffix("*").strip()
        if kind in numbers:
            number = f"given[{len(given)}]"
            words.append(
                f"RT_ADDRESS({number})"
                if numbers[kind] in "se" or "*" in kind
                else f"({kind}){number}"
            )
            given += numbers[kind]
            names.append(name)
        elif kind == "const char *":
            words.append("NULL")
        elif inner in prototypes.STRUCTS:
            begin += f"    {inner} {name} = {{ 0 }};\n"
            words.append(f"&{name}")
        elif results.get(kind, "s") not in "se":
            inner = kind.removesuffix("*").strip()
            begin += f"    {inner} {name} = 0;\n"
            cast = "(uintptr_t)" if results[kind] == "n" else "(int64_t)"
            end += f"    made[{len(made)}] = (uint64_t){cast}{name};\n"
            words.append(f"&{name}")
            made += results[kind]
        else:
            return None
    unused = "".join(
        f"    (void){word};\n" for word, used in (("given", given), ("made", made)) if not used
    )
    text = f"""static int rt_bound_{one.name}(const uint64_t *given, uint64_t *made) {{
{begin}    int outcome = rt_{one.name}({", ".join(words)});
{unused}{end}    return outcome;
}}
"""
    return f'{{ "{one.name}", "{given}:{made}", "{" ".join(names)}", rt_bound_{one.name} }}', text


def types_of(prototypes: types.ModuleType, constants: types.ModuleType) -> str:
    """Types of parameters, and the enumerations."""
    lines = []
    for name, kind in prototypes.TYPES.items():
        if "(*)" in kind:
            lines.append(f"typedef {kind.replace('(*)', f'(*{name})')};")
        else:
            lines.append(f"typedef {kind}{'' if kind.endswith('*') else ' '}{name};")
    macros = set(constants.MACROS) | {constants.aclError}
    for kind in constants.ENUMERATIONS:
        if kind not in macros:
            members = ", ".join(f"{name} = {int(one)}" for name, one in kind.__members__.items())
            lines.append(f"typedef enum {kind.__name__} {{ {members} }} {kind.__name__};")
    for name, parts in prototypes.STRUCTS.items():
        members = " ".join(f"{kind} {part};" for kind, part in parts)
        lines.append(f"typedef struct {name} {{ {members} }} {name};")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the headers, unless they are there as they should be."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("runtime_table.h", header()), ("runtime_bindings.h", bindings())):
        path = folder / name
        assert not re.search(r"[^\x00-\x7f]", text)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
