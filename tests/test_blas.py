"""The BLAS below matrix products: no more threads than a call may use, and forks while it computes."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from cases import each

import aclnn

pytest.importorskip("scipy")
from aclnn import _products, blas

SETTLES = 0.3  # seconds after which OpenBLAS's threads stop looking for work


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


on_one = aclnn.compile(lambda a, b: a @ b, threads=1)


@each("limited", [limited_by_context, limited_for_process, on_one])
def test_a_product_uses_no_more_threads_than_are_set(limited):
    a = np.ones((768, 768), np.float32)
    assert time_of_others(lambda: limited(a, a)) < 0.15
    vector = np.ones((4096, 1), np.float32)
    matrix = np.ones((2048, 4096), np.float32)
    assert time_of_others(lambda: limited(matrix, vector)) < 0.3


def test_the_environment_binds_products():
    code = f"""
import sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import numpy as np, aclnn
from test_blas import time_of_others
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


class Number:
    """How many threads the BLAS uses, as it says."""

    def __init__(self):
        import ctypes

        get, set_number, _ = blas.thread_functions()
        if not set_number:
            pytest.skip("this BLAS does not tell how many threads it uses")
        self.get = ctypes.CFUNCTYPE(ctypes.c_int)(get)
        self.set = ctypes.CFUNCTYPE(None, ctypes.c_int)(set_number)


@pytest.fixture
def number():
    found = Number()
    before = found.get()
    yield found
    found.set(before)


def test_the_blas_is_left_as_it_was(number):
    a = np.ones((600, 600), np.float32)
    for one in (1, number.get()):
        number.set(one)
        with aclnn.num_threads(1):
            aclnn.matmul(a, a)
        assert number.get() == one
        aclnn.matmul(a, a)
        assert number.get() == one


def test_calls_with_other_limits_leave_the_blas_as_it_was(number):
    before, start = number.get(), threading.Barrier(4)
    a = np.ones((300, 300), np.float32)
    wrong = []

    def multiply(limit):
        start.wait(10)
        with aclnn.num_threads(limit):
            for _ in range(60):
                wrong.extend(np.flatnonzero(aclnn.matmul(a, a) != 300)[:1])

    threads = [threading.Thread(target=multiply, args=(1 + k % 2,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert number.get() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_children_forked_while_products_run_compute_products():
    code = """
import os, signal, threading, time, numpy as np, aclnn
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


def test_functions_of_threads_come_from_the_blas_that_multiplies():
    """Of SciPy's OpenBLAS, or of none: never of NumPy's."""
    assert _products.product_kernel(("float32", "float32"), "float32", m=2, n=2, k=2)
    get, set_number, local = blas.thread_functions()
    assert bool(get) == bool(set_number or local)
    assert not (set_number and local)
