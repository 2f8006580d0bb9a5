"""A Llama-like decoder with its key-value cache, a token at a time: one plan for all positions.

    python examples/decoder.py

The position is a NumPy integer. Writes at `keys[:, position]` and reads at `turns[position]` take it from memory at
each run, so that a token costs no plan. The cache grows in buckets, with a plan for each capacity, made ahead.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import aclnn

WIDTH, HEADS, LAYERS, WORDS = 256, 4, 2, 1000
SIZE = WIDTH // HEADS
BUCKETS = (64, 128, 256, 512)  # tokens that a cache has room for
TOKENS = 100


@dataclass
class Layer:
    """Weights of one layer."""

    before: np.ndarray
    qkv: np.ndarray
    out: np.ndarray
    after: np.ndarray
    gate: np.ndarray
    down: np.ndarray


@dataclass
class Cache:
    """Keys and values of one layer: (HEADS, room, SIZE)."""

    keys: np.ndarray
    values: np.ndarray


def empty(room: int) -> list[Cache]:
    """A cache for each layer."""
    pairs = np.zeros((LAYERS, 2, HEADS, room, SIZE), np.float32)
    return [Cache(*pair) for pair in pairs]


def grown(caches: list[Cache], room: int) -> list[Cache]:
    """The same caches with room for more tokens."""
    made = empty(room)
    for old, new in zip(caches, made, strict=True):
        length = old.keys.shape[1]
        new.keys[:, :length], new.values[:, :length] = old.keys, old.values
    return made


def layer(random: np.random.Generator) -> Layer:
    def weights(*shape: int) -> np.ndarray:
        found = random.standard_normal(shape) / np.sqrt(shape[0])
        return np.asarray(found, np.float32)

    ones = np.ones(WIDTH, np.float32)
    return Layer(
        ones, weights(WIDTH, 3 * WIDTH), weights(WIDTH, WIDTH), ones,
        weights(WIDTH, 4 * WIDTH), weights(2 * WIDTH, WIDTH),
    )  # fmt: skip


def angles(length: int) -> np.ndarray:
    """Cosines and sines of rotary positions: (length, 2, SIZE)."""
    rates = 10000.0 ** (-np.arange(0, SIZE, 2) / SIZE)
    turns = np.outer(np.arange(length), rates)
    both = np.stack([np.cos(turns), np.sin(turns)], 1)
    return np.asarray(np.concatenate([both, both], -1), np.float32)


def rotated(x: np.ndarray, turn: np.ndarray) -> Any:
    half = SIZE // 2
    return x * turn[0] + np.concatenate([-x[:, half:], x[:, :half]], -1) * turn[1]


def decoded(
    word: np.integer[Any],
    position: np.integer[Any],
    table: np.ndarray,
    head: np.ndarray,
    turns: np.ndarray,
    layers: list[Layer],
    caches: list[Cache],
) -> Any:
    """The scores of the next word; keys and values of this one go into the caches."""
    x = table[word]
    turn = turns[position]
    room: int = caches[0].keys.shape[1]
    hidden: Any = np.arange(room) > position
    for own, cache in zip(layers, caches, strict=True):
        found = (aclnn.rms_norm(x, WIDTH, own.before) @ own.qkv).reshape(3 * HEADS, SIZE)
        q, k, v = np.split(found, 3)
        cache.keys[:, position] = rotated(k, turn)
        cache.values[:, position] = v
        scores = (cache.keys @ rotated(q, turn)[..., None])[..., 0] * np.float32(SIZE**-0.5)
        shares = aclnn.softmax(np.where(hidden, np.float32(-np.inf), scores), -1)
        x = x + (shares[:, None] @ cache.values).reshape(WIDTH) @ own.out
        gate, up = np.split(aclnn.rms_norm(x, WIDTH, own.after) @ own.gate, 2)
        x = x + (aclnn.silu(gate) * up) @ own.down
    return head @ x


step = aclnn.compile(decoded)


def main() -> None:
    random = np.random.default_rng(0)
    layers = [layer(random) for _ in range(LAYERS)]
    table, head = (random.standard_normal((WORDS, WIDTH)).astype(np.float32) for _ in range(2))
    weights = table, head, angles(BUCKETS[-1]), layers
    start = np.int64(0)
    for room in BUCKETS:  # before the first token, and for what comes later while tokens run
        step.warm_up(start, start, *weights, empty(room), background=room > BUCKETS[0])
    caches = empty(BUCKETS[0])
    word: np.integer[Any] = np.int64(1)
    words: list[int] = []
    times: list[float] = []
    for position in range(TOKENS):
        room = int(caches[0].keys.shape[1])
        if position == room:
            caches = grown(caches, min(size for size in BUCKETS if size > room))
        begin = time.perf_counter()
        scores = step(word, np.int64(position), *weights, caches)
        times.append((time.perf_counter() - begin) * 1e3)
        word = np.argmax(scores)
        words.append(int(word))
    print("words", *words[:12])
    print(
        f"{len(words)} tokens, {step.cache_info()['size']} plans, {np.median(times):.2f} ms a token"
    )


if __name__ == "__main__":
    main()
