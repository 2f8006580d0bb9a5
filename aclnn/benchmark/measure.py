"""Timing: medians of rounds in which the contenders alternate."""

from __future__ import annotations

import gc
import threading
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

# Runs something so many times and says how many seconds all of them took.
Timer = Callable[[int], float]
MOST_REPEATS = 200_000


@dataclass(frozen=True, slots=True)
class Sample:
    """One contender's seconds per call: the median of the rounds, and the extremes.

    >>> Sample.of([3.0, 1.0, 2.0], repeat=5)
    Sample(median=2.0, least=1.0, most=3.0, repeat=5)
    """

    median: float
    least: float
    most: float
    repeat: int

    @classmethod
    def of(cls, seconds: Sequence[float], repeat: int) -> Sample:
        return cls(median(seconds), min(seconds), max(seconds), repeat)


def looped(call: Callable[[], Any]) -> Timer:
    """Time calls one after the other on this thread.

    A ``partial`` is written out, as users write the call: it would itself take 0.1 us to hand
    keyword arguments on to a function in C.

    >>> looped(list)(10) > 0
    True
    >>> looped(partial(sorted, [2, 1], reverse=True))(10) > 0
    True
    """
    if not isinstance(call, partial):
        return timeit.Timer("call()", globals={"call": call}).timeit
    places = [f"_{i}" for i in range(len(call.args))]
    names = {"call": call.func, **dict(zip(places, call.args, strict=True)), **call.keywords}
    statement = f"call({', '.join([*places, *(f'{key}={key}' for key in call.keywords)])})"
    return timeit.Timer(statement, globals=names).timeit


def side_by_side(calls: Sequence[Callable[[], Any]]) -> Timer:
    """Time calls that release the GIL, each on a thread of its own, until the last is done.

    Each thread repeats its own call without waiting for the others, so that what is timed is the
    work and not how threads meet.

    >>> side_by_side([list, dict])(10) > 0
    True
    """
    if len(calls) == 1:
        return looped(calls[0])

    def timer(count: int) -> float:
        gate = threading.Barrier(len(calls) + 1)

        def work(call: Callable[[], Any]) -> None:
            gate.wait()
            for _ in range(count):
                call()

        threads = [threading.Thread(target=work, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        gate.wait()
        begin = time.perf_counter()
        for thread in threads:
            thread.join()
        return time.perf_counter() - begin

    return timer


def alternate(
    timers: Mapping[str, Timer], rounds: int, budget: float = 4e-3, pause: float = 0.0
) -> dict[str, Sample]:
    """Measure all contenders in turn, so that a drifting machine is fair to each of them.

    Parameters
    ----------
    timers : mapping of str to Timer
        The contenders. Each round begins with another of them.
    rounds : int
        How many times each is measured.
    budget : float
        Seconds that one measurement should at least take; calls are repeated to fill it.
    pause : float
        Seconds to wait before each measurement, until worker threads of the contender before,
        which spin for more work, have gone to sleep.

    Examples
    --------
    >>> samples = alternate({"list": looped(list), "dict": looped(dict)}, 3, 1e-5)
    >>> sorted(samples)
    ['dict', 'list']
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        repeats = {name: _repeats(timer, budget) for name, timer in timers.items()}
        seconds: dict[str, list[float]] = {name: [] for name in timers}
        names = list(timers)
        for turn in range(rounds):
            first = turn % len(names)
            for name in (*names[first:], *names[:first]):
                time.sleep(pause)
                seconds[name].append(_measure(timers[name], repeats[name]))
    finally:
        if collecting:
            gc.enable()
    return {name: Sample.of(times, repeats[name]) for name, times in seconds.items()}


def _measure(timer: Timer, repeat: int) -> float:
    if repeat > 1:
        # Fetches the operands back into the cache, and gives woken threads time to find a CPU.
        timer((repeat + 1) // 2)
    return timer(repeat) / repeat


def _repeats(timer: Timer, budget: float) -> int:
    """Number of calls that fill the budget; one slow call must not decide that."""
    timer(1)
    count, elapsed = 1, min(timer(1) for _ in range(3))
    while elapsed < budget / 8 and count < MOST_REPEATS:
        count *= 4
        elapsed = min(timer(count) for _ in range(2))
    return max(1, min(MOST_REPEATS, round(count * budget / elapsed)))
