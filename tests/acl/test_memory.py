"""Device memory against a model of it: every use of an address is checked, nothing is torn."""

import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import aclnn
from aclnn.acl import memory
from aclnn.acl.stream import submit

OK, PARAM, INVALID = 0, 107000, 161002
H2H, H2D, D2H, D2D = tuple(aclnn.aclrtMemcpyKind)[:4]


def malloc(nbytes):
    address, status = aclnn.aclrtMalloc(nbytes, aclnn.ACL_MEM_MALLOC_NORMAL_ONLY)
    assert status == OK
    return address


@pytest.fixture
def block():
    address = malloc(256)
    assert aclnn.aclrtMemset(address, 256, 0, 256) == OK
    yield address
    aclnn.aclrtFree(address)
    aclnn.aclGetRecentErrMsg()


def read(address, count):
    found = bytearray(count)
    assert aclnn.aclrtMemcpy(found, count, address, count, D2H) == OK
    return bytes(found)


class Model(RuleBasedStateMachine):
    """Allocations as plain bytearrays; addresses, sizes and counts that often do not fit."""

    places = st.tuples(st.integers(0, 9), st.integers(-3, 70))
    counts = st.integers(0, 80)

    def __init__(self):
        super().__init__()
        self.live, self.freed = {}, []

    def teardown(self):
        for address in self.live:
            aclnn.aclrtFree(address)
        aclnn.aclGetRecentErrMsg()

    def address(self, place):
        """An address near a live allocation, or a freed one, and what of the model lies there."""
        known = sorted(self.live) + self.freed[-2:]
        if not known:
            return 4096 + place[1], None
        address = known[place[0] % len(known)] + place[1]
        base = max((a for a in self.live if a <= address <= a + len(self.live[a])), default=None)
        return address, base

    def fits(self, address, base, count):
        return base is not None and address + count <= base + len(self.live[base])

    def expect(self, status, good):
        assert status == (OK if good else PARAM)
        assert (aclnn.aclGetRecentErrMsg() is None) == good

    @rule(nbytes=st.integers(1, 70))
    def allocate(self, nbytes):
        address = malloc(nbytes)
        assert address % 64 == 0
        assert all(address + nbytes <= a or a + len(m) <= address for a, m in self.live.items())
        self.live[address] = bytearray(nbytes)
        assert aclnn.aclrtMemset(address, nbytes, 0, nbytes) == OK
        self.freed = [a for a in self.freed if not address - 80 <= a <= address + 80]

    @rule(place=places)
    def free(self, place):
        address, _ = self.address(place)
        self.expect(aclnn.aclrtFree(address), address in self.live)
        if self.live.pop(address, None) is not None:
            self.freed.append(address)

    @rule(place=places, value=st.integers(-200, 300), count=counts, room=counts)
    def fill(self, place, value, count, room):
        address, base = self.address(place)
        good = self.fits(address, base, count) and count <= room and -128 <= value <= 255
        self.expect(aclnn.aclrtMemset(address, room, value, count), good)
        if good:
            self.live[base][address - base : address - base + count] = bytes([value & 255] * count)

    @rule(place=places, data=st.binary(max_size=80), count=counts, room=counts)
    def write(self, place, data, count, room):
        address, base = self.address(place)
        good = self.fits(address, base, count) and count <= min(room, len(data))
        self.expect(aclnn.aclrtMemcpy(address, room, data, count, H2D), good)
        if good:
            self.live[base][address - base : address - base + count] = data[:count]

    @rule(source=places, goal=places, count=counts)
    def move(self, source, goal, count):
        """Within one allocation sources and targets overlap."""
        (src, src_base), (dst, dst_base) = self.address(source), self.address(goal)
        good = self.fits(src, src_base, count) and self.fits(dst, dst_base, count)
        self.expect(aclnn.aclrtMemcpy(dst, count, src, count, D2D), good)
        if good:
            data = bytes(self.live[src_base][src - src_base :][:count])
            self.live[dst_base][dst - dst_base : dst - dst_base + count] = data

    @invariant()
    def same_bytes(self):
        for address, model in self.live.items():
            assert read(address, len(model)) == model


Model.TestCase.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)
TestModel = Model.TestCase


class Interface:
    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.array = array


class DLPack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("kind", [bytearray, memoryview, np.asarray, Interface, DLPack])
def test_host_sides_may_be_any_memory(block, kind):
    numbers = np.arange(8, dtype=np.uint8)
    host = kind(bytearray(numbers)) if kind in (bytearray, memoryview) else kind(numbers.copy())
    assert aclnn.aclrtMemcpy(block, 64, host, 8, H2D) == OK
    assert read(block, 8) == bytes(numbers)
    assert aclnn.aclrtMemset(block, 8, 9, 8) == OK
    assert aclnn.aclrtMemcpy(host, 8, block, 8, D2H) == OK
    assert bytes(getattr(host, "array", host)) == bytes([9] * 8)


def test_transposed_arrays_are_their_bytes(block):
    x = np.arange(16, dtype=np.uint8).reshape(2, 4, 2).transpose(2, 0, 1)
    assert aclnn.aclrtMemcpy(block, 64, x, 16, H2D) == OK
    assert read(block, 16) == bytes(range(16))


@pytest.mark.parametrize(
    ("host", "words"),
    [(np.zeros(32)[::2], "gaps"), (np.zeros((4, 4))[:, :2], "gaps"),
     (np.broadcast_to(np.zeros(1), 8), "gaps"), (memoryview(bytearray(64))[::2], "gaps"),
     (np.zeros(8)[::-1], "negative"), (np.array([None] * 8), "Python objects"),
     (memoryview(np.array([None] * 8)), "Python objects"), (None, "null"), ("text", "str"),
     ([1, 2], "list"), (3.0, "float"), (12345, "0x3039"), (2**100, "no live"), (True, "bool")],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,  # no addresses
)  # fmt: skip
def test_host_sides_that_are_refused(block, host, words):
    for dst, src, kind in ((block, host, H2D), (host, block, D2H)):
        assert aclnn.aclrtMemcpy(dst, 64, src, 8, kind) == PARAM
        found = aclnn.aclGetRecentErrMsg()
        assert words in found
        assert ("src" if kind == H2D else "dst") in found


def test_read_only_memory_is_no_target(block):
    fixed = np.zeros(8, np.uint8)
    fixed.flags.writeable = False
    for dst in (b"12345678", fixed, memoryview(b"12345678")):
        assert aclnn.aclrtMemcpy(dst, 8, block, 8, D2H) == PARAM
        assert "read-only" in aclnn.aclGetRecentErrMsg()


@pytest.mark.parametrize("kind", [H2H, H2D, D2H, D2D])
def test_device_sides_are_addresses(block, kind):
    host = bytearray(8)
    for dst, src, allowed in (
        (host, host, kind == H2H),
        (block, host, kind in (H2H, H2D)),
        (host, block, kind in (H2H, D2H)),
        (block, block, True),  # all memory is this machine's
    ):
        assert aclnn.aclrtMemcpy(dst, 8, src, 8, kind) == (OK if allowed else PARAM)


def test_copies_between_hosts():
    target = bytearray(4)
    assert aclnn.aclrtMemcpy(target, 4, b"abcd", 4, H2H) == OK
    assert target == b"abcd"


@pytest.mark.parametrize("shift", [-9, -1, 1, 9])
def test_overlapping_copies(block, shift):
    data = bytes(range(40))
    assert aclnn.aclrtMemcpy(block + 12, 40, data, 40, H2D) == OK
    assert aclnn.aclrtMemcpy(block + 12 + shift, 40, block + 12, 40, D2D) == OK
    assert read(block + 12 + shift, 40) == data


@pytest.mark.parametrize("attr", aclnn.aclrtMemAttr)
def test_memory_info(attr):
    free, total, status = aclnn.aclrtGetMemInfo(attr)
    assert status == OK
    assert 0 < free <= total


def test_numbers_too_long_to_print_are_refused_all_the_same(block):
    huge = 10**5000
    calls = [
        lambda: aclnn.aclrtMemcpy(block, huge, bytes(1), huge, H2D),
        lambda: aclnn.aclrtMemset(block, huge, 0, huge), lambda: aclnn.aclrtMemset(huge, 1, 0, 1),
        lambda: aclnn.aclrtMemset(block, 1, huge, 1), lambda: aclnn.aclrtFree(huge),
        lambda: aclnn.aclrtMemset(block, -huge, 0, 1), lambda: aclnn.aclrtMalloc(8, huge)[1],
        lambda: aclnn.aclrtMemcpy(block, 1, bytes(1), 1, huge),
    ]  # fmt: skip
    for call in calls:
        assert call() == PARAM
        assert aclnn.aclGetRecentErrMsg()


@pytest.mark.parametrize("nbytes", [2**60, 10**5000], ids=["exbibyte", "huge"])
def test_too_much_memory(nbytes):
    assert aclnn.aclrtMalloc(nbytes, 0) == (0, 207001)
    assert aclnn.aclGetRecentErrMsg()


@pytest.mark.parametrize(
    "call",
    [lambda b: aclnn.aclrtMemcpy(b, 10, np.zeros(9), 11, 1), lambda b: aclnn.aclrtMemcpy(b, 999, bytes(999), 999, 1),
     lambda b: aclnn.aclrtMemcpy(b, 64, bytes(3), 4, 1), lambda b: aclnn.aclrtMemcpy(b, 64, bytes(64), 64, 9),
     lambda b: aclnn.aclrtMemcpy(b - 1, 1, bytes(1), 1, 1), lambda b: aclnn.aclrtMemcpy(None, 1, bytes(1), 1, 0),
     lambda b: aclnn.aclrtMemcpy(bytes(8), 8, b, 8, 2), lambda b: aclnn.aclrtMemcpy(bytearray(8), 8, b, 8, 3),
     lambda b: aclnn.aclrtMemset(b, 256, 1, 257), lambda b: aclnn.aclrtMemset(b, 256, 999, 1),
     lambda b: aclnn.aclrtMemset(b + 255, 256, 0, 2), lambda b: aclnn.aclrtMemset("x", 1, 0, 1),
     lambda b: aclnn.aclrtFree(b + 1), lambda b: aclnn.aclrtFree(None), lambda b: aclnn.aclrtFree("x"),
     lambda b: aclnn.aclrtMalloc(0, 0)[1], lambda b: aclnn.aclrtMalloc(-1, 0)[1],
     lambda b: aclnn.aclrtMalloc("x", 0)[1], lambda b: aclnn.aclrtMalloc(8, 8)[1],
     lambda b: aclnn.aclrtGetMemInfo(99)[2],
     lambda b: aclnn.aclrtMemcpyAsync(b, 1, bytes(2), 2, 1, None)],
)  # fmt: skip
def test_memory_functions_refuse(block, call):
    assert call(block) == PARAM
    assert aclnn.aclGetRecentErrMsg()


def test_freed_memory_is_gone(block):
    assert aclnn.aclrtFree(block) == OK
    assert aclnn.aclrtFree(block) == PARAM
    assert aclnn.aclrtMemset(block, 1, 0, 1) == PARAM
    tensor = aclnn.aclCreateTensor((1,), 0, None, 0, 2, (1,), block)
    assert tensor is None


def test_resolving():
    address = malloc(16)
    owner = memory.resolve(address + 4, 12, "self")
    assert memory.is_alive(owner)
    with pytest.raises(aclnn.AclnnError, match=r"self is address 0x[0-9a-f]+, 12 bytes") as caught:
        memory.resolve(address + 4, 13, "self")
    assert caught.value.status == INVALID
    aclnn.aclrtFree(address)
    assert not memory.is_alive(owner)
    with pytest.raises(aclnn.AclnnError, match="no live allocation"):
        memory.resolve(address, 1, "self")
    assert memory.is_alive(np.zeros(1))
    assert memory.is_alive(None)


def test_bytes_stay_until_the_work_that_was_queued_is_done():
    """They are freed for all later calls; that work goes on with them."""
    stream, _ = aclnn.aclrtCreateStream()
    gate, address, target = threading.Event(), malloc(8), bytearray(8)
    aclnn.aclrtMemset(address, 8, 5, 8)
    submit(stream, lambda: gate.wait(30) and OK)
    assert aclnn.aclrtMemcpyAsync(target, 8, address, 8, D2H, stream) == OK
    assert aclnn.aclrtFree(address) == OK  # waits for a while
    assert aclnn.aclrtMemset(address, 8, 6, 8) == PARAM
    others = [malloc(8) for _ in range(20)]
    assert address not in others, "somebody else has the bytes"
    assert target == bytes(8)
    gate.set()
    assert aclnn.aclrtSynchronizeStream(stream) == OK
    assert target == bytes([5] * 8)
    assert aclnn.aclrtDestroyStream(stream) == OK
    others.append(malloc(8))
    assert others[-1] == address
    for other in others:
        assert aclnn.aclrtFree(other) == OK


def test_freeing_waits_for_work_of_python():
    stream, _ = aclnn.aclrtCreateStream()
    address, target = malloc(8), bytearray(8)
    aclnn.aclrtMemset(address, 8, 5, 8)
    submit(stream, lambda: time.sleep(0.2) or OK)
    assert aclnn.aclrtMemcpyAsync(target, 8, address, 8, D2H, stream) == OK
    assert aclnn.aclrtFree(address) == OK
    assert target == bytes([5] * 8), "nobody waited for the stream"
    assert aclnn.aclrtDestroyStream(stream) == OK


def test_a_signal_ends_the_wait_of_freeing():
    printed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent("""
            import signal, threading, time
            import aclnn
            from aclnn.acl.stream import submit
            stream, _ = aclnn.aclrtCreateStream()
            address, _ = aclnn.aclrtMalloc(8, 0)
            gate, target = threading.Event(), bytearray(8)
            submit(stream, lambda: gate.wait(30) and 0)
            aclnn.aclrtMemcpyAsync(target, 8, address, 8, 2, stream)
            def interrupt(*_):
                raise KeyboardInterrupt
            signal.signal(signal.SIGALRM, interrupt)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            try:
                aclnn.aclrtFree(address)
            except KeyboardInterrupt:
                print("interrupted", aclnn.aclrtFree(address))
            gate.set()
            print(aclnn.aclrtSynchronizeStream(stream))
        """)],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    assert printed.split() == ["interrupted", "107000", "0"]


def test_many_threads_allocate_and_free():
    errors = []

    def work(value):
        for _ in range(200):
            address = malloc(32)
            aclnn.aclrtMemset(address, 32, value, 32)
            if read(address, 32) != bytes([value] * 32) or aclnn.aclrtFree(address) != OK:
                errors.append(value)

    threads = [threading.Thread(target=work, args=(value,)) for value in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_one_of_many_frees():
    address, statuses, barrier = malloc(8), [], threading.Barrier(4)

    def work():
        barrier.wait()
        statuses.append(aclnn.aclrtFree(address))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [OK, PARAM, PARAM, PARAM]


class Unspeakable(int):
    def __repr__(self):
        raise RuntimeError("no")


def test_a_size_that_cannot_be_shown_is_refused():
    handle, status = aclnn.aclrtMallocPhysical(Unspeakable(3))
    assert (handle, status) == (0, aclnn.ACL_ERROR_RT_PARAM_INVALID)
    assert "size is 3, must be" in aclnn.aclGetRecentErrMsg()
    with_it = {
        aclnn.aclrtMallocPhysical: "size",
        aclnn.aclrtFree: "address",
        aclnn.aclrtSetDevice: "deviceId",
    }
    for function, name in with_it.items():
        function(Unspeakable(2**70))
        assert f"{name} is an int of 71 bits, " in aclnn.aclGetRecentErrMsg(), function
