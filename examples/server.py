"""An inference server: several threads run one plan, and no request allocates memory.

Requests lie in slots that are made once: an input, an output and a workspace each. Counters show that
nothing is allocated while requests are served: what Python and NumPy allocate (tracemalloc), and the
workspaces that the executor would have made itself. Run it with ``python examples/server.py``.
"""

import threading
import tracemalloc
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

import aclnn

WIDTH, HIDDEN, ROWS = 64, 256, 16  # of the network; rows of a request
THREADS, SLOTS, REQUESTS = 3, 6, 300
NOISE = 16 * 1024  # bytes that threads and queues may take; an output alone is 4 KiB a request


Array = NDArray[np.float32]


def network(x: Array, up: Array, down: Array) -> NDArray[Any]:
    hidden = aclnn.gelu(aclnn.layer_norm(x, (WIDTH,)) @ up)
    return aclnn.softmax(x + hidden @ down, -1)


class Slot:
    """The memory of one request at a time."""

    def __init__(self, executor: aclnn.aclOpExecutor):
        self.x: Array = np.zeros((ROWS, WIDTH), np.float32)
        self.y: Array = np.empty((ROWS, WIDTH), np.float32)
        self.workspace = np.empty(executor.workspace_size, np.uint8)


Slots = SimpleQueue[Slot]


def serve(
    executor: aclnn.aclOpExecutor,
    weights: Sequence[Array],
    requests: SimpleQueue[Slot | None],
    answers: Slots,
) -> None:
    """A worker: runs what comes, until it is told to stop."""
    while (slot := requests.get()) is not None:
        executor.run(slot.x, *weights, out=slot.y, workspace=slot.workspace)
        answers.put(slot)


def drive(count: int, free: Slots, requests: SimpleQueue[Slot | None], answers: Slots) -> float:
    """A client: fills free slots, and takes answers; gives what they add up to."""
    total = 0.0
    for number in range(count):
        if number >= SLOTS:
            slot = answers.get()
            total += float(slot.y[0, 0])
            free.put(slot)
        slot = free.get()
        slot.x.fill(number % 7)
        slot.x[:, 0] = 1
        requests.put(slot)
    for _ in range(min(count, SLOTS)):
        slot = answers.get()
        total += float(slot.y[0, 0])
        free.put(slot)
    return total


def main() -> None:
    draw = np.random.default_rng(0)
    up = draw.normal(0, 0.1, (WIDTH, HIDDEN)).astype(np.float32)
    down = draw.normal(0, 0.1, (HIDDEN, WIDTH)).astype(np.float32)
    example = np.zeros((ROWS, WIDTH), np.float32)
    executor = aclnn.compile(network, threads=1).executor(example, up, down)
    print(f"a request needs {executor.workspace_size} bytes of workspace")

    free, answers = Slots(), Slots()
    requests = SimpleQueue[Slot | None]()
    for _ in range(SLOTS):
        free.put(Slot(executor))
    workers = [
        threading.Thread(target=serve, args=(executor, (up, down), requests, answers))
        for _ in range(THREADS)
    ]
    for worker in workers:
        worker.start()
    try:
        drive(2 * SLOTS, free, requests, answers)  # what happens once has happened then
        tracemalloc.start()
        before, made = tracemalloc.get_traced_memory()[0], executor.own_workspaces
        drive(REQUESTS, free, requests, answers)
        peak = tracemalloc.get_traced_memory()[1] - before
        made = executor.own_workspaces - made
        tracemalloc.stop()
    finally:
        for _ in workers:
            requests.put(None)
        for worker in workers:
            worker.join()
    print(f"{REQUESTS} requests on {THREADS} threads: {made} workspaces made by the executor,")
    print(f"at most {peak} bytes allocated by Python and NumPy at a time")
    assert made == 0
    assert peak < NOISE


if __name__ == "__main__":
    main()
