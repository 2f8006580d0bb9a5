"""What is planned once: which plans are kept, for which calls, and how many."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from aclnn.graph.runtime.abi import TILE_STREAM

import aclnn
from aclnn.compiler import cpu_caches


def test_plans_are_cached_by_description_and_not_by_scalars():
    aclnn.clear_cache()
    x = np.ones(77, np.float32)
    out = np.empty_like(x)
    for slope in (0.1, 0.2, 0.3):
        aclnn.leaky_relu(x, slope, out=out)
        np.testing.assert_array_equal(aclnn.leaky_relu(-x, slope), -np.float32(slope))
    info = aclnn.cache_info()
    assert info["misses"] == 2
    assert info["hits"] == 4


def test_the_cache_keeps_what_was_used_last():
    code = """
import numpy as np, aclnn
from aclnn.compiler import _plan_cache, settings  # which holds what the environment says
arrays = [np.zeros(size, np.float32) for size in range(1, 9)]
_plan_cache.set_limit(4)
for array in arrays[:5]:
    aclnn.gelu(array)
before = aclnn.cache_info()
for _ in range(3):  # two that take turns do not fall back on the one that was used last
    for array in arrays[3:5]:
        aclnn.gelu(array)
after = aclnn.cache_info()
assert after["misses"] == before["misses"], (before, after)
aclnn.gelu(arrays[0])  # the oldest is the one that went
assert aclnn.cache_info()["misses"] == after["misses"] + 1
for limit in range(8):
    _plan_cache.set_limit(limit)
    for array in arrays:
        aclnn.gelu(array), aclnn.gelu(arrays[0])
    assert aclnn.cache_info()["size"] <= limit
    assert aclnn.cache_info()["misses"] == 8 if limit > 1 else True, (limit, aclnn.cache_info())
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_plan_is_made_by_the_product_that_it_is_kept_for(monkeypatch):
    from aclnn.compiler import phase_one, settings

    x = np.zeros(3, np.float32).astype("bfloat16")
    aclnn.clear_cache()
    soc = aclnn.get_soc_version()
    check_call = phase_one.check_call

    def switches_in_between(*arguments):
        settings.set_soc_version("Ascend910B")
        return check_call(*arguments)

    try:
        aclnn.set_soc_version("Ascend910")  # has no bfloat16
        monkeypatch.setattr(phase_one, "check_call", switches_in_between)
        with pytest.raises(aclnn.AclnnError, match="bfloat16"):
            aclnn.gelu_backward(x, x)
    finally:
        aclnn.set_soc_version(soc)


def test_threads_that_plan_the_same_at_one_time_have_one_plan(monkeypatch):
    from aclnn.compiler import compilation

    compile_recording, both = compilation.compile_recording, threading.Barrier(2, timeout=30)

    def at_one_time(*arguments):
        both.wait()
        return compile_recording(*arguments)

    aclnn.clear_cache()
    monkeypatch.setattr(compilation, "compile_recording", at_one_time)
    x, plans = np.zeros(5, np.float32), []
    threads = [
        threading.Thread(target=lambda: plans.append(aclnn.executor("gelu", x).planned))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(plans) == 2
    assert plans[0] is plans[1]


@pytest.mark.parametrize(
    ("last_level", "threads", "streams"),
    [(0, 1, True), (12 << 23, 1, True), (12 << 24, 1, False), (12 << 24, 2, False), (0, 2, False)],
)
def test_results_bypass_the_caches_from_a_share_of_the_last_one_on(
    monkeypatch, last_level, threads, streams
):
    """8 MiB, of which each of two threads moves less than 6."""
    monkeypatch.setattr(cpu_caches, "last_level_bytes", lambda: last_level)
    before = aclnn.get_num_threads()
    aclnn.set_num_threads(threads)
    aclnn.clear_cache()
    x = np.zeros(1 << 20, np.float32)
    (step,) = aclnn.executor("leaky_relu", x, out=np.empty_like(x)).schedule.steps
    aclnn.set_num_threads(before)
    aclnn.clear_cache()
    assert bool(step.ops[0].flags & TILE_STREAM) == streams


def test_operands_with_gaps_bypass_the_caches_as_if_the_last_one_were_small(monkeypatch):
    monkeypatch.setattr(cpu_caches, "last_level_bytes", lambda: 1 << 40)
    aclnn.clear_cache()
    before = aclnn.get_num_threads()
    aclnn.set_num_threads(1)
    x = np.zeros((1024, 4096), np.float32)
    streams = {}
    for what, g in (("gaps", x[:, ::2]), ("a row", x[:1, :2048]), ("rows apart", x[:, :2048])):
        (step,) = aclnn.executor("hardshrink_backward", g, x[:, :2048].copy()).schedule.steps
        streams[what] = bool(step.ops[0].flags & TILE_STREAM)
    aclnn.set_num_threads(before)
    aclnn.clear_cache()
    assert streams == {"gaps": True, "a row": False, "rows apart": False}


@pytest.mark.parametrize(
    ("size", "sharing", "allowed", "known", "from_size"),
    [
        ("32M", "0-1", {0, 1}, 32 << 20, 16 << 20),
        ("32M", "0-7", {0, 1, 9}, 8 << 20, 6 << 20),
        ("32768K", "0,2-3", {0, 2, 3}, 32 << 20, 16 << 20),
        ("240M", "0-47", set(range(48)), 240 << 20, 20 << 20),
        ("240M", "0-47", set(range(12)), 60 << 20, 30 << 20),
        ("32M", "x", {0}, 0, 6 << 20),
    ],
)
def test_what_the_system_says_of_caches(
    size, sharing, allowed, known, from_size, tmp_path, monkeypatch
):
    monkeypatch.setattr(cpu_caches, "_CPUS", tmp_path)
    monkeypatch.setattr(cpu_caches, "_allowed_cpus", lambda: allowed)
    cpu_caches.last_level_bytes.cache_clear()
    try:
        for name, level, held in (
            ("index0", "1", "48K"),
            ("index3", "3", size),
            ("index4", "x", "1G"),
        ):
            folder = tmp_path / "cpu0" / "cache" / name
            folder.mkdir(parents=True)
            (folder / "level").write_text(level + "\n")
            (folder / "size").write_text(held + "\n")
            (folder / "shared_cpu_list").write_text(sharing + "\n")
        assert cpu_caches.last_level_bytes() == known
        assert cpu_caches.stream_from(1) == from_size
        assert cpu_caches.stream_from(2) == max(6 << 20, from_size // 2)
    finally:
        cpu_caches.last_level_bytes.cache_clear()


def test_plans_for_options_of_several_numbers_and_for_dtypes_are_cached():
    x = np.ones((2, 3), np.float32)
    aclnn.permute(x, (1, 0)), aclnn.cast(x, np.int32)
    before = aclnn.cache_info()
    for _ in range(3):
        aclnn.permute(x, [-1, 0]), aclnn.permute(x, (1, 0)), aclnn.cast(x, "int32")
    after = aclnn.cache_info()
    assert after["misses"] - before["misses"] == 1, "other numbers are another call"
    assert after["hits"] - before["hits"] == 8
