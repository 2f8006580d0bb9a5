"""Calls of attention over whole tensors, for the tests of several files."""

import numpy as np

import aclnn

B, N, M, S, K, D = 2, 4, 2, 5, 150, 16


def random(rng, *shape, dtype=np.float16):
    return rng.standard_normal(shape).astype(dtype)


def operands(rng):
    """Queries of N heads, keys and values of M, by batches and heads."""
    return random(rng, B, N, S, D), random(rng, B, M, K, D), random(rng, B, M, K, D)


def call(*tensors, layout="BNSD", **options):
    options = {"num_heads": N, "num_key_value_heads": M, "input_layout": layout} | options
    return aclnn.fused_infer_attention_score(*tensors, **options)


def near(found, want, tolerance=2e-3):
    np.testing.assert_allclose(found.astype(float), want, tolerance, tolerance)
