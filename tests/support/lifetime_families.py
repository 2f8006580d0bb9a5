"""Lifetimes like those of the public static-allocation benchmarks, made from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from aclnn.graph import Lifetime

COUNTS = (150, 250, 350, 450)
CAPACITY = 1 << 20  # of the sliced rectangles: their optimum, and their lower bound

Rows = list[tuple[int, int, int]]  # lower, upper, bytes


def residuals(rng: random.Random, count: int) -> Rows:
    """A training step: activations that wait for the backward pass, and bursts of short ones."""
    layers = count // 5
    rows = []
    for layer in range(layers):
        size = rng.choice((4096, 8192, 12288, 16384, 24576)) * rng.randint(1, 4)
        rows.append((2 * layer, 4 * layers - 2 * layer, size))
    while len(rows) < count:
        lower = rng.randrange(4 * layers)
        rows.append((lower, lower + rng.randint(1, 4), rng.randint(1, 40) * 1536))
    return rows


def nested(rng: random.Random, count: int) -> Rows:
    """U-Nets: skips that nest, large and short inside, with work between."""
    rows = []
    start = 0
    while len(rows) < count:
        depth = rng.randint(4, 9)
        width = 6 * depth
        for level in range(depth):
            size = max(64, (1 << 18) >> level) + rng.randrange(0, 4096, 64)
            rows.append((start + 3 * level, start + 2 * width - 3 * level, size))
            for side in (3 * level, 2 * width - 3 * level - 3):
                for _ in range(3):
                    lower = start + side + rng.randrange(3)
                    piece = size * rng.randint(1, 8) // 4
                    rows.append((lower, lower + rng.randint(1, 3), piece))
        start += width
    return rows[:count]


def heavy_tailed(rng: random.Random, count: int) -> Rows:
    """Any intervals, sizes whose logarithm is even."""
    rows = []
    for _ in range(count):
        lower, span = rng.randrange(count), int(1 + rng.expovariate(1 / (count / 12)))
        rows.append((lower, lower + span, int(64 * 2 ** rng.uniform(0, 11))))
    return rows


def sliced(rng: random.Random, count: int) -> Rows:
    """A rectangle of steps by bytes cut until there are enough pieces: no byte of it is free."""
    pieces = [(0, count, 0, CAPACITY)]
    while len(pieces) < count:
        place = max(
            rng.sample(range(len(pieces)), min(8, len(pieces))),
            key=lambda i: (pieces[i][1] - pieces[i][0]) * (pieces[i][3] - pieces[i][2]),
        )
        lower, upper, low, high = pieces[place]
        flat = high - low >= 128 and rng.random() < 0.6
        if flat:
            cut = low + 64 * rng.randint(1, (high - low) // 64 - 1)
            parts = (lower, upper, low, cut), (lower, upper, cut, high)
        elif upper - lower > 1:
            cut = rng.randint(lower + 1, upper - 1)
            parts = (lower, cut, low, high), (cut, upper, low, high)
        else:
            continue
        pieces[place] = parts[0]
        pieces.append(parts[1])
    rng.shuffle(pieces)
    return [(lower, upper, high - low) for lower, upper, low, high in pieces]


def challenging(rng: random.Random, count: int) -> Rows:
    """Sliced rectangles whose pieces end early now and then: nearly tight, with room to err."""
    rows = []
    for lower, upper, size in sliced(rng, count):
        slack = rng.random() < 0.3 and upper - lower > 2
        rows.append((lower + slack, upper, size))
    return rows


def walled(rng: random.Random, count: int) -> Rows:
    """A rectangle filled from the bottom, wherever it is lowest: no cut goes through all of it.

    One of three pieces ends early. There are about as many as asked for.
    """
    width = count
    tops = [0] * width
    across = 1.6 * count**0.5  # steps of one, on average, if there is room for it
    rows = []
    while (floor := min(tops)) < CAPACITY:
        left = tops.index(floor)
        right = left
        while right < width and tops[right] == floor:
            right += 1
        span = min(right - left, 1 + int(rng.expovariate(1 / across)))
        begin = rng.choice((left, right - span))
        walls = [tops[at] for at in (left - 1, right) if 0 <= at < width]
        step = min(walls, default=CAPACITY) - floor
        size = 64 * max(1, int(rng.expovariate(64 * count**0.5 / 2 / CAPACITY)))
        size = step if span == right - left and rng.random() < 0.3 else size
        size = min(size, CAPACITY - floor)
        tops[begin : begin + span] = [floor + size] * span
        early = rng.random() < 0.3 and span > 2
        rows.append((begin + early, begin + span, size))
    rng.shuffle(rows)
    return rows


def pipelined(rng: random.Random, count: int) -> Rows:
    """Tiles of few sizes on a scratchpad: many alike, prefetched at once, weights that stay."""
    sizes = [rng.randint(8, 400) * 128 for _ in range(9)]
    rows = []
    for at in range(count):
        step = at // 2
        span = rng.choice((1, 2, 2, 3, 5, 8, 13, 40))
        rows.append((max(0, step - rng.randrange(4)), step + span, rng.choice(sizes)))
    return rows


FAMILIES: dict[str, Callable[[random.Random, int], Rows]] = {
    one.__name__: one
    for one in (residuals, nested, heavy_tailed, sliced, challenging, walled, pipelined)
}  # fmt: skip


def lifetimes(rows: Rows) -> list[Lifetime]:
    return [Lifetime(f"b{place}", *row) for place, row in enumerate(rows)]


def instances(family: str, seeds: int = 2) -> Iterator[list[Lifetime]]:
    """Problems of a family, of every count, the same everywhere."""
    for count in COUNTS:
        for seed in range(seeds):
            rng = random.Random(f"{family} {count} {seed}")
            yield lifetimes(FAMILIES[family](rng, count))


def chain(count: int) -> list[Lifetime]:
    """A deep network: what is live at once is little."""
    return lifetimes([(i, i + 2 + i % 3, 64 * (1 + i * 7919 % 97)) for i in range(count)])


def wide(count: int) -> list[Lifetime]:
    """Half of them are live at once."""
    half = count // 2
    return lifetimes(
        [(i, half + i // 2 + 1, 64 * (1 + i * 7919 % 97)) for i in range(half)]
        + [(half + i, half + i + 1 + i % 7, 64 * (1 + i * 104729 % 89)) for i in range(half)]
    )
