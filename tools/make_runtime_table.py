"""The C header of the runtime's functions, made of their prototypes: ``runtime_table.h``.

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
    """Write the header, unless it is there as it should be."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    path, text = folder / "runtime_table.h", header()
    assert not re.search(r"[^\x00-\x7f]", text)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
