"""Costs of calls from C, beside a program that calls PyTorch's C++ library if that is there.

    python tools/capi_costs.py [--json FILE]

Times are the least of nine rounds, in nanoseconds; the first call's is that of a whole new process.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
import statistics
import subprocess
import tempfile
from pathlib import Path

from aclnn.capi import installation

HERE = Path(__file__).parent
LIMITS = {
    "first_ns": 0.5e9,
    "tensor": 300,
    "both_phases": 600,
    "both_phases_and_tensors": 8000,
    "repeated_phase_two": 100,
    "launch_on_stream": 3000,
}
TORCH = r"""
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <chrono>
#include <cstdio>
int main() {
  at::set_num_threads(1);
  at::Tensor a = at::ones({16}), b = at::ones({16}), c = at::empty({16});
  double least = 1e18;
  for (int round = 0; round < 9; round++) {
    auto begin = std::chrono::steady_clock::now();
    for (int k = 0; k < 20000; k++) at::add_out(c, a, b);
    auto took = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / 20000;
    if (took < least) least = took;
  }
  std::printf("pytorch_add_out %.1f\n", least);
}
"""


def build(source: Path, program: Path, flags: list[str]) -> None:
    compiler = "g++" if source.suffix == ".cpp" else "gcc"
    subprocess.run([compiler, "-O2", str(source), *flags, "-o", str(program)], check=True)


def measured(program: Path) -> dict[str, float]:
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    return {name: float(ns) for name, ns in (line.split() for line in done.stdout.splitlines())}


def of_pytorch(folder: Path) -> dict[str, float]:
    """What a call costs that does the same, in C++; nothing where there is no PyTorch."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return {}
    root = Path(found.origin).parent
    source = folder / "torch.cpp"
    source.write_text(TORCH)
    flags = ["-std=c++20", f"-I{root}/include", f"-I{root}/include/torch/csrc/api/include"]
    flags += [f"-L{root}/lib", "-ltorch", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{root}/lib"]
    build(source, folder / "torch", flags)
    return measured(folder / "torch")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--without-pytorch", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        flags = shlex.split(f"{installation.cflags()} {installation.libs()}")
        build(HERE / "capi_costs.c", folder / "costs", flags)
        runs = [measured(folder / "costs") for _ in range(3)]
        found = {one: statistics.median(run[one] for run in runs) for one in runs[0]}
        if not options.without_pytorch:
            found |= of_pytorch(folder)
    for one, ns in found.items():
        limit = f"  (at most {LIMITS[one]:.0f})" if one in LIMITS else ""
        print(f"{one:26}{ns:14.1f} ns{limit}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    return int(any(found[one] > limit for one, limit in LIMITS.items()))


if __name__ == "__main__":
    raise SystemExit(main())
