"""The runtime as programs in C see it: statuses, messages, handles, threads, forks; no lock is taken."""

import ctypes
import itertools
import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from cases import each
from runtime_calls import Runtime

import aclnn
from aclnn.acl import from_c, prototypes
from aclnn.acl.stream import submit

OK, NULL, PARAM, HANDLE, RUNTIME = 0, 100000, 107000, 107017, 361001
PATIENCE = 30
H2D, D2H, D2D = 1, 2, 3
rt = Runtime()
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
libc = ctypes.CDLL(None)


def address_of(function):
    return ctypes.cast(function, ctypes.c_void_p).value


@pytest.fixture
def stream():
    handle = rt.made("aclrtCreateStream")
    yield handle
    rt.aclrtDestroyStream(handle)
    rt.message()


@pytest.fixture
def block():
    address = rt.made("aclrtMalloc", 256, 0)
    yield address
    rt.aclrtFree(address)
    rt.message()


def failed(status, expected, *words):
    """Whether a call failed as it should, with a message that has some words."""
    assert status == expected
    text = rt.message()
    assert text is not None
    for word in words:
        assert word in text, text


def test_the_table_has_every_function():
    assert rt.version == 1
    assert rt.size >= 8 + 8 * len(prototypes.RUNTIME)


# --- Memory -----------------------------------------------------------------------------------------


def test_memory_is_the_one_that_python_sees(block):
    assert block % 512 == 0
    assert aclnn.aclrtMemset(block, 256, 7, 256) == OK
    host = (ctypes.c_char * 256)()
    assert rt.aclrtMemcpy(ctypes.addressof(host), 256, block, 256, D2H) == OK
    assert bytes(host) == b"\7" * 256
    address, _ = aclnn.aclrtMalloc(64, 0)
    assert rt.aclrtFree(address) == OK
    assert aclnn.aclrtFree(address) == PARAM
    x = aclnn.aclCreateTensor((4,), 0, None, 0, 2, (4,), block)
    assert x is not None


@pytest.mark.parametrize("name", ["aclrtMalloc", "aclrtMallocAlign32", "aclrtMallocCached"])
def test_allocating_in_wrong_ways(name):
    allocate, made = getattr(rt, name), ctypes.c_void_p(1)
    failed(allocate(None, 8, 0), PARAM, name, "devPtr is null")
    failed(allocate(ctypes.byref(made), 0, 0), PARAM, name, "size is 0")
    assert made.value is None
    failed(allocate(ctypes.byref(made), 8, 8), PARAM, name, "policy is 8")
    failed(allocate(ctypes.byref(made), 2**46, 0), 207001, name, "cannot be allocated")
    failed(allocate(ctypes.byref(made), 2**64 - 1, 0), 207001, name)
    assert allocate(ctypes.byref(made), 8, 0x100 | 0x100000 | 2) == OK  # kinds of memory are hints
    assert rt.aclrtFree(made) == OK


def test_room_behind_a_size_may_be_touched():
    addresses = [rt.made("aclrtMalloc", size, 0) for size in (1, 31, 32, 480, 481, 5000, 40000)]
    for address, size in zip(addresses, (1, 31, 32, 480, 481, 5000, 40000), strict=True):
        ctypes.memset(address, 5, -(-size // 32) * 32 + 32)
    spans = sorted(zip(addresses, (1, 31, 32, 480, 481, 5000, 40000), strict=True))
    for (low, size), (high, _) in itertools.pairwise(spans):
        assert low + -(-size // 32) * 32 + 32 <= high
    for address in addresses:
        assert rt.aclrtFree(address) == OK


def test_freeing_in_wrong_ways(block):
    failed(rt.aclrtFree(None), PARAM, "aclrtFree", "0x0")
    failed(rt.aclrtFree(block + 1), PARAM, hex(block + 1))
    failed(rt.aclrtFreeHost(block), PARAM, "aclrtFreeHost")
    host = rt.made("aclrtMallocHost", 64)
    failed(rt.aclrtFree(host), PARAM)
    assert rt.aclrtFreeHost(host) == OK
    failed(rt.aclrtFreeHost(host), PARAM)


def test_copies_look_at_the_addresses(block):
    """A program's own memory is taken as it is; the runtime's is checked."""
    host = ctypes.create_string_buffer(b"abcdefgh", 300)
    at = ctypes.addressof(host)
    for kind in range(8):
        assert rt.aclrtMemcpy(block, 8, at, 8, kind) == OK
    failed(rt.aclrtMemcpy(block, 8, at, 8, 8), PARAM, "kind is 8")
    failed(rt.aclrtMemcpy(block, 8, at, 9, H2D), PARAM, "count is 9, but destMax is 8")
    failed(rt.aclrtMemcpy(block, 300, at, 289, H2D), PARAM, "dst", "256 bytes before the end")
    failed(rt.aclrtMemcpy(None, 8, at, 8, H2D), PARAM, "dst is null")
    failed(rt.aclrtMemcpy(block, 8, None, 8, H2D), PARAM, "src is null")
    assert rt.aclrtMemcpy(None, 0, None, 0, H2D) == OK
    freed = rt.made("aclrtMalloc", 64, 0)
    assert rt.aclrtFree(freed) == OK
    failed(rt.aclrtMemcpy(freed, 8, at, 8, H2D), PARAM, "no live allocation")
    failed(rt.aclrtMemcpy(at, 8, freed, 8, D2H), PARAM, "src", "no live allocation")
    failed(rt.aclrtMemset(freed, 8, 0, 8), PARAM, "no live allocation")


def test_rows_are_copied(block, stream):
    host = (ctypes.c_char * 12)(*b"abcdefghijkl")
    back = ctypes.create_string_buffer(12)
    at, to = ctypes.addressof(host), ctypes.addressof(back)
    assert rt.aclrtMemset(block, 256, 46, 256) == OK
    assert rt.aclrtMemcpy2d(block, 8, at, 4, 3, 3, H2D) == OK
    assert bytes((ctypes.c_char * 19).from_address(block)) == b"abc.....efg.....ijk"
    assert rt.aclrtMemcpy2dAsync(to, 4, block, 8, 3, 3, D2H, stream) == OK
    assert rt.aclrtSynchronizeStream(stream) == OK
    assert back.raw == b"abc\0efg\0ijk\0"
    failed(rt.aclrtMemcpy2d(block, 2, at, 4, 3, 3, H2D), PARAM, "width is 3, but dpitch is 2")
    failed(rt.aclrtMemcpy2d(block, 160, at, 4, 3, 3, H2D), PARAM, "dst")
    failed(rt.aclrtMemcpy2d(block, 2**63, at, 2**63, 3, 3, H2D), PARAM, "exceed")


def test_variables_may_go_once_a_copy_is_queued(block, stream):
    gate = threading.Event()
    submit(from_c.object_of(stream), lambda: gate.wait(PATIENCE) and 0)
    source = ctypes.create_string_buffer(b"before", 8)
    assert rt.aclrtMemcpyAsync(block, 8, ctypes.addressof(source), 8, H2D, stream) == OK
    source.value = b"after"
    gate.set()
    assert rt.aclrtSynchronizeStream(stream) == OK
    assert bytes((ctypes.c_char * 6).from_address(block)) == b"before"


@pytest.mark.parametrize("size", [1, 31, 32, 33, 100, 4096, 10**6])
@pytest.mark.parametrize("make", ["aclrtMalloc", "aclrtMallocHost"])
def test_slack_may_be_touched(make, size):
    """Up to the next multiple of 32, and 32 more."""
    reach = (size + 31) // 32 * 32 + 32
    address = rt.made(make, size, *([0] if make == "aclrtMalloc" else []))
    host = ctypes.create_string_buffer(reach + 1)
    assert rt.aclrtMemset(address, reach, 7, reach) == OK
    assert rt.aclrtMemcpy(ctypes.addressof(host), reach, address, reach, D2H) == OK
    assert host.raw == b"\7" * reach + b"\0"
    assert rt.aclrtMemset(address + reach, 0, 7, 0) == OK
    failed(rt.aclrtMemset(address, reach + 1, 7, reach + 1), PARAM, f"{size} bytes before the end")
    failed(rt.aclrtMemset(address + reach - 1, 2, 7, 2), PARAM, " 0 bytes before the end")
    failed(rt.aclrtMemset(address + reach, 1, 7, 1), PARAM, "no live allocation")
    assert (rt.aclrtFree if make == "aclrtMalloc" else rt.aclrtFreeHost)(address) == OK


def takes(function, *arguments):
    """Seconds of a call that succeeds."""
    start = time.monotonic()
    assert function(*arguments) == OK
    return time.monotonic() - start


@pytest.mark.parametrize("make", ["aclrtMalloc", "aclrtMallocHost"])
def test_freeing_waits_for_work_that_was_queued(stream, make):
    address = rt.made(make, 64, *([0] if make == "aclrtMalloc" else []))
    free = rt.aclrtFree if make == "aclrtMalloc" else rt.aclrtFreeHost
    host = ctypes.create_string_buffer(64)
    usleep = ctypes.cast(libc.usleep, ctypes.c_void_p).value
    assert rt.aclrtLaunchHostFunc(stream, usleep, 200_000) == OK
    assert rt.aclrtMemsetAsync(address, 64, 5, 64, stream) == OK
    assert rt.aclrtMemcpyAsync(ctypes.addressof(host), 64, address, 64, D2H, stream) == OK
    assert takes(free, address) > 0.1
    assert host.raw == b"\5" * 64, "nobody waited for the stream"
    failed(rt.aclrtMemset(address, 1, 0, 1), PARAM, "no live allocation")
    assert rt.aclrtSynchronizeStream(stream) == OK
    assert takes(rt.aclrtFree, rt.made("aclrtMalloc", 64, 0)) < 0.1


def test_freeing_does_not_wait_for_other_work(stream):
    gate = threading.Event()
    used, free = (rt.made("aclrtMalloc", 64, 0) for _ in range(2))
    submit(from_c.object_of(stream), lambda: gate.wait(PATIENCE) and 0)
    assert rt.aclrtMemsetAsync(used, 64, 5, 64, stream) == OK
    assert takes(rt.aclrtFree, free) < 0.5
    gate.set()
    assert rt.aclrtFree(used) == OK


def test_freeing_waits_for_a_stream_that_waits_for_another_one(stream):
    other, event = rt.made("aclrtCreateStream"), rt.made("aclrtCreateEvent")
    address, target = (rt.made("aclrtMalloc", 64, 0) for _ in range(2))
    usleep = ctypes.cast(libc.usleep, ctypes.c_void_p).value
    assert rt.aclrtMemset(address, 64, 8, 64) == OK
    assert rt.aclrtLaunchHostFunc(other, usleep, 200_000) == OK
    assert rt.aclrtRecordEvent(event, other) == OK
    assert rt.aclrtStreamWaitEvent(stream, event) == OK
    assert rt.aclrtMemcpyAsync(target, 64, address, 64, D2D, stream) == OK
    assert takes(rt.aclrtFree, address) > 0.1
    assert ctypes.string_at(target, 64) == b"\x08" * 64
    assert rt.aclrtFree(target) == OK
    assert rt.aclrtDestroyStream(other) == rt.aclrtDestroyEvent(event) == OK


@pytest.mark.parametrize("blocks_by", ["function", "event"])
def test_freeing_gives_up_what_may_wait_for_it(stream, blocks_by):
    """The work goes on with its memory, which nobody else has until then."""
    source, target = (rt.made("aclrtMalloc", 64, 0) for _ in range(2))
    gate, event = threading.Event(), rt.made("aclrtCreateEventExWithFlag", 0x20)
    assert rt.aclrtMemset(source, 64, 3, 64) == OK
    if blocks_by == "event":
        assert rt.aclrtStreamWaitEvent(stream, event) == OK
    else:
        submit(from_c.object_of(stream), lambda: gate.wait(PATIENCE) and 0)
    assert rt.aclrtMemcpyAsync(target, 64, source, 64, D2D, stream) == OK
    assert 0.5 < takes(rt.aclrtFree, source) < PATIENCE / 2
    others = [rt.made("aclrtMalloc", 64, 0) for _ in range(20)]
    assert source not in others
    gate.set()
    assert rt.aclrtRecordEvent(event, None) == OK
    assert rt.aclrtSynchronizeStream(stream) == OK
    assert ctypes.string_at(target, 64) == b"\3" * 64
    others.append(rt.made("aclrtMalloc", 64, 0))
    assert others[-1] == source
    for address in (*others, target):
        assert rt.aclrtFree(address) == OK
    assert rt.aclrtDestroyEvent(event) == OK


def test_a_function_on_a_stream_frees_what_later_work_uses(stream):
    source, target = (rt.made("aclrtMalloc", 64, 0) for _ in range(2))
    gate, statuses = threading.Event(), []
    assert rt.aclrtMemset(source, 64, 6, 64) == OK

    @CALLBACK
    def free(_):
        gate.wait(PATIENCE)
        statuses.append(takes(rt.aclrtFree, source))

    assert rt.aclrtLaunchHostFunc(stream, address_of(free), None) == OK
    assert rt.aclrtMemcpyAsync(target, 64, source, 64, D2D, stream) == OK
    gate.set()
    assert rt.aclrtSynchronizeStream(stream) == OK
    assert statuses[0] < 0.5
    assert ctypes.string_at(target, 64) == b"\6" * 64
    assert rt.aclrtFree(target) == OK


def test_work_that_is_dropped_holds_nobody_up():
    stream, gate = rt.made("aclrtCreateStream"), threading.Event()
    address = rt.made("aclrtMalloc", 64, 0)
    submit(from_c.object_of(stream), lambda: gate.wait(PATIENCE) and 0)
    assert rt.aclrtMemsetAsync(address, 64, 5, 64, stream) == OK
    end = threading.Thread(target=rt.aclrtDestroyStreamForce, args=(stream,))
    end.start()
    assert takes(rt.aclrtFree, address) < 5
    gate.set()
    end.join()


def test_bytes_are_set(block, stream):
    assert rt.aclrtMemset(block, 256, 1, 256) == OK
    assert rt.aclrtMemsetAsync(block, 256, -1, 4, stream) == OK
    assert rt.aclrtSynchronizeStream(stream) == OK
    assert bytes((ctypes.c_char * 5).from_address(block)) == b"\xff\xff\xff\xff\1"
    failed(rt.aclrtMemset(block, 4, 0, 5), PARAM, "count is 5, but maxCount is 4")
    failed(rt.aclrtMemset(block, 4, 256, 4), PARAM, "value is 256")
    failed(rt.aclrtMemsetAsync(None, 4, 0, 4, stream), PARAM, "null")
    failed(rt.aclrtMemsetAsync(block, 4, 0, 4, 12345), HANDLE, "0x3039")


def test_address_space_and_memory_apart():
    granule = ctypes.c_size_t()
    prop = (ctypes.c_uint32 * 8)(0, 0, 4, 0, 1)  # handleType, allocationType, memAttr, location
    one = ctypes.addressof(prop)
    assert rt.aclrtMemGetAllocationGranularity(one, 0, ctypes.addressof(granule)) == OK
    size = granule.value
    space = rt.made("aclrtReserveMemAddress", 3 * size + 1, 0, None, 0)  # rounded up
    failed(rt.aclrtReserveMemAddress(one, 0, 0, None, 0), PARAM, "size is 0")
    failed(rt.aclrtMemset(space, 4, 0, 4), PARAM, "no live allocation")
    memory = rt.made("aclrtMallocPhysical", size, one, 0)
    assert rt.aclrtMapMem(space, size, 0, memory, 0) == OK
    failed(rt.aclrtMapMem(space, size, 0, memory, 0), PARAM)
    failed(rt.aclrtMapMem(space + 4 * size, size, 0, memory, 0), PARAM)
    failed(rt.aclrtMapMem(space + size, 2 * size, 0, memory, 0), PARAM, "bytes")
    assert rt.aclrtMemset(space, size, 9, size) == OK
    failed(rt.aclrtMemset(space, size + 1, 9, size + 1), PARAM)
    failed(rt.aclrtFree(space), PARAM)
    failed(rt.aclrtReleaseMemAddress(space), PARAM, "aclrtUnmapMem first")
    assert rt.aclrtMapMem(space + 2 * size, size, 0, memory, 0) == OK  # the same bytes, elsewhere
    assert ctypes.string_at(space + 2 * size, 4) == b"\x09" * 4
    assert rt.aclrtUnmapMem(space) == OK
    failed(rt.aclrtUnmapMem(space), PARAM)
    failed(rt.aclrtMemset(space, 4, 0, 4), PARAM)
    assert rt.aclrtUnmapMem(space + 2 * size) == OK
    assert rt.aclrtFreePhysical(memory) == OK
    failed(rt.aclrtFreePhysical(memory), PARAM)
    assert rt.aclrtReleaseMemAddress(space) == OK
    failed(rt.aclrtReleaseMemAddress(space), PARAM)


GRANULE = 2 << 20


@pytest.fixture
def mapped():
    """Maps pieces of memory one behind the other in a reserved range: the address."""
    prop = (ctypes.c_uint32 * 8)(0, 0, 4, 0, 1)
    size, at, made = 4 * GRANULE, [], []

    def make(*pieces):
        at.append(rt.made("aclrtReserveMemAddress", size, 0, None, 0))
        for place in pieces:
            made.append(rt.made("aclrtMallocPhysical", GRANULE, ctypes.addressof(prop), 0))
            assert rt.aclrtMapMem(at[-1] + place * GRANULE, GRANULE, 0, made[-1], 0) == OK
        return at[-1]

    yield make
    for space in at:
        for place in range(4):
            rt.aclrtUnmapMem(space + place * GRANULE)
        assert rt.aclrtReleaseMemAddress(space) == OK
    for handle in made:
        assert rt.aclrtFreePhysical(handle) == OK
    rt.message()


def test_neighbours_in_a_reserved_range_are_one_piece_of_memory(mapped, stream):
    space, size = mapped(2, 0, 1), 3 * GRANULE  # whatever came first
    host = ctypes.create_string_buffer(64)
    border = space + GRANULE - 32
    assert rt.aclrtMemset(space, size, 1, size) == OK
    assert rt.aclrtMemsetAsync(border, 64, 2, 64, stream) == OK
    assert rt.aclrtMemcpyAsync(space + 2 * GRANULE - 8, 16, border, 16, D2D, stream) == OK
    assert rt.aclrtMemcpyAsync(ctypes.addressof(host), 64, border - 8, 64, D2H, stream) == OK
    assert rt.aclrtSynchronizeStream(stream) == OK
    assert host.raw == b"\1" * 8 + b"\2" * 56
    assert ctypes.string_at(space + 2 * GRANULE - 9, 18) == b"\1" + b"\2" * 16 + b"\1"
    failed(rt.aclrtMemset(space, size + 1, 1, size + 1), PARAM, f"{size} bytes before the end")
    failed(rt.aclrtMemset(space, 2**63, 1, 2**63), PARAM, f"{size} bytes before the end")
    assert rt.aclrtUnmapMem(space + GRANULE) == OK
    failed(rt.aclrtMemset(border, 64, 1, 64), PARAM, "32 bytes before the end")


def test_what_has_a_gap_is_two_pieces(mapped):
    space = mapped(0, 2)
    size = 2 * GRANULE
    failed(rt.aclrtMemset(space, size, 1, size), PARAM, f"{GRANULE} bytes before the end")


def test_a_view_over_neighbours_lives_as_long_as_all(mapped):
    space = mapped(0, 1)
    shape = (2 * GRANULE // 4,)
    view = aclnn.aclCreateTensor(shape, 0, None, 0, 2, shape, space)
    assert view is not None, rt.message()
    size, executor, status = aclnn.aclnnInplaceZeroGetWorkspaceSize(view)
    assert (size, status) == (0, OK)
    aclnn.aclSetAclOpExecutorRepeatable(executor)
    assert rt.aclrtMemset(space, 2 * GRANULE, 1, 2 * GRANULE) == OK
    assert aclnn.aclnnInplaceZero(None, 0, executor, None) == OK
    assert ctypes.string_at(space + GRANULE - 1, 2) == b"\0\0"
    assert rt.aclrtUnmapMem(space + GRANULE) == OK
    failed(aclnn.aclnnInplaceZero(None, 0, executor, None), 161002, "freed")
    aclnn.aclDestroyAclOpExecutor(executor)


@pytest.mark.parametrize("call", ["aclrtUnmapMem", "aclrtFreePhysical"])
def test_taking_mapped_memory_away_waits_for_work(stream, call):
    prop = (ctypes.c_uint32 * 8)(0, 0, 4, 0, 1)
    memory = rt.made("aclrtMallocPhysical", GRANULE, ctypes.addressof(prop), 0)
    space = rt.made("aclrtReserveMemAddress", GRANULE, 0, None, 0)
    assert rt.aclrtMapMem(space, GRANULE, 0, memory, 0) == OK
    host = ctypes.create_string_buffer(64)
    usleep = ctypes.cast(libc.usleep, ctypes.c_void_p).value
    assert rt.aclrtMemset(space, 64, 9, 64) == OK
    assert rt.aclrtLaunchHostFunc(stream, usleep, 200_000) == OK
    assert rt.aclrtMemcpyAsync(ctypes.addressof(host), 64, space, 64, D2H, stream) == OK
    assert takes(getattr(rt, call), space if call == "aclrtUnmapMem" else memory) > 0.1
    assert host.raw == b"\x09" * 64
    if call == "aclrtUnmapMem":
        assert rt.aclrtFreePhysical(memory) == OK
    else:
        assert rt.aclrtUnmapMem(space) == OK
    assert rt.aclrtReleaseMemAddress(space) == OK


def test_work_whose_addresses_were_taken_away_says_so(stream):
    """By a function on its own stream, which cannot wait for it."""
    prop = (ctypes.c_uint32 * 8)(0, 0, 4, 0, 1)
    memory = rt.made("aclrtMallocPhysical", GRANULE, ctypes.addressof(prop), 0)
    space = rt.made("aclrtReserveMemAddress", GRANULE, 0, None, 0)
    assert rt.aclrtMapMem(space, GRANULE, 0, memory, 0) == OK
    gate = threading.Event()

    @CALLBACK
    def unmap(_):
        gate.wait(PATIENCE)
        rt.aclrtUnmapMem(space)

    assert rt.aclrtLaunchHostFunc(stream, address_of(unmap), None) == OK
    assert rt.aclrtMemsetAsync(space, 64, 1, 64, stream) == OK
    gate.set()
    failed(rt.aclrtSynchronizeStream(stream), RUNTIME, "address is in memory that was freed")
    assert rt.aclrtFreePhysical(memory) == rt.aclrtReleaseMemAddress(space) == OK


def test_a_pool_grows_over_all_of_the_memory():
    """Sizes of memory and of address space fit each other."""
    prop = (ctypes.c_uint32 * 8)(0, 0, 4, 0, 1)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert rt.aclrtGetMemInfo(1, ctypes.addressof(free), ctypes.addressof(total)) == OK
    assert free.value % GRANULE == total.value % GRANULE == 0
    assert 0 < free.value <= total.value
    space = rt.made("aclrtReserveMemAddress", total.value, 0, None, 1)
    last = space + total.value - GRANULE
    memory = rt.made("aclrtMallocPhysical", GRANULE, ctypes.addressof(prop), 0)
    assert rt.aclrtMapMem(last, GRANULE, 0, memory, 0) == OK
    assert rt.aclrtMemset(last, GRANULE, 1, GRANULE) == OK
    assert rt.aclrtUnmapMem(last) == rt.aclrtFreePhysical(memory) == OK
    assert rt.aclrtReleaseMemAddress(space) == OK


# --- Streams and events --------------------------------------------------------------------------------


def test_nothing_takes_the_interpreters_lock(block):
    """It is held throughout: what waited for it would wait for ever."""
    held = Runtime(locked=True)
    usleep = ctypes.cast(libc.usleep, ctypes.c_void_p).value
    stream = held.made("aclrtCreateStream")
    start, end = held.made("aclrtCreateEvent"), held.made("aclrtCreateEvent")
    other = held.made("aclrtCreateStream")
    host = ctypes.create_string_buffer(64)
    milliseconds, answer = ctypes.c_float(), ctypes.c_int(9)
    statuses = [
        held.aclrtRecordEvent(start, stream),
        held.aclrtLaunchHostFunc(stream, usleep, 2000),
        held.aclrtMemsetAsync(block, 64, 3, 64, stream),
        held.aclrtMemcpyAsync(ctypes.addressof(host), 64, block, 64, D2H, stream),
        held.aclrtRecordEvent(end, stream),
        held.aclrtStreamWaitEvent(other, end),
        held.aclrtStreamWaitEventWithTimeout(other, end, 10000),
        held.aclrtSynchronizeStream(other),
        held.aclrtSynchronizeEvent(end),
        held.aclrtEventElapsedTime(ctypes.addressof(milliseconds), start, end),
        held.aclrtStreamQuery(other, ctypes.addressof(answer)),
        held.aclrtSynchronizeDevice(),
        held.aclrtDestroyEvent(start),
        held.aclrtDestroyEvent(end),
        held.aclrtDestroyStream(other),
        held.aclrtDestroyStream(stream),
    ]
    assert statuses == [OK] * len(statuses)
    assert host.raw == b"\3" * 64
    assert milliseconds.value >= 2
    assert answer.value == 0


def test_host_functions_run_in_order_on_the_streams_thread(stream):
    seen = []

    @CALLBACK
    def call(argument):
        seen.append((argument, threading.get_ident()))

    for number in range(1, 6):
        assert rt.aclrtLaunchHostFunc(stream, address_of(call), number) == OK
    assert rt.aclrtSynchronizeStream(stream) == OK
    assert [number for number, _ in seen] == [1, 2, 3, 4, 5]
    assert {thread for _, thread in seen} != {threading.get_ident()}
    assert rt.aclrtLaunchHostFunc(None, address_of(call), 6) == OK  # the default stream
    assert seen[5] == (6, threading.get_ident())
    failed(rt.aclrtLaunchHostFunc(stream, None, None), PARAM, "fn is null")


def test_a_host_function_may_use_its_own_stream(stream):
    seen = []

    @CALLBACK
    def call(_):
        seen.append(rt.aclrtSynchronizeStream(stream))
        seen.append(rt.aclrtSynchronizeDevice())

    assert rt.aclrtLaunchHostFunc(stream, address_of(call), None) == OK
    assert rt.aclrtSynchronizeStream(stream) == OK
    assert seen == [OK, OK]


NOT_LIVE = [1, 4096, 2**63, 0x4000000000000011, 0x40000000FFFFFFF1]


@pytest.mark.parametrize("handle", NOT_LIVE)
def test_handles_that_are_not_live(handle, stream):
    out = ctypes.c_uint64()
    at = ctypes.addressof(out)
    event = rt.made("aclrtCreateEvent")
    for name, *arguments in (
        ("aclrtDestroyStream", handle), ("aclrtDestroyStreamForce", handle), ("aclrtSynchronizeStream", handle),
        ("aclrtSynchronizeStreamWithTimeout", handle, 5), ("aclrtStreamQuery", handle, at),
        ("aclrtStreamGetId", handle, at), ("aclrtLaunchHostFunc", handle, at, None),
        ("aclrtRecordEvent", handle, stream), ("aclrtRecordEvent", event, handle),
        ("aclrtRecordEvent", stream, stream), ("aclrtRecordEventWithFlag", handle, stream, 1),
        ("aclrtStreamWaitEvent", handle, event), ("aclrtStreamWaitEvent", stream, handle),
        ("aclrtStreamWaitEventWithTimeout", stream, handle, 5), ("aclrtStreamWaitEventWithFlag", handle, event, 0, 1),
        ("aclrtDestroyEvent", handle), ("aclrtQueryEvent", handle, at), ("aclrtSynchronizeEvent", handle),
        ("aclrtEventGetTimestamp", handle, at), ("aclrtEventElapsedTime", at, event, handle),
        ("aclrtResetEvent", handle, None), ("aclrtGetEventId", handle, at), ("aclrtDestroyContext", handle),
        ("aclmdlRICaptureBegin", handle, 0), ("aclmdlRICaptureGetInfo", handle, at, at),
        ("aclmdlRICaptureEnd", handle, at), ("aclmdlRIExecute", handle, -1), ("aclmdlRIExecuteAsync", handle, None),
        ("aclmdlRIDestroy", handle), ("aclmdlRISetName", handle, b"x"), ("aclmdlRIGetName", handle, 8, at),
        ("aclmdlRICaptureTaskGrpBegin", handle), ("aclmdlRICaptureTaskGrpEnd", handle, at),
        ("aclmdlRICaptureTaskUpdateBegin", stream, handle), ("aclmdlRICaptureTaskUpdateEnd", handle),
        ("aclrtMemcpyAsync", at, 0, at, 0, 0, handle), ("aclrtMemcpy2dAsync", at, 0, at, 0, 0, 0, 0, handle),
    ):  # fmt: skip
        if name == "aclrtEventElapsedTime":
            rt.aclrtRecordEvent(event, None)
        failed(getattr(rt, name)(*arguments), HANDLE, name)
    assert rt.aclrtDestroyEvent(event) == OK


def test_a_handle_stays_dead_when_others_take_its_place():
    first = rt.made("aclrtCreateStream")
    assert rt.aclrtDestroyStream(first) == OK
    others = [rt.made("aclrtCreateStream") for _ in range(3)]
    assert first not in others
    failed(rt.aclrtSynchronizeStream(first), HANDLE)
    for other in others:
        assert rt.aclrtDestroyStream(other) == OK


@each("name", prototypes.RUNTIME)
def test_null_instead_of_results(name):
    one = prototypes.RUNTIME[name]
    results = [place for place, parameter in enumerate(one.parameters) if parameter.is_result]
    null = NULL if name.startswith("acl") and not name.startswith(("aclrt", "aclmdl")) else PARAM
    if not results or name in ("aclmdlRICaptureThreadExchangeMode", "aclmdlRIGetName"):
        return
    room = [ctypes.create_string_buffer(64) for _ in one.parameters]
    for place in results:
        arguments = [0 if k not in results else ctypes.addressof(room[k]) for k in range(len(room))]
        arguments[place] = None
        failed(getattr(rt, name)(*arguments), null, name, "is null")


def test_streams_and_events_go_both_ways(stream):
    """A handle is the same in both layers, and so is the state behind it."""
    of_python = from_c.object_of(stream)
    assert of_python is from_c.object_of(stream)
    assert of_python.handle == stream
    number = ctypes.c_int32()
    assert rt.aclrtStreamGetId(stream, ctypes.addressof(number)) == OK
    assert of_python.number == number.value
    made, _ = aclnn.aclrtCreateStream()
    event, _ = aclnn.aclrtCreateEvent()
    done = []
    submit(made, lambda: done.append(1))
    assert rt.aclrtRecordEvent(event.handle, made.handle) == OK
    assert aclnn.aclrtSynchronizeEvent(event) == OK
    assert done == [1]
    assert rt.aclrtDestroyStream(made.handle) == OK
    assert made.destroyed
    assert aclnn.aclrtSynchronizeStream(made) == HANDLE
    mine = rt.made("aclrtCreateStream")
    seen = from_c.object_of(mine)
    assert aclnn.aclrtDestroyStream(seen) == OK
    failed(rt.aclrtSynchronizeStream(mine), HANDLE)
    assert from_c.object_of(mine) == mine


def test_failures_of_python_surface_in_c(stream):
    submit(from_c.object_of(stream), lambda: (561000, "it broke"))
    failed(rt.aclrtSynchronizeStream(stream), RUNTIME, "it broke")
    assert rt.aclrtSynchronizeStream(stream) == OK


def test_waiting_ends_in_time(stream):
    gate = threading.Event()
    event = rt.made("aclrtCreateEvent")
    submit(from_c.object_of(stream), lambda: gate.wait(PATIENCE) and 0)
    assert rt.aclrtRecordEvent(event, stream) == OK
    answer = ctypes.c_int(9)
    failed(rt.aclrtSynchronizeStreamWithTimeout(stream, 5), 507046, "5 ms")
    failed(rt.aclrtSynchronizeDeviceWithTimeout(5), 507046, "5 ms")
    failed(rt.aclrtSynchronizeEventWithTimeout(event, 5), 507047, "5 ms")
    for timeout in (0, -2):
        failed(rt.aclrtSynchronizeStreamWithTimeout(stream, timeout), PARAM, "timeout")
    at = ctypes.addressof(answer)
    for name, not_ready in (
        ("aclrtQueryEvent", 1), ("aclrtQueryEventStatus", 0), ("aclrtQueryEventWaitStatus", 0),
    ):  # fmt: skip
        assert getattr(rt, name)(event, at) == OK
        assert answer.value == not_ready
    other = rt.made("aclrtCreateStream")
    assert rt.aclrtStreamWaitEvent(other, event) == OK
    assert rt.aclrtQueryEventWaitStatus(event, at) == OK
    assert answer.value == 1
    assert rt.aclrtStreamQuery(other, at) == OK
    assert answer.value == 1
    failed(rt.aclrtEventGetTimestamp(event, ctypes.addressof(ctypes.c_uint64())), 107006)
    gate.set()
    assert rt.aclrtSynchronizeStreamWithTimeout(other, -1) == OK
    assert rt.aclrtQueryEventWaitStatus(event, at) == OK
    assert answer.value == 0
    assert rt.aclrtDestroyStream(other) == rt.aclrtDestroyEvent(event) == OK


def test_a_forced_end_drops_what_has_not_begun(stream):
    gate, done = threading.Event(), []
    of_python = from_c.object_of(stream)
    submit(of_python, lambda: gate.wait(PATIENCE) and 0)
    submit(of_python, lambda: done.append(1))
    event = rt.made("aclrtCreateEvent")
    ending = threading.Thread(target=rt.aclrtDestroyStreamForce, args=(stream,))
    ending.start()
    while not of_python.destroyed:
        os.sched_yield()
    gate.set()
    ending.join(PATIENCE)
    assert done == []
    failed(rt.aclrtRecordEvent(event, stream), HANDLE)
    assert rt.aclrtDestroyEvent(event) == OK


def test_work_can_be_queued_for_others(stream):
    seen = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
    def run(argument):
        seen.append(("run", argument))
        return rt.fail(561000, b"it did not work") if argument == 2 else 0

    @CALLBACK
    def drop(argument):
        seen.append(("drop", argument))

    for number in (1, 2):
        assert rt.enqueue(stream, b"test", address_of(run), number, address_of(drop)) == OK
    failed(rt.aclrtSynchronizeStream(stream), RUNTIME, "it did not work")
    assert seen == [("run", 1), ("drop", 1), ("run", 2), ("drop", 2)]
    failed(rt.enqueue(77, b"test", address_of(run), 3, address_of(drop)), HANDLE, "test")
    assert seen[-1] == ("drop", 3)
    failed(
        rt.enqueue(None, b"test", address_of(run), 2, address_of(drop)), 561000, "it did not work"
    )


def test_memory_is_held_for_others(block):
    held = ctypes.c_void_p()
    at = ctypes.addressof(held)
    assert rt.hold_memory(b"test", b"self", block + 8, 248, at) == OK
    assert held.value
    assert rt.memory_lives(held) == 1
    assert rt.aclrtFree(block) == OK
    assert rt.memory_lives(held) == 0
    assert rt.made("aclrtMalloc", 256, 0) != block
    rt.drop_memory(held)
    failed(rt.hold_memory(b"test", b"self", block, 8, at), PARAM, "test: self is address")
    own = ctypes.create_string_buffer(8)
    assert rt.hold_memory(b"test", b"self", ctypes.addressof(own), 8, at) == OK
    assert held.value is None


# --- Captures: the Python layer has them -----------------------------------------------------------------


def test_a_capture_from_c(stream, block):
    calls = []

    @CALLBACK
    def called(argument):
        calls.append(argument)

    host = ctypes.create_string_buffer(b"x" * 8, 8)
    model, found, status = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    assert rt.aclmdlRICaptureBegin(stream, 2) == OK
    assert rt.is_redirected(stream, b"test") == 1
    failed(rt.aclrtSynchronizeStream(stream), 107027, "capture")
    failed(rt.aclmdlRICaptureBegin(stream, 0), 107027)
    assert rt.aclrtMemsetAsync(block, 8, 65, 8, stream) == OK
    assert rt.aclrtMemcpyAsync(ctypes.addressof(host), 8, block, 8, D2H, stream) == OK
    assert rt.aclrtLaunchHostFunc(stream, address_of(called), 5) == OK
    info = rt.aclmdlRICaptureGetInfo(stream, ctypes.addressof(status), ctypes.addressof(found))
    assert (info, status.value) == (OK, 1)
    assert rt.aclmdlRICaptureEnd(stream, ctypes.addressof(model)) == OK
    assert model.value == found.value
    assert rt.is_redirected(stream, b"test") == 0
    assert (host.raw, calls) == (b"x" * 8, [])
    assert rt.aclmdlRISetName(model, b"decoder") == OK
    name = ctypes.create_string_buffer(5)
    assert rt.aclmdlRIGetName(model, 5, ctypes.addressof(name)) == OK
    assert name.value == b"deco"
    assert rt.aclmdlRIExecute(model, -1) == OK
    assert (host.raw, calls) == (b"A" * 8, [5])
    assert rt.aclmdlRIExecuteAsync(model, stream) == OK
    assert rt.aclrtSynchronizeStream(stream) == OK
    assert calls == [5, 5]
    assert rt.aclmdlRIDestroy(model) == OK
    failed(rt.aclmdlRIDestroy(model), HANDLE)


def test_what_a_capture_forbids(stream, block):
    event = rt.made("aclrtCreateEvent")
    host = ctypes.create_string_buffer(8)
    model, answer = ctypes.c_void_p(), ctypes.c_int()
    assert rt.aclmdlRICaptureBegin(stream, 0) == OK
    failed(rt.aclrtMemset(block, 8, 0, 8), 107030)
    failed(rt.aclrtMemcpy(block, 8, block, 8, D2D), 107030)
    failed(rt.aclrtMemcpyAsync(block, 8, ctypes.addressof(host), 8, H2D, stream), 107041)
    failed(rt.aclrtSynchronizeDevice(), 107027)
    failed(rt.aclFinalize(), 107027)
    assert rt.aclrtRecordEvent(event, stream) == OK
    failed(rt.aclrtQueryEvent(event, ctypes.addressof(answer)), 107028)
    failed(rt.aclrtSynchronizeEvent(event), 107028)
    failed(rt.aclrtRecordEvent(event, None), 107031)
    assert rt.aclmdlRICaptureEnd(stream, ctypes.addressof(model)) == OK
    assert rt.aclmdlRIDestroy(model) == rt.aclrtDestroyEvent(event) == OK
    failed(rt.aclmdlRICaptureEnd(stream, ctypes.addressof(model)), 107029)
    assert model.value is None


# --- Device, contexts, numbers, errors ---------------------------------------------------------------------


def test_facts_about_the_device():
    value, version = ctypes.c_int64(), (ctypes.c_int32 * 3)()
    at = ctypes.addressof(value)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for attr in (1, 101, 102, 201):
        assert rt.aclrtGetDeviceInfo(0, attr, at) == OK
        assert value.value == cores
    assert rt.aclrtGetDeviceInfo(0, 301, at) == OK
    assert value.value == aclnn.aclrtGetMemInfo(1)[1]
    failed(rt.aclrtGetDeviceInfo(0, 2, at), PARAM, "attr is 2")
    failed(rt.aclrtGetDeviceInfo(1, 1, at), 107001, "deviceId is 1")
    assert rt.aclGetDeviceCapability(0, 1, at) == OK
    assert value.value == cores
    failed(rt.aclGetDeviceCapability(0, -1, at), NULL)
    places = [ctypes.addressof(version) + 4 * k for k in range(3)]
    assert rt.aclrtGetVersion(*places) == OK
    assert tuple(version) == prototypes.VERSION
    assert rt.aclrtGetSocName() == aclnn.aclrtGetSocName().encode()
    failed(rt.aclrtDeviceEnablePeerAccess(0, 0), 207000)
    failed(rt.aclrtDeviceEnablePeerAccess(3, 0), 107001)


def test_contexts_are_of_threads():
    first = rt.made("aclrtCreateContext", 0)
    second = rt.made("aclrtCreateContext", 0)
    found = ctypes.c_void_p()
    at = ctypes.addressof(found)
    assert rt.aclrtGetCurrentContext(at) == OK
    assert found.value == second
    assert rt.aclrtSetCurrentContext(first) == OK
    seen = []

    def elsewhere():
        seen.append(aclnn.aclrtGetCurrentContext())
        aclnn.aclrtSetDevice(0)
        seen.append(aclnn.aclrtGetCurrentContext()[1])

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [(0, 107002), OK]
    assert aclnn.aclrtGetCurrentContext() == (first, OK)
    assert rt.aclrtDestroyContext(first) == OK
    failed(rt.aclrtGetCurrentContext(at), 107002)
    failed(rt.aclrtSetCurrentContext(first), HANDLE)
    assert rt.aclrtDestroyContext(second) == OK


def test_every_half_and_back():
    """Against NumPy's conversion, but for the largest exponent, which has numbers here."""
    halves = np.arange(65536, dtype=np.uint16)
    usual = halves.view(np.float16).astype(np.float32)
    exponent = halves >> 10 & 31
    large = (1 + (halves & 1023) / 1024.0) * 65536 * np.where(halves >> 15, -1, 1)
    expected = np.where(exponent == 31, large, usual)
    found = np.array([rt.aclFloat16ToFloat(int(half)) for half in halves])
    np.testing.assert_array_equal(found, expected)
    for half in halves[exponent < 31][::7].tolist():
        assert rt.aclFloatToFloat16(expected[half]) == half


def test_numbers_are_rounded_to_halves():
    rng = np.random.default_rng(3)
    numbers = np.float32(rng.standard_normal(4000) * 2.0 ** rng.integers(-30, 17, 4000))
    halfway = (
        np.arange(0, 31743, 13).astype(np.uint16).view(np.float16).astype(np.float32) * 2049
    ) / 2048
    with np.errstate(over="ignore"):
        for number in np.concatenate([numbers, np.float32(halfway)]):
            half = np.float16(number)
            bits = int(np.float16(np.clip(half, -65504, 65504)).view(np.uint16))
            assert rt.aclFloatToFloat16(float(number)) == bits
    for value, bits in (
        (np.inf, 0x7BFF),
        (-np.inf, 0xFBFF),
        (np.nan, 0x7BFF),
        (65520, 0x7BFF),
        (-0.0, 0x8000),
    ):
        assert rt.aclFloatToFloat16(value) == bits == aclnn.aclFloatToFloat16(value)


def test_sizes_of_types():
    from aclnn.acl import dtypes

    for dtype, kind in dtypes.NUMPY.items():
        assert rt.aclDataTypeSize(dtype) == kind.itemsize
    assert [rt.aclDataTypeSize(n) for n in (-1, 13, 29, 1000)] == [0] * 4


def test_messages_and_errors_are_of_threads_and_of_both_layers():
    rt.aclrtGetLastError(0)
    assert rt.aclrtFree(None) == PARAM
    assert aclnn.aclGetRecentErrMsg().startswith("aclrtFree: ")
    assert rt.message() is None
    assert aclnn.aclrtPeekAtLastError(0) == rt.aclrtPeekAtLastError(0) == PARAM
    assert aclnn.aclnnGeluGetWorkspaceSize(None, None)[2] == 161001  # no status of the runtime
    assert rt.aclrtGetLastError(0) == PARAM
    assert "self is null" in rt.message()
    assert rt.aclrtGetLastError(0) == aclnn.aclrtGetLastError(0) == OK
    aclnn.aclrtSetDevice(3)
    seen = []
    thread = threading.Thread(target=lambda: seen.extend([rt.message(), rt.aclrtGetLastError(0)]))
    thread.start()
    thread.join()
    assert seen == [None, OK]
    assert "deviceId is 3" in rt.message()
    failed(rt.aclrtGetLastError(1), PARAM, "level is 1")


def test_a_message_stays_until_the_thread_asks_again():
    rt.aclrtFree(None)
    first = Runtime()
    first.aclGetRecentErrMsg.restype = ctypes.c_void_p
    text = first.aclGetRecentErrMsg()
    rt.aclrtDestroyStream(77)
    assert ctypes.string_at(text).startswith(b"aclrtFree: ")


# --- The process -----------------------------------------------------------------------------------------------


def run_python(code, **changes):
    """A program of its own; what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], capture_output=True, text=True,
        timeout=60, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **changes}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split("\n")[:-1]


def test_references_are_counted():
    printed = run_python("""
        import ctypes
        from runtime_calls import Runtime
        rt, left = Runtime(), ctypes.c_uint64(9)
        at = ctypes.addressof(left)
        print(rt.aclFinalize(), rt.aclInit(None), rt.aclInit(None), rt.aclInit(None))
        print(rt.aclFinalizeReference(None), rt.aclFinalizeReference(at), left.value, rt.aclFinalize())
        print(rt.aclFinalize(), rt.aclInit(None), rt.aclFinalizeReference(at), left.value)
    """)
    assert printed == ["100001 0 100002 100002", "100000 0 2 0", "100037 0 0 0"]


def test_a_setting_says_how_many_devices_there_are():
    """They have the same memory, and streams of their own."""
    program = """
        import ctypes, threading
        import aclnn
        from aclnn.acl import from_c
        from aclnn.acl.stream import submit
        from runtime_calls import Runtime
        rt = Runtime()
        number = ctypes.c_int32(9)
        at = ctypes.addressof(number)
        def told(name, *arguments):
            status = getattr(rt, name)(at, *arguments)
            return status, number.value
        print(told("aclrtGetDeviceCount"), aclnn.aclrtGetDeviceCount(), told("aclrtGetDevice"))
        first = rt.made("aclrtCreateStream")
        print(rt.aclrtSetDevice(1), told("aclrtGetDevice"), aclnn.aclrtGetDevice(), rt.aclrtSetDevice(2), rt.message())
        own = rt.made("aclrtGetCurrentContext")
        second = rt.made("aclrtCreateStream")
        memory = rt.made("aclrtMalloc", 64, 0)
        print(told("aclrtDeviceCanAccessPeer", 0, 1), told("aclrtDeviceCanAccessPeer", 1, 1), aclnn.aclrtDeviceCanAccessPeer(1, 0))
        print(rt.aclrtDeviceEnablePeerAccess(0, 0), rt.aclrtDeviceEnablePeerAccess(1, 0), aclnn.aclrtDeviceDisablePeerAccess(0))
        gate = threading.Event()
        submit(from_c.object_of(first), lambda: gate.wait(30) and 0)
        print(rt.aclrtMemsetAsync(memory, 64, 7, 64, second), rt.aclrtSynchronizeDevice(), aclnn.aclrtSynchronizeDevice())
        print(ctypes.string_at(memory, 2))
        print(rt.aclrtResetDevice(1), rt.aclrtSynchronizeStream(second), rt.aclrtSetCurrentContext(own), told("aclrtGetDevice"))
        print(rt.aclrtSetDevice(0), rt.aclrtSynchronizeDeviceWithTimeout(10), gate.set(), rt.aclrtSynchronizeStream(first))
        context = rt.made("aclrtCreateContext", 1)
        print(told("aclrtGetDevice"), rt.aclrtSetDevice(0), rt.aclrtSetCurrentContext(context), told("aclrtGetDevice"))
        other = []
        thread = threading.Thread(target=lambda: other.append(told("aclrtGetDevice")))
        thread.start(), thread.join()
        print(other, rt.aclrtFree(memory))
    """
    assert run_python(program, ACLNN_NPU_DEVICES="2") == [
        "(0, 2) (2, 0) (0, 0)",
        "0 (0, 1) (1, 0) 107001 aclrtSetDevice: deviceId is 2, must be from 0 to 1, as ACLNN_NPU_DEVICES is 2",
        "(0, 1) (0, 0) (1, 0)",
        "0 207000 0",
        "0 0 0",
        r"b'\x07\x07'",
        "0 107017 0 (0, 1)",
        "0 507046 None 0",
        "(0, 1) 0 0 (0, 1)",
        "[(0, 0)] 0",
    ]


@pytest.mark.parametrize("setting", ["0", "two", "65", "-1", "1.5"])
def test_a_setting_of_devices_that_makes_no_sense(setting):
    program = """
        import aclnn
        print(aclnn.aclrtSetDevice(0), aclnn.aclGetRecentErrMsg(), aclnn.aclrtGetDeviceCount())
    """
    assert run_python(program, ACLNN_NPU_DEVICES=setting) == [
        f"107001 aclrtSetDevice: ACLNN_NPU_DEVICES is '{setting}', must be an integer from 1 to 64 (0, 107001)"
    ]


def test_the_last_reset_of_the_device_ends_the_streams():
    printed = run_python("""
        import aclnn
        from runtime_calls import Runtime
        rt = Runtime()
        stream = rt.made("aclrtCreateStream")
        print(rt.aclrtResetDevice(0), rt.aclrtSynchronizeStream(stream))  # there was no choice to take back
        print(rt.aclrtSetDevice(0), aclnn.aclrtSetDevice(0), rt.aclrtResetDevice(0), rt.aclrtSynchronizeStream(stream))
        print(aclnn.aclrtResetDevice(0), rt.aclrtSynchronizeStream(stream), rt.aclrtDestroyStream(stream))
        other = rt.made("aclrtCreateStream")
        print(rt.aclrtSetDevice(0), rt.aclrtSetDevice(0), rt.aclrtResetDeviceForce(0), rt.aclrtDestroyStream(other))
    """)
    assert printed == ["0 0", "0 0 0 0", "0 107017 107017", "0 0 0 107017"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_python_did_not_fork_gets_statuses():
    printed = run_python("""
        import ctypes, os
        from runtime_calls import Runtime
        rt = Runtime()
        stream = rt.made("aclrtCreateStream")
        child = ctypes.PyDLL(None).fork()  # as a program in C does
        if child == 0:
            status = rt.aclrtSynchronizeStream(stream)
            ok = status == 100001 and "forked" in rt.message() and rt.aclrtMalloc(stream, 8, 0) == 100001
            os._exit(7 if ok else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), rt.aclrtSynchronizeStream(stream))
    """)
    assert printed == ["7 0"]


@pytest.mark.parametrize("end", ["pass", "os._exit(0)", "sys.exit(0)", "ctypes.CDLL(None).exit(0)"])
def test_programs_end_at_any_time(end):
    """Work is queued, runs, and waits; nothing is destroyed."""
    printed = run_python(f"""
        import ctypes, os, sys
        from runtime_calls import Runtime
        import aclnn
        from aclnn.acl.stream import submit
        rt = Runtime()
        usleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p).value
        streams = [rt.made("aclrtCreateStream") for _ in range(3)]
        event = rt.made("aclrtCreateEvent")
        for stream in streams:
            for _ in range(100):
                rt.aclrtLaunchHostFunc(stream, usleep, 1000)
        rt.aclrtRecordEvent(event, streams[0])
        rt.aclrtStreamWaitEvent(streams[1], event)
        submit(aclnn.aclrtCreateStream()[0], lambda: 0)
        rt.aclrtMalloc(ctypes.addressof(ctypes.c_void_p()), 1 << 20, 0)
        print("end", flush=True)
        {end}
    """)
    assert printed == ["end"]


@pytest.mark.skipif(sys.platform != "linux", reason="on_exit is of Linux")
def test_calls_after_the_end_get_statuses():
    """Handlers of exit run last first, so that those of before the runtime was loaded run after its own."""
    printed = run_python("""
        import ctypes, os
        libc = ctypes.PyDLL(None)

        @ctypes.PYFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p)
        def late(*_):
            statuses = rt.aclrtSynchronizeStream(stream), rt.aclrtMemset(stream, 8, 0, 8), rt.aclInit(None)
            os.write(1, f"{statuses} {rt.message()}\\n".encode())

        libc.on_exit(late, None)
        from runtime_calls import Runtime
        rt = Runtime(locked=True)
        stream = rt.made("aclrtCreateStream")
        rt.aclrtLaunchHostFunc(stream, ctypes.cast(libc.usleep, ctypes.c_void_p), 50000)
        libc.exit(0)
    """)
    assert printed == [
        "(100001, 100001, 100001) aclInit: the process is ending, the runtime has ended"
    ]


def test_many_threads_at_once():
    """Each makes, uses and destroys its own, and now and then what is another's."""
    errors, shared = [], [rt.made("aclrtCreateStream"), rt.made("aclrtCreateEvent")]

    def work(seed):
        rng = np.random.default_rng(seed)
        host = ctypes.create_string_buffer(64)
        for _ in range(60):
            size = int(rng.integers(64, 9000))
            stream, event = rt.made("aclrtCreateStream"), rt.made("aclrtCreateEvent")
            block = rt.made("aclrtMalloc", size, 0)
            statuses = [
                rt.aclrtMemsetAsync(block, size, seed, size, stream),
                rt.aclrtMemcpyAsync(ctypes.addressof(host), 64, block, 64, D2H, stream),
                rt.aclrtRecordEvent(event, stream),
                rt.aclrtRecordEvent(shared[1], stream),
                rt.aclrtStreamWaitEvent(shared[0], event),
                rt.aclrtSynchronizeEvent(event),
                rt.aclrtSynchronizeStream(shared[0]),
                rt.aclrtDestroyEvent(event),
                rt.aclrtDestroyStream(stream),
                rt.aclrtFree(block),
            ]
            if any(statuses) or host.raw != bytes([seed]) * 64:
                errors.append((statuses, host.raw))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert errors == []
    assert rt.aclrtDestroyStream(shared[0]) == rt.aclrtDestroyEvent(shared[1]) == OK


def test_one_of_many_destroys():
    for make, destroy in (
        ("aclrtCreateStream", rt.aclrtDestroyStream),
        ("aclrtCreateEvent", rt.aclrtDestroyEvent),
    ):
        handle, statuses, together = rt.made(make), [], threading.Barrier(4)

        def work(handle=handle, destroy=destroy, statuses=statuses, together=together):
            together.wait()
            statuses.append(destroy(handle))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert sorted(statuses) == [OK, HANDLE, HANDLE, HANDLE]
