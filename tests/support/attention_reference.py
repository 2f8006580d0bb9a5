"""Attention and its gradients in float64, and the bound of the error of float32 sums."""

import math

import numpy as np


def scores_of(q, k, *, scale=None, shift=None, visible=None, shift_first=False):
    """Of [B, N, S, D] and [B, M, K, D], in float64; hidden ones are -inf."""
    q, k = q.astype(np.float64), np.repeat(k.astype(np.float64), q.shape[1] // k.shape[1], 1)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    shift = 0.0 if shift is None else shift.astype(np.float64)
    products = q @ k.swapaxes(-1, -2)
    found = scale * (products + shift) if shift_first else scale * products + shift
    return found if visible is None else np.where(visible, found, -np.inf)


def reference(q, k, v, *, sink=None, **options):
    """Results, logarithms of sums, and a bound of the error of float32 sums."""
    s = scores_of(q, k, **options)
    v = np.repeat(v.astype(np.float64), q.shape[1] // v.shape[1], 1)
    some = np.isfinite(s).any(-1, keepdims=True)
    most = np.where(some, s.max(-1, keepdims=True, initial=-np.inf), 0)
    weights = np.exp(s - most)
    total = weights.sum(-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink.astype(np.float64)[None, :, None, None] - most)
    out = np.where(some, weights @ v / np.where(some, total, 1), 0)
    lse = np.where(some, most + np.log(np.where(some, total, 1)), np.inf)[..., 0]
    return out, lse, bound_of(q, k, v, options.get("scale"), options.get("shift"))


def bound_of(q, k, v, scale=None, shift=None):
    """As docs/numbers.md has it."""
    depth, keys = q.shape[-1], k.shape[-2]
    scale = 1 / math.sqrt(depth) if scale is None else scale
    k = np.repeat(k.astype(np.float64), q.shape[1] // k.shape[1], 1)
    shift = None if shift is None else shift.astype(np.float64)
    largest = scale * (np.abs(q.astype(np.float64)) @ np.abs(k).swapaxes(-1, -2))
    most = np.max(largest, initial=0) + (
        0 if shift is None else np.nanmax(np.abs(shift[shift > -1e30]), initial=0)
    )
    return (
        (2 * (depth + 6) * most + 2 * (134 + keys / 64)) * 2.0**-24 * np.max(np.abs(v), initial=0)
    )


def gradients(grad, q, k, v, **options):
    """In float64, from the definition of the softmax's derivative."""
    s = scores_of(q, k, **options)
    group = q.shape[1] // k.shape[1]
    scale = options.get("scale") or 1 / math.sqrt(q.shape[-1])
    grad, q = grad.astype(np.float64), q.astype(np.float64)
    k, v = (np.repeat(x.astype(np.float64), group, 1) for x in (k, v))
    some = np.isfinite(s).any(-1, keepdims=True)
    p = np.exp(s - np.where(some, s.max(-1, keepdims=True), 0))
    p = np.where(some, p / np.where(some, p.sum(-1, keepdims=True), 1), 0)
    grad_p = grad @ v.swapaxes(-1, -2)
    slopes = p * (grad_p - (p * grad_p).sum(-1, keepdims=True))
    found = [scale * slopes @ k, scale * slopes.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ grad]
    for place in (1, 2):
        one = found[place]
        found[place] = one.reshape(one.shape[0], -1, group, *one.shape[2:]).sum(2)
    return found
