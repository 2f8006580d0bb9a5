"""Threads of matrix products: no more than a call may use, and forks while they compute."""

import ctypes
import os
import subprocess
import sys
import time

import cases
import numpy as np
import pytest
from cases import each

import aclnn

SETTLES = 0.3  # seconds after which threads stop looking for work


def time_of_others(call):
    """Seconds that other threads of this process compute while this one calls, by its own."""
    call()
    time.sleep(SETTLES)
    own, all_threads = time.thread_time(), time.process_time()
    for _ in range(4):
        call()
    own, all_threads = time.thread_time() - own, time.process_time() - all_threads
    return (all_threads - own) / own


def limited_by_context(a, b):
    with aclnn.num_threads(1):
        aclnn.matmul(a, b)


def limited_for_process(a, b):
    before = aclnn.get_num_threads()
    aclnn.set_num_threads(1)
    try:
        aclnn.matmul(a, b)
    finally:
        aclnn.set_num_threads(before)


def product_of_numpy(a, b):
    return aclnn.call(np.matmul, a, b, shape=(len(a), b.shape[1]), dtype=np.float32)


on_one = aclnn.compile(lambda a, b: a @ b, threads=1)
step_on_one = aclnn.compile(product_of_numpy, threads=1)
step = aclnn.compile(product_of_numpy)


def step_limited_by_context(a, b):
    with aclnn.num_threads(1):
        step(a, b)


@each("limited", [
    limited_by_context, limited_for_process, on_one, step_on_one, step_limited_by_context,
])  # fmt: skip
def test_a_product_uses_no_more_threads_than_are_set(limited):
    a = np.ones((768, 768), np.float32)
    assert time_of_others(lambda: limited(a, a)) < 0.15
    vector = np.ones((4096, 1), np.float32)
    matrix = np.ones((2048, 4096), np.float32)
    assert time_of_others(lambda: limited(matrix, vector)) < 0.3


def test_the_environment_binds_products():
    code = f"""
import sys
sys.path[:0] = [{os.path.dirname(__file__)!r}, {os.path.dirname(cases.__file__)!r}]
import numpy as np, aclnn
from test_product_threads import time_of_others
a = np.ones((768, 768), np.float32)
print(time_of_others(lambda: aclnn.matmul(a, a)) < 0.15)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "ACLNN_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "True\n", done.stderr


def number_of_numpy():
    """How many threads NumPy's OpenBLAS uses, as it says."""
    library = ctypes.CDLL(np.linalg._umath_linalg.__file__)
    for prefix in ("scipy_openblas_", "openblas_"):
        for suffix in ("", "64_", "_64", "_64_"):
            found = getattr(library, f"{prefix}get_num_threads{suffix}", None)
            if found is not None:
                return found()
    return pytest.skip("NumPy's BLAS does not tell how many threads it uses")


def test_the_blas_of_numpy_is_left_as_it_was():
    before, seen = number_of_numpy(), []

    def fails(a, out):
        seen.append(number_of_numpy())
        raise LookupError

    def step(function):
        return aclnn.compile(
            lambda a: aclnn.call(function, a, shape=(4, 4), dtype=np.float32), threads=1
        )

    def outer(a, out):
        step(np.negative)(a)
        seen.append(number_of_numpy())

    a = np.ones((4, 4), np.float32)
    with pytest.raises(LookupError):
        step(fails)(a)
    step(outer)(a)
    assert seen == [1, 1]
    assert number_of_numpy() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_children_forked_while_products_run_compute_products():
    code = """
import os, signal, threading, time, numpy as np, aclnn
aclnn.set_num_threads(2)
x = np.ones((500, 500), np.float32)
half = x.astype(np.float16)
for one in (x, half):
    aclnn.matmul(one, one)
stop = threading.Event()
def work(one):
    while not stop.is_set():
        aclnn.matmul(one, one)
threads = [threading.Thread(target=work, args=(one,), daemon=True) for one in (x, x, half)]
for thread in threads:
    thread.start()
codes = []
for _ in range(12):
    time.sleep(0.005)
    child = os.fork()
    if not child:
        signal.alarm(10)
        os._exit(7 if aclnn.matmul(x, x)[3, 4] == 500 and aclnn.matmul(half, half)[3, 4] == 500 else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    if codes[-1] != 7:
        break
stop.set()
for thread in threads:
    thread.join()
print(codes == [7] * 12, codes)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("True"), done.stdout + done.stderr
