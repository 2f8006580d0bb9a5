"""Peaks of memory of six models: planned here, and measured of PyTorch and ONNX Runtime.

    python tools/compare_peaks.py [MODEL ...]

Each run has a process of its own, one thread, and an allocator that gives memory back at once. What is
measured is the resident memory of a second run above that before it, without the input, with the output.
"""

from __future__ import annotations

import ctypes
import gc
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

SELF = Path(__file__).resolve()
MEASURED = ("pytorch", "onnxruntime")


class Block(nn.Module):
    """Attention with whole scores, and an MLP."""

    def __init__(self, width: int, heads: int, gated: bool = False):
        super().__init__()
        self.heads, self.gated = heads, gated
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.gate = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape

        def split(y: torch.Tensor) -> torch.Tensor:
            return y.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

        h = self.before(x)
        scores = split(self.q(h)) @ split(self.k(h)).transpose(2, 3)
        made = torch.softmax(scores * 0.1, -1) @ split(self.v(h))
        x = x + self.o(made.transpose(1, 2).reshape(batch, length, width))
        h = self.after(x)
        hidden = torch.tanh(self.gate(h)) * self.up(h) if self.gated else torch.relu(self.up(h))
        return x + self.down(hidden)


class UNet(nn.Module):
    """Two levels with a skip from each to the other side."""

    def __init__(self, channels: int):
        super().__init__()
        c = channels
        self.a, self.b = nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, 2 * c, 3, padding=1)
        self.c, self.d = nn.Conv2d(2 * c, 2 * c, 3, padding=1), nn.Conv2d(3 * c, c, 3, padding=1)
        self.e = nn.Conv2d(c, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = torch.relu(self.a(x))
        b = torch.relu(self.b(nn.functional.max_pool2d(a, 2)))
        c = nn.functional.interpolate(torch.relu(self.c(b)), scale_factor=2.0, mode="nearest")
        return self.e(torch.relu(self.d(torch.cat([a, c], 1))))


def _cnn() -> nn.Module:
    layers: list[nn.Module] = []
    for old, new in ((3, 32), (32, 64), (64, 64)):
        layers += [nn.Conv2d(old, new, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers)


MODELS: dict[str, Callable[[], tuple[nn.Module, torch.Tensor]]] = {
    "mlp": lambda: (
        nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 512)),
        torch.randn(4096, 512),
    ),
    "transformer": lambda: (nn.Sequential(*[Block(256, 4) for _ in range(4)]), torch.randn(4, 512, 256)),
    "gated": lambda: (nn.Sequential(*[Block(256, 4, True) for _ in range(4)]), torch.randn(4, 512, 256)),
    "cnn": lambda: (_cnn(), torch.randn(8, 3, 192, 192)),
    "unet": lambda: (UNet(32), torch.randn(2, 3, 256, 256)),
    "autoencoder": lambda: (
        nn.Sequential(nn.Linear(4096, 1024), nn.Tanh(), nn.Linear(1024, 64), nn.Tanh(), nn.Linear(64, 1024), nn.Tanh(), nn.Linear(1024, 4096)),
        torch.randn(2048, 4096),
    ),
}  # fmt: skip


def exported(model: nn.Module, given: torch.Tensor) -> bytes:
    """The model in ONNX."""
    buffer = io.BytesIO()
    torch.onnx.export(model, (given,), buffer, dynamo=False, input_names=["x"])
    return buffer.getvalue()


def planned(name: str) -> dict[str, int]:
    """Bytes of intermediates by plans: of PyTorch's graph, and of the executor of the model in ONNX."""
    import aclnn
    from aclnn.reports.footprint import footprint

    model, given = MODELS[name]()
    of_graph = footprint(model.eval(), given, kernel_workspace=0)
    whole = of_graph.plan.size + of_graph.of_kind("outputs")
    with aclnn.num_threads(1):
        made = footprint(aclnn.from_onnx(exported(model.eval(), given)), kernel_workspace=0)
    return {"graph": whole, "plan": made.plan.size + made.of_kind("outputs")}


def measure(name: str, library: str) -> int:
    """Bytes of a second run above those before it."""
    torch.manual_seed(0)
    model, given = MODELS[name]()
    run = _runner(library, model.eval(), given)
    run()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    kept = run()
    peak = _status("VmHWM")
    del kept
    return max(peak - before, 0)


def _runner(library: str, model: nn.Module, given: torch.Tensor) -> Callable[[], Any]:
    torch.set_num_threads(1)
    if library == "pytorch":

        def run() -> Any:
            with torch.no_grad():
                return model(given)

        return run
    data, x = exported(model, given), given.numpy()
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": x})


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"the system does not tell {field}")


def main(names: list[str]) -> None:
    settings = {
        "MALLOC_MMAP_THRESHOLD_": "65536",
        "MALLOC_TRIM_THRESHOLD_": "65536",
        "OMP_NUM_THREADS": "1",
    }
    print(f"{'MiB':12} {'graph':>8} {'plan':>8} " + " ".join(f"{one:>12}" for one in MEASURED))
    for name in names or MODELS:
        found = [number / 2**20 for number in planned(name).values()]
        for library in MEASURED:
            command = [sys.executable, str(SELF), "--measure", name, library]
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    command,
                    cwd=folder,
                    env={**os.environ, **settings},
                    capture_output=True,
                    check=True,
                    text=True,
                )
            found.append(json.loads(done.stdout.splitlines()[-1]) / 2**20)
        print(
            f"{name:12} {found[0]:8.1f} {found[1]:8.1f} "
            + " ".join(f"{x:12.1f}" for x in found[2:])
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(measure(*sys.argv[2:]))
    else:
        main(sys.argv[1:])
