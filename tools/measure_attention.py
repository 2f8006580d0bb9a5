"""Measure attention of one to many queries beside PyTorch's, on one and two threads.

    python tools/measure_attention.py [--heads 8] [--of 64] [--dtypes float32 bfloat16] [--threads 1 2]

Prints the table of `docs/performance.md`: PyTorch's time over ours, the least of rounds each. Both have a process of
their own, which take turns: threads of one that wait for work would take the processors of the other. Results are
compared before they are timed.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
from collections.abc import Callable, Iterator
from time import perf_counter, sleep
from typing import Any

QUERIES = (1, 16, 128, 1024)
KEYS = (128, 512, 1024, 4096)
SETTLE = 3e-3  # seconds in which threads of the contender before go to sleep
BOUNDS = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--of", type=int, default=64, help="elements of a head")
    parser.add_argument("--dtypes", nargs="*", default=["float32", "bfloat16"], choices=BOUNDS)
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--queries", nargs="*", type=int, default=QUERIES)
    parser.add_argument("--keys", nargs="*", type=int, default=KEYS)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--budget", type=float, default=0.003, help="seconds of a round of each")
    return parser.parse_args()


def call_of(whose: str, cell: tuple[Any, ...]) -> Callable[[], Any]:
    """The call of one library on a cell's operands."""
    import torch

    dtype, heads, size, queries, keys = cell
    torch.manual_seed(0)
    operands = [
        torch.randn(1, heads, rows, size).to(getattr(torch, dtype))
        for rows in (queries, keys, keys)
    ]
    if whose == "torch":
        return lambda: torch.nn.functional.scaled_dot_product_attention(*operands)
    import aclnn

    return lambda: aclnn.scaled_dot_product_attention(*operands)


def contend(whose: str, threads: int, pipe: Any) -> None:
    """Answer questions until there are no more: a cell for its result, a number of calls for their time."""
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    if whose == "aclnn":
        import aclnn

        aclnn.set_num_threads(threads)
    call: Callable[[], Any] = lambda: None  # noqa: E731
    for question in iter(pipe.recv, None):
        if isinstance(question, tuple):
            call = call_of(whose, question)
            pipe.send(call().float().numpy())
            continue
        sleep(SETTLE)
        call()
        begin = perf_counter()
        for _ in range(question):
            call()
        pipe.send((perf_counter() - begin) / question)


class Contenders:
    """A process for each library, which waits while the other is at work."""

    def __init__(self, threads: int):
        os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(threads)
        context = multiprocessing.get_context("spawn")
        self.pipes = {}
        self.processes = []
        for whose in ("torch", "aclnn"):
            self.pipes[whose], other = context.Pipe()
            process = context.Process(target=contend, args=(whose, threads, other))
            process.start()
            self.processes.append(process)

    def ask(self, whose: str, question: Any) -> Any:
        self.pipes[whose].send(question)
        return self.pipes[whose].recv() if question is not None else None

    def ratio(self, cell: tuple[Any, ...], rounds: int, budget: float) -> float:
        """PyTorch's time over ours."""
        results = {whose: self.ask(whose, cell) for whose in self.pipes}
        error = abs(results["torch"] - results["aclnn"]).max()
        assert error <= BOUNDS[cell[0]], f"{cell}: results differ by {error}"
        counts = {whose: max(1, int(budget / self.ask(whose, 1))) for whose in self.pipes}
        best = dict.fromkeys(counts, math.inf)
        for _ in range(rounds):
            for whose, count in counts.items():
                best[whose] = min(best[whose], self.ask(whose, count))
        return best["torch"] / best["aclnn"]

    def end(self) -> None:
        for whose in self.pipes:
            self.ask(whose, None)
        for process in self.processes:
            process.join()


def lines(given: argparse.Namespace) -> Iterator[str]:
    """The table, line by line."""
    pairs = [(queries, keys) for queries in given.queries for keys in given.keys]
    yield f"| threads | dtype | {' | '.join([f'{q} x {k}' for q, k in pairs])} |"
    yield f"| --- | --- |{' --- |' * len(pairs)}"
    for threads in given.threads:
        contenders = Contenders(threads)
        for dtype in given.dtypes:
            found = [
                contenders.ratio((dtype, given.heads, given.of, *pair), given.rounds, given.budget)
                for pair in pairs
            ]
            words = [f"{ratio:.2f}{' !' if ratio < 1 else ''}" for ratio in found]
            yield f"| {threads} | {dtype} | {' | '.join(words)} |"
        contenders.end()


def main() -> None:
    for line in lines(parsed()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
