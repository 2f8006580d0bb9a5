"""Positions in compiled functions: NumPy integers and arrays of integers as indices, and plans made ahead."""

import numpy as np
import pytest

import aclnn


def filled(*shape, dtype=np.float32):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def put(cache, rows, position):
    cache[:, position] = rows
    return cache * 2


def put_first(cache, rows, position):
    cache[position] = rows[0]


def put_beside_a_number(cache, rows, position):
    cache[1, position] = rows[0, 0]
    return cache[0, position]


def put_into_a_view(cache, rows, position):
    cache[..., 1:4][0, position] = 5
    return cache[None, 0, ::2]


def taken(cache, rows, position):
    return cache[:, position] + rows, cache[..., position], cache[None, 0, position, ::-1]


def computed(cache, rows, position):
    cache[:, position - 1] = rows
    return cache[:, (position + 1) % 2], np.arange(cache.shape[1]) <= position


def put_into_views(cache, rows, position):
    cache.transpose(1, 0, 2)[position] = rows
    cache.reshape(9, 8)[position] = rows[0]
    cache[1:, ::2][1, 1] = 3
    cache[1:, :, 3:7].transpose(2, 1, 0)[1:3, position] = rows[:2, :2]
    cache[::-1, ::-1][:, position, 2] = rows[:, 1]
    return cache[2, position]


FUNCTIONS = [put, put_into_views, put_first, put_beside_a_number, put_into_a_view, taken, computed]


def check(function, compiled, cache, rows, position):
    wanted_cache, own = cache.copy(), cache.copy()
    wanted, made = function(wanted_cache, rows, position), compiled(own, rows, position)
    np.testing.assert_array_equal(own, wanted_cache)
    for one, other in zip(
        *((x if isinstance(x, tuple) else (x,)) for x in (made, wanted)), strict=True
    ):
        if other is None:
            assert one is None
        else:
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8, np.array])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_positions_are_read_by_each_run(function, kind):
    compiled = aclnn.compile(function)
    cache, rows = filled(3, 3, 8), -filled(3, 8)
    if function is computed and kind is not np.array:
        kind = np.int64  # NumPy computes with others in their dtypes
    for position in (1, 2, 0, 1):
        check(function, compiled, cache, rows, kind(position))
    assert compiled.cache_info()["misses"] == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.bool_, np.complex64])
def test_positions_of_any_dtype_and_layout(dtype):
    compiled = aclnn.compile(put_first)
    for cache in (
        filled(4, 8, dtype=dtype),
        filled(8, 4, dtype=dtype).T,
        filled(4, 16, dtype=dtype)[:, ::-2],
    ):
        for position in (0, 3, -1):
            check(put_first, compiled, cache, filled(1, 8, dtype=dtype), np.int64(position))


def test_several_positions():
    def function(cache, rows, positions):
        cache[:, positions] = rows
        return cache[:, positions]

    compiled = aclnn.compile(function)
    for positions in ([0, 2], [3, 1], [-1, 0]):
        check(function, compiled, filled(2, 4, 3), -filled(2, 2, 3), np.array(positions))
    assert compiled.cache_info()["misses"] == 1


@pytest.mark.parametrize("position", [4, -5, 2**40])
def test_positions_outside_end_the_run_with_nothing_written(position):
    @aclnn.compile
    def write(cache, position):
        cache[position] = 1.0

    @aclnn.compile
    def read(cache, position):
        return cache[position] * 2

    cache = filled(4, 2)
    for function in (write, read):
        with pytest.raises(aclnn.AclnnError, match="index"):
            function(cache, np.int64(position))
        np.testing.assert_array_equal(cache, filled(4, 2))


def test_integers_that_shape_a_plan_are_part_of_it():
    def function(x, size, axis, position):
        return aclnn.softmax(x[:, :size], axis), x[position]

    compiled = aclnn.compile(function)
    x = filled(4, 4) / 8
    for size, axis in ((2, 0), (3, 1)):
        for position in (0, 1, 2):
            made = compiled(x, np.int64(size), np.int64(axis), np.int64(position))
            np.testing.assert_array_equal(made[0], aclnn.softmax(x[:, :size].copy(), axis))
            np.testing.assert_array_equal(made[1], x[position])
    assert compiled.cache_info()["size"] == 2  # one for each size and axis


def test_integers_beside_branches_and_types():
    @aclnn.compile
    def branches(x, n):
        return x * 2 if n > 3 else x

    @aclnn.compile
    def types(x, n):
        return x * 2 if isinstance(n, np.integer) else x

    x = filled(3)
    for n in (3, 4, 3):
        np.testing.assert_array_equal(branches(x, np.int64(n)), x * 2 if n > 3 else x)
        np.testing.assert_array_equal(types(x, np.int64(n)), x * 2)


def test_executors_take_positions():
    cache, rows = filled(3, 4, 2), -filled(3, 2)
    executor = aclnn.compile(put).executor(cache.copy(), rows, np.int64(1))
    for position in (np.int64(2), np.array(3), np.int64(0)):
        for given in ({"position": position}, None):
            own, wanted = cache.copy(), cache.copy()
            made = (
                executor.run(own, rows, position)
                if given is None
                else executor.run(own, rows, **given)
            )
            np.testing.assert_array_equal(made, put(wanted, rows, position))
            np.testing.assert_array_equal(own, wanted)


def test_a_cache_is_written_where_it_lies():
    """What reads it afterwards reads the caller's memory: no copy is planned."""

    @aclnn.compile
    def step(cache, row, position, weight):
        cache[position] = row
        return aclnn.relu(cache @ weight)

    cache, row, weight = filled(1024, 16), filled(16), filled(16, 2) / 64
    executor = step.executor(cache, row, np.int64(1), weight)
    assert executor.workspace_size < cache.nbytes // 2
    own, wanted = cache.copy(), cache.copy()
    made = executor.run(own, row, np.int64(7), weight)
    wanted[7] = row
    np.testing.assert_array_equal(own, wanted)
    np.testing.assert_allclose(made, np.maximum(wanted @ weight, 0), rtol=1e-5)


def test_what_reads_a_cache_before_it_is_written_reads_the_old_one():
    @aclnn.compile
    def step(cache, row, position):
        before = cache * 1
        cache[position] = row
        after = cache + before
        cache[position + 1] = row * 2
        return before, after, cache.sum(0)

    cache, row = filled(5, 3), -filled(3)
    own = cache.copy()
    before, after, total = step(own, row, np.int64(2))
    np.testing.assert_array_equal(before, cache)
    first = cache.copy()
    first[2] = row
    np.testing.assert_array_equal(after, first + cache)
    first[3] = row * 2
    np.testing.assert_array_equal(own, first)
    np.testing.assert_array_equal(total, first.sum(0))


@pytest.mark.parametrize("background", [False, True])
def test_plans_made_ahead(background):
    compiled = aclnn.compile(put)
    cache, rows = filled(3, 4, 2), -filled(3, 2)
    kept = cache.copy()
    with aclnn.num_threads(1):
        done = compiled.warm_up(cache, rows, np.int64(1), background=background)
        assert done.result(timeout=60) is None
        np.testing.assert_array_equal(cache, kept)
        assert compiled.cache_info()["misses"] == 1
        compiled(cache, rows, np.int64(2))
    assert compiled.cache_info()["misses"] == 1


def test_plans_made_ahead_raise_what_calls_raise():
    compiled = aclnn.compile(lambda x: aclnn.gelu(x.astype(np.int64)))
    with pytest.raises(aclnn.AclnnError):
        compiled.warm_up(filled(2))
    done = compiled.warm_up(filled(2), background=True)
    with pytest.raises(aclnn.AclnnError):
        done.result(timeout=60)


def _place(cache, rows, position):
    cache[1, 0, :, position] = rows


def _place_turned(cache, rows, position):
    cache.transpose(0, 1, 3, 2, 4)[0, 1][position] = rows * 2


def _place_part(cache, rows, position):
    cache[1].reshape(8, 64 * 8)[::2, 8:-8].reshape(4, 62, 8)[:, position] = rows


@pytest.mark.parametrize("function", [_place, _place_turned, _place_part])
def test_a_write_into_a_view_of_a_cache_copies_none_of_it(function):
    cache, rows = filled(2, 2, 4, 64, 8), -filled(4, 8)
    compiled = aclnn.compile(function)
    assert compiled.executor(cache.copy(), rows, np.int64(5)).plan.size < 1024
    for position in (5, 0, -1):
        check(function, compiled, cache, rows, np.int64(position))
    own = cache.copy()
    for position in (64, -65):
        with pytest.raises(aclnn.AclnnError, match="index"):
            compiled(own, rows, np.int64(position))
    np.testing.assert_array_equal(own, cache)
