"""Plans as headers for programs in C: offsets, sizes, lifetimes, and checks by the compiler."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from ..loops.tiling import ALIGNMENT
from ..names import Names

if TYPE_CHECKING:
    from ..planner.plan import WorkspacePlan

_START = """\
/* Workspace plan: {size} bytes for {count} buffers. Written by `aclnn plan --header`. */
#ifndef PLAN_H
#define PLAN_H
#include <stdint.h>

#define PLAN_SIZE UINT64_C({size})
#define PLAN_ALIGNMENT {alignment} /* of the memory that it is put into */
#define PLAN_COUNT {count}

/* A buffer is in use from its first to its last step; others may use its bytes before and after that, and
   in the steps from `free_from` to before `free_until`, where these differ. */
struct plan_buffer {{
    const char *name;
    uint64_t offset, size, first, last, free_from, free_until;
}};

"""
_END = """
#endif
"""


def plan_to_header(plan: WorkspacePlan) -> str:
    """A header in C99, or C++: what is in the workspace, not in outputs."""
    inside = [buffer for buffer in plan.buffers if not buffer.output]
    names = Names(["COUNT", "SIZE", "ALIGNMENT"])
    ids = [names.fresh(re.sub(r"\W", "_", buffer.name, flags=re.ASCII)) for buffer in inside]
    lines = [
        _START.format(size=plan.size, count=len(inside), alignment=ALIGNMENT).rstrip("\n") + "\n"
    ]
    if inside:
        lines.append("enum plan_id {")
        lines += [f"    PLAN_{name} = {index}," for index, name in enumerate(ids)]
        lines.append("};\n")
    lines.append("static const struct plan_buffer plan_buffers[PLAN_COUNT + 1] = {")
    for buffer in inside:
        free = [one for one in buffer.gaps if not one.window]
        hole = (free[0].lower, free[0].upper) if free else (0, 0)
        numbers = buffer.offset, buffer.nbytes, buffer.first, buffer.last, *hole
        words = ", ".join(f"UINT64_C({number})" for number in numbers)
        lines.append(f"    {{{_quoted(buffer.name)}, {words}}},")
    lines.append("    {0, 0, 0, 0, 0, 0, 0}\n};")
    checks = [
        f"typedef char plan_fits_{index}[(UINT64_C({one.offset}) + UINT64_C({one.nbytes}) <= PLAN_SIZE"
        f" && UINT64_C({one.offset}) % PLAN_ALIGNMENT == 0) ? 1 : -1];"
        for index, one in enumerate(inside)
    ]
    return "\n".join([*lines, "", *checks]) + _END


def _quoted(name: str) -> str:
    """A string literal of C: escapes of JSON but for those beyond ASCII, which are octal bytes."""
    data = name.encode("utf-8", "replace")
    if all(32 <= byte < 127 for byte in data):
        return json.dumps(name).replace("?", "\\?")
    return '"' + "".join(f"\\{byte:03o}" for byte in data) + '"'
