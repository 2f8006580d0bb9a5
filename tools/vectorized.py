"""Ask the compiler whether the plain loops run on whole registers; fails where one does not.

A formula that the compiler cannot turn into selections is computed element by element, ten times
slower, and no result tells. What it cannot is often a comparison with a value that was itself chosen
by a comparison with a constant: the two become a branch. Loops of fast paths are functions that take
the formula and are specialised by being inlined: of these the machine code is searched for calls by
address, which would be one for every vector. Run from the repository's root after
`make test`: ``.venv/bin/python tools/vectorized.py``, with names of instruction sets where not
all are asked about. It needs GCC, whose reports it reads.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "build" / "cython" / "aclnn" / "kernels" / "_formula_kernels.c"
FAST_PATHS = SOURCE.with_name("_simd_kernels.c")
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]
import make_kernels  # noqa: E402

from setup import (  # noqa: E402
    COMMON_FLAGS,
    INCLUDES,
    VECTORS,
    kernel_variants,
    loop_flags,
)

FOLDERS = [*INCLUDES, sysconfig.get_paths()["include"]]
# Loops that are the same would be made once.
FLAGS = [*COMMON_FLAGS, "-fPIC", "-fno-ipa-icf", *(f"-I{folder}" for folder in FOLDERS)]
FUNCTION = re.compile(
    r"static void __pyx_f_5aclnn_7kernels_16_formula_kernels_(\w+_in_\w+)\(.* \{$"
)
# What no instruction set has, what branches, or, of integers' fractions, is a call that fills memory.
ELEMENT_BY_ELEMENT = re.compile(
    r"(div|divs|div_trunc|div_floor|floor_divide|fmod|remainder|pow|pows|rpows)_(whole_)?in_int64_t|"
    r"(div|divs|pow|pows|rpows)_in_|(fmod|remainder)_in_double|frac_whole_in_int64_t|"
    r"add_relu_half_in_|\w+_complex_in_|(sin|cos|sin_f64)_in_"
)
FAST_PATH = re.compile(r"^\w+ <__pyx_f_5aclnn_7kernels_4simd_(\w+)>$")
BY_ADDRESS = re.compile(r"\tcall +\*")
VECTOR = re.compile(r"%[yz]mm\d")
REPORT = re.compile(r"_formula_kernels\.c:(\d+):\d+: optimized: loop vectorized")


def bodies(lines):
    """First and last line of every loop."""
    begins = [
        (number, found[1])
        for number, line in enumerate(lines, 1)
        if (found := FUNCTION.match(line))
    ]
    for number, name in begins:
        yield name, number, next(n for n in range(number, len(lines)) if lines[n] == "}")


def compiled(source, flags, target):
    """What GCC says while it compiles."""
    done = subprocess.run(
        [*os.environ.get("CC", "gcc").split(), *FLAGS, *flags, "-c", str(source), "-o", str(target)],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    return done.stderr


def reported(flags):
    """The lines of loops that the compiler vectorised."""
    with tempfile.TemporaryDirectory() as folder:
        asked = [*flags, "-fopt-info-vec-optimized"]
        said = compiled(SOURCE, asked, Path(folder) / "kernels.o")
    return {int(number) for number in REPORT.findall(said)}


def machine_code(flags):
    """Of each loop of the fast paths, by name."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "kernels.o"
        compiled(FAST_PATHS, flags, target)
        done = subprocess.run(
            ["objdump", "-d", "--no-show-raw-insn", str(target)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    texts = (text.partition(":\n") for text in done.stdout.split("\n\n"))
    return {found[1]: code for head, _, code in texts if (found := FAST_PATH.search(head))}


def all_specialised(isa, flags):
    """Whether loops of fast paths use vectors, and call nothing by address."""
    loops = machine_code(flags)
    generic = [
        name for name, code in loops.items() if BY_ADDRESS.search(code) or not VECTOR.search(code)
    ]
    print(f"{len(loops)} loops of fast paths with {isa}, not specialised: {generic or 'none'}")
    return len(loops) > 0 and not generic


def main():
    variants = kernel_variants()
    # The generic set is made small: its loops have no vectors.
    chosen = sys.argv[1:] or [isa for isa in variants if isa != "generic"]
    found = {isa: reported(loop_flags("_formula_kernels", isa)) for isa in chosen}
    wanted = {loop.name for loop in make_kernels.plain_loops()}
    wanted = {name for name in wanted if not ELEMENT_BY_ELEMENT.match(name)}
    seen, whole = set(), True
    for name, first, last in bodies(SOURCE.read_text(encoding="utf-8").splitlines()):
        if name not in wanted:
            continue
        seen.add(name)
        single = [isa for isa in chosen if not any(first <= line <= last for line in found[isa])]
        whole &= not single
        verdict = f"element by element with {', '.join(single)}" if single else "vectorised"
        print(f"{name:24} {verdict}")
    for name in sorted(wanted - seen):
        print(f"{name:24} not found in {SOURCE.name}")
    for isa in chosen:
        whole &= isa not in VECTORS or all_specialised(isa, loop_flags("_simd_kernels", isa))
    return 0 if whole and seen == wanted else 1


if __name__ == "__main__":
    sys.exit(main())
