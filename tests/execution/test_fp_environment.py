"""Floating-point settings that other libraries leave in a process change no result."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import platform

import numpy as np
import pytest
from cases import each
from ml_dtypes import bfloat16

import aclnn

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc",
    reason="settings are made as glibc keeps them on x86-64",
)

CONTROL = 28  # bytes to MXCSR in the environment that glibc saves
SETTINGS = {
    "flush to zero": 0x1F80 | 0x8000,
    "denormals are zero": 0x1F80 | 0x0040,
    "both": 0x1F80 | 0x8040,
    "downwards": 0x1F80 | 0x2000,
    "upwards": 0x1F80 | 0x4000,
    "towards zero": 0x1F80 | 0x6000,
}


@contextlib.contextmanager
def fp_settings(control: int):
    """The calling thread's, by glibc's functions."""
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    found, own = ctypes.create_string_buffer(32), ctypes.create_string_buffer(32)
    libm.fegetenv(found)
    ctypes.memmove(own, found, 32)
    own[CONTROL : CONTROL + 4] = control.to_bytes(4, "little")
    libm.fesetenv(own)
    try:
        yield
    finally:
        libm.fesetenv(found)


def own_settings() -> int:
    found = ctypes.create_string_buffer(32)
    ctypes.CDLL(ctypes.util.find_library("m")).fegetenv(found)
    return int.from_bytes(found[CONTROL : CONTROL + 4], "little") & 0xFFC0


def samples(dtype):
    """Numbers of all sizes, and many that are less than normal ones."""
    bits = np.dtype(dtype).itemsize * 8
    rng = np.random.default_rng(5)
    every = rng.integers(0, 1 << bits, 40_000, dtype=f"u{bits // 8}")
    tiny = rng.integers(0, 1 << (bits - 9), 40_000, dtype=f"u{bits // 8}")
    return np.concatenate([every, tiny]).view(dtype)


CALLS = {
    "mul": lambda x: aclnn.mul(x, x[::-1].copy()),
    "muls": lambda x: aclnn.mul(x, 0.1),
    "leaky_relu": lambda x: aclnn.leaky_relu(x, 1 / 3),
    "gelu": aclnn.gelu,
    "exp": aclnn.exp,
    "div": lambda x: aclnn.div(x, x[::-1].copy()),
    "cast": lambda x: aclnn.cast(x, aclnn.ACL_FLOAT16),
    "softmax": lambda x: aclnn.softmax(x.reshape(-1, 80), 1),
    "chain": aclnn.compile(lambda x: aclnn.relu(aclnn.mul(x, 0.3)) - aclnn.sigmoid(x)),
}


@each("dtype", [np.float32, np.float16, bfloat16])
@each("name", SETTINGS)
def test_results_do_not_depend_on_settings(name, dtype):
    x = samples(dtype)
    for threads in (1, 2):
        with aclnn.num_threads(threads):
            expected = {key: call(x) for key, call in CALLS.items()}
            with fp_settings(SETTINGS[name]):
                found = {key: call(x) for key, call in CALLS.items()}
                kept = own_settings()
        assert kept == SETTINGS[name] & 0xFFC0
        for key, one in expected.items():
            assert one.tobytes() == found[key].tobytes(), (key, name, threads)


def test_traps_do_not_end_the_process():
    """Some programs let invalid operations trap."""
    x = np.float32([np.inf, -1, 0, 3e38] * 100)
    y, expected = x.copy(), aclnn.sqrt(aclnn.sub(x, x))
    with fp_settings(0x1F80 & ~0x0080):
        found = aclnn.sqrt(aclnn.sub(x, y))
    assert found.tobytes() == expected.tobytes()
