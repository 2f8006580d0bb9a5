"""Ask the compiler whether steps of programs on registers end in jumps; fails where one does not.

A step that calls the next one instead of jumping to it, or stores what it was passed in registers, loses
what programs gain, and no result tells. Run from the repository's root after `make test`:
``.venv/bin/python tools/tail_calls.py``, with names of instruction sets where not all are asked about. It
needs objdump, and takes the compiler from the environment's CC.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "build" / "cython" / "aclnn" / "kernels" / "_fused_kernels.c"
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]
import make_kernels  # noqa: E402

from setup import COMMON_FLAGS, INCLUDES, INLINED_FLAGS, X86_LEVELS  # noqa: E402

FOLDERS = [*INCLUDES, sysconfig.get_paths()["include"]]
FLAGS = [*COMMON_FLAGS, *INLINED_FLAGS, "-fPIC", "-w", *(f"-I{folder}" for folder in FOLDERS)]
FUNCTION = re.compile(
    r"^[0-9a-f]+ <__pyx_f_5aclnn_7kernels_14_fused_kernels_(\w+)>:\n((?:.+\n)+)", re.MULTILINE
)
STEP = re.compile(r"\w+_step(_raw)?|load_\w+|store_\w+|stream_\w+")
JUMP = re.compile(r"\t(?:notrack )?jmp +\*", re.MULTILINE)
# Steps that are the same in all dtypes the compiler makes once; others may be a jump to it.
SAME = re.compile(
    r" *[0-9a-f]+:\tjmp +[0-9a-f]+ <__pyx_f_5aclnn_7kernels_14_fused_kernels_\w+_step(_raw)?>"
)
CALL = re.compile(r"\tcall", re.MULTILINE)
STACK = re.compile(r"\(%rsp|\(%rbp|%rsp,|\tpush")
# By instruction set, the formulas whose steps spill, and the dtypes of results where they do.
SPILLS = {"v3": r"(f16|bf16|f32)", "v4": "bf16"}
# Steps in pairs of vectors, of which these hold sixteen.
PAIRS = {"v3": r"\w+_pair_step", "v4": r"(?!)"}
LIBRARY = ("add_step", "add_pair_step", "set_step", "prefetch_step")


def listing(level: str, folder: str) -> str:
    """The machine code of the steps for an instruction set."""
    made = Path(folder) / f"{level}.o"
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run(
        [*compiler, *FLAGS, *X86_LEVELS[level], "-c", str(SOURCE), "-o", str(made)],
        check=True,
        cwd=ROOT,
    )
    return subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(made)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def spilling(level: str) -> re.Pattern[str]:
    """Names of steps that take more constants and intermediates than registers hold beside eight vectors."""
    records = make_kernels.load_records().values()
    names = [one.name for one in records if one.steps and level in one.steps.spills]
    return re.compile(rf"({'|'.join(names)})_{SPILLS[level]}_step(_raw)?|{PAIRS[level]}")


def faults(level: str, text: str) -> list[str]:
    found, steps, spills = [], 0, spilling(level)
    for name, body in FUNCTION.findall(text):
        if not STEP.fullmatch(name) or name in LIBRARY:
            continue
        steps += 1
        if SAME.match(body):
            continue
        if CALL.search(body) or not JUMP.search(body):
            found.append(f"{level}: {name} ends in no jump, or calls")
        if STACK.search(body) and not spills.fullmatch(name):
            found.append(f"{level}: {name} uses the stack")
    print(f"{level}: {steps} steps")
    return found if steps else [f"{level}: no steps were found"]


def main() -> int:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for level in sys.argv[1:] or X86_LEVELS:
            found += faults(level, listing(level, folder))
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
