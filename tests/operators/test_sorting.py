"""Sorts, the largest elements, sampling and masked softmax, against NumPy and PyTorch."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from calls import refused, run, tensor
from cases import each
from guarded_memory import watched

import aclnn
from aclnn import aclDataType as T

INVALID, NULLPTR = 161002, 161001
BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = [
    *map(np.dtype, (np.float32, np.float16, np.float64, np.int8, np.uint8, np.int16, np.int32, np.int64)),
    BF16,
]  # fmt: skip
same = np.testing.assert_array_equal


def lines(dtype, n, seed=0):
    """Few different numbers, so that many are equal."""
    x = np.random.default_rng(seed).normal(0, 10, (3, n))
    return (np.abs(x) if dtype == np.uint8 else x).astype(dtype)


def order(x, descending):
    """Stable, by keys that float64 and int64 hold."""
    keys = x if x.dtype == np.int64 else x.astype(np.float64)
    return np.argsort(-keys if descending else keys, axis=-1, kind="stable")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_lines_of_all_lengths(dtype):
    """Merged ones, those sorted by digits of 8 and of 11 bits, and the largest found in all ways."""
    for n, descending in itertools.product(
        (1, 2, 9, 100, 192, 193, 700, 4096, 5000), (False, True)
    ):
        x = lines(dtype, n)
        wanted = order(x, descending)
        values, indices = aclnn.sort(x, -1, descending)
        same(indices, wanted)
        same(values, np.take_along_axis(x, wanted, -1))
        same(aclnn.argsort(x, -1, descending), wanted)
        for k in {0, 1, 5, 19, n // 3, n}:
            if k <= n:
                values, indices = aclnn.topk(x, k, -1, descending)
                same(indices, wanted[:, :k])
                same(values, np.take_along_axis(x, wanted[:, :k], -1))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, BF16], ids=str)
@pytest.mark.parametrize("many", [1, 40])
def test_special_numbers_keep_their_bits(dtype, many):
    x = np.array([np.nan, -0.0, 0.0, 1, -np.inf, np.inf, -np.nan, -3] * many).astype(dtype)
    places = np.arange(8 * many).reshape(many, 8)
    ascending = [places[:, n].ravel() for n in ([4], [7], [1, 2], [3], [5], [0, 6])]
    values, indices = aclnn.sort(x)
    same(indices, np.concatenate(ascending))
    same(values.view(np.uint8), x[indices].view(np.uint8))
    values, indices = aclnn.topk(x, 3 * many)
    same(indices, np.concatenate(ascending[:2:-1])[: 3 * many])
    same(values.view(np.uint8), x[indices].view(np.uint8))


@pytest.mark.parametrize("dim", [0, 1, 2, -3])
def test_any_dimension_and_strides(dim):
    x = np.random.default_rng(1).normal(size=(5, 40, 6)).astype(np.float32)
    for one in (x, np.asfortranarray(x), x[::-1, ::2, ::-1]):
        values, indices = aclnn.sort(one, dim, stable=True)
        same(values, np.sort(one, dim))
        same(indices, np.argsort(one, dim, kind="stable"))
        found = aclnn.topk(one, 2, dim, False)[1]
        same(found, np.argsort(one, dim, kind="stable").take(range(2), dim))


def test_numbers_without_dimensions():
    values, index = aclnn.sort(np.float32(7), 0)
    assert (values, index, values.shape) == (7, 0, ())
    assert aclnn.argsort(np.float32(7)) == 0
    assert aclnn.topk(np.float32(7), 1)[0].shape == ()


@each("dim", [0, -1])
@each("shapes", [((1,), (1,)), ((), (1,)), ((1,), ()), ((), ())])
def test_the_largest_of_a_number_without_dimensions(dim, shapes):
    values, indices = np.zeros(shapes[0], np.float32), np.full(shapes[1], 9)
    run("aclnnTopk", tensor(np.float32(7)), 1, dim, True, True, tensor(values), tensor(indices))
    assert (values, indices) == (7, 0)


@each("shape", [(), (5,), (2, 3)])
@each("shapes", [((0,), (3,)), ((3,), (0,)), ((4, 0), (0,))])
def test_none_of_the_largest_need_one_result_without_elements(shape, shapes):
    values, indices = np.full(shapes[0], 5, np.float32), np.full(shapes[1], 9)
    x = tensor(np.ones(shape, np.float32))
    run("aclnnTopk", x, 0, 0, True, True, tensor(values), tensor(indices))
    assert (values == 5).all()
    assert (indices == 9).all()
    full = tensor(np.ones(3, np.float32)), tensor(np.full(3, 9))
    assert refused("aclnnTopk", x, 0, 0, True, True, *full)[0] == INVALID


@each(
    "shape",
    [(2, 1, 3, 1, 2, 2, 1, 4, 1), (2, 1, 3, 1, 2, 2, 1, 2, 1, 2), (1,) * 9, (1,) * 9 + (5,)],
)
def test_more_dimensions_than_plans_have(shape):
    x = np.random.default_rng(3).permutation(np.prod(shape)).reshape(shape).astype(np.float32)
    for dim in (*range(len(shape)), -1, -len(shape)):
        values, indices = np.zeros_like(x), np.zeros(shape, np.int64)
        run("aclnnSort", tensor(x), False, dim, False, tensor(values), tensor(indices))
        same(values, np.sort(x, dim))
        same(indices, np.argsort(x, dim))
        for one, wanted in zip(
            aclnn.sort(x, dim, True), (-np.sort(-x, dim), np.argsort(-x, dim)), strict=True
        ):
            same(one, wanted)
    out = np.zeros_like(x), np.zeros(shape, np.int64)
    assert aclnn.sort(x, 2, out=out) is out
    same(out[0], np.sort(x, 2))
    for dim in (len(shape), -len(shape) - 1):
        given = tensor(x), False, dim, False, tensor(values), tensor(indices)
        status, words = refused("aclnnSort", *given)
        assert (status, f"dim is {dim}" in words) == (INVALID, True)
        with pytest.raises(aclnn.AclnnError, match=f"dim is {dim}"):
            aclnn.sort(x, dim)


def test_views_of_more_dimensions_than_plans_have():
    x = np.random.default_rng(4).permutation(2**10).reshape((2,) * 10).astype(np.float32)
    view = x.transpose(4, 5, 6, 7, 8, 9, 0, 1, 2, 3)
    values, indices = np.zeros((2,) * 10, np.float32), np.zeros((2,) * 10, np.int64)
    run("aclnnSort", tensor(view), False, 7, True, tensor(values), tensor(indices))
    same(values, -np.sort(-view, 7))
    crossed = x.transpose(9, 0, 8, 1, 7, 2, 6, 3, 5, 4)
    given = tensor(crossed), False, 7, True, tensor(values), tensor(indices)
    assert "do not become 8" in refused("aclnnSort", *given)[1]


def test_truth_values():
    same(aclnn.sort(np.bool_([True, False, True]))[1], [1, 0, 2])
    assert (
        refused("aclnnArgsort", tensor(np.bool_([True])), 0, False, tensor(np.int64([0])))[0]
        == INVALID
    )


@pytest.mark.parametrize(
    ("call", "status", "words"),
    [
        (lambda: aclnn.topk(np.ones(3, np.float32), 4), INVALID, "k is 4, must be from 0 to 3"),
        (lambda: aclnn.topk(np.ones(3, np.float32), 1, 1), INVALID, "dim is 1"),
        (lambda: aclnn.topk(np.ones(3, np.complex64), 1), INVALID, "complex64"),
        (lambda: aclnn.sort(np.ones(3, np.uint16)), INVALID, "uint16"),
        (lambda: aclnn.argsort(np.ones(3, np.complex64), 5), INVALID, "dim is 5"),
        (lambda: aclnn.top_k_top_p(np.ones((2, 3), np.float32)), NULLPTR, "both null"),
        (
            lambda: aclnn.top_k_top_p(np.ones((2, 3), np.float32), k=np.int32([1])),
            INVALID,
            "k has shape",
        ),
        (
            lambda: aclnn.scaled_masked_softmax(
                np.ones((1, 1, 2, 3), np.float32), np.ones((1, 1, 1, 3), np.bool_)
            ),
            INVALID,
            "mask has shape",
        ),
        (
            lambda: aclnn.scaled_masked_softmax(
                np.ones((1, 1, 1, 4097), np.float32), np.ones((1, 1, 1, 4097), np.bool_)
            ),
            INVALID,
            "4097 columns",
        ),
    ],
)
def test_what_is_refused(call, status, words):
    with pytest.raises(aclnn.AclnnError, match=words) as caught:
        call()
    assert caught.value.status == status


def test_argsort_of_single_bfloat16():
    """CANN's function refuses lines of one element, but for those on Ascend950."""
    out = tensor(np.zeros((3, 1), np.int64))
    x = tensor(np.zeros((3, 1), BF16))
    status, words = refused("aclnnArgsort", x, -1, False, out)
    assert (status, "more than one element" in words) == (INVALID, True)
    run("aclnnArgsort", x, 0, False, out)
    run("aclnnArgsort", tensor(np.zeros((3, 1), np.float16)), 1, False, out)
    run("aclnnArgsort", tensor(np.zeros((), BF16)), 0, False, tensor(np.int64(0)))
    same(aclnn.argsort(np.zeros((3, 1), BF16)), np.zeros((3, 1)))
    values = tensor(np.zeros((3, 1), BF16))
    run("aclnnSort", x, True, 1, False, values, out)
    before = aclnn.get_soc_version()
    aclnn.set_soc_version("Ascend950")
    try:
        run("aclnnArgsort", x, -1, False, out)
    finally:
        aclnn.set_soc_version(before)


def test_order_of_checks():
    """Topk: dim, k, dtypes, shapes; Argsort: dim before dtypes."""
    x, wrong = tensor(np.ones(3, np.complex64)), tensor(np.ones(2, np.float32))
    index = tensor(np.zeros(1, np.int64))
    assert "dim" in refused("aclnnTopk", x, 9, 4, True, True, wrong, index)[1]
    assert "k is 9" in refused("aclnnTopk", x, 9, 0, True, True, wrong, index)[1]
    assert "self has dtype" in refused("aclnnTopk", x, 1, 0, True, True, wrong, index)[1]
    assert refused("aclnnTopk", None, 9, 4, True, True, wrong, index)[0] == NULLPTR
    assert "dim" in refused("aclnnArgsort", x, 4, False, wrong)[1]


# --- Sampling -------------------------------------------------------------------------------------


def sampled(x, p, k):
    """The rule, element by element, in float64."""
    x, out = x.astype(np.float64), x.astype(np.float64).copy()
    for row, line in enumerate(x):
        places = np.argsort(line, kind="stable")
        left = np.ones(len(line), bool)
        if k is not None and 0 < k[row] < len(line):
            left = line >= line[places[-k[row]]]
        if p is not None:
            weights = np.where(left, np.exp(line - line.max()), 0)
            sums = np.cumsum((weights / weights.sum())[places])
            bound = float(np.float32(1) - np.float32(p[row]))
            left[places[:-1][sums[:-1] <= bound]] = False
        out[row, ~left] = -np.inf
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16], ids=str)
@pytest.mark.parametrize("n", [1, 5, 50, 1000])
def test_what_sampling_keeps(dtype, n):
    rng = np.random.default_rng(n)
    x = np.round(rng.normal(0, 2, (6, n)), 1).astype(dtype)
    p = np.array([0.1, 0.5, 0.9, 0.99, 0.3, 0.7]).astype(dtype)
    k = np.int32([1, 3, 0, -1, n + 1, n // 2])
    for given in ((p, None), (None, k), (p, k)):
        same(aclnn.top_k_top_p(x, *given).astype(np.float64), sampled(x, *given))


def test_a_p_of_one_drops_what_has_no_probability():
    x = np.float32([[0, 200, -300, 199]])
    same(aclnn.top_k_top_p(x, p=np.float32([1])), [[-np.inf, 200, -np.inf, 199]])
    same(aclnn.top_k_top_p(x, p=np.float32([0])), [[-np.inf, 200, -np.inf, -np.inf]])


# --- Softmax with a mask --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16], ids=str)
@pytest.mark.parametrize("masked", [(2, 3, 4, 70), (1, 3, 4, 70), (2, 1, 4, 70), (1, 1, 4, 70)])
def test_scaled_masked_softmax(dtype, masked):
    rng = np.random.default_rng(0)
    x, mask = rng.normal(0, 3, (2, 3, 4, 70)).astype(dtype), rng.random(masked) < 0.5
    mask[..., 1, :] = True  # such rows are uniform
    scores = np.where(mask, -10000.0, x.astype(np.float64) * 0.5)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True)
    found = aclnn.scaled_masked_softmax(x, mask, 0.5).astype(np.float64)
    np.testing.assert_allclose(found, wanted, 1e-6 if dtype == np.float32 else 5e-3, 1e-7)


# --- As PyTorch has them --------------------------------------------------------------------------


def test_gradients_are_pytorchs():
    torch = pytest.importorskip("torch")
    import aclnn.torch as at

    x = torch.randn(4, 9, 5, generator=torch.Generator().manual_seed(0))
    for ours, theirs in (
        (lambda x: at.sort(x, 1, True)[0], lambda x: torch.sort(x, 1, True)[0]),
        (lambda x: at.topk(x, 3, 1)[0], lambda x: torch.topk(x, 3, 1)[0]),
        (lambda x: at.topk(x, 3, 0, False)[0], lambda x: torch.topk(x, 3, 0, False)[0]),
    ):
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        weights = torch.randn(ours(a).shape, generator=torch.Generator().manual_seed(1))
        (ours(a) * weights).sum().backward()
        (theirs(b) * weights).sum().backward()
        torch.testing.assert_close(a.grad, b.grad)


def test_c_shaped_calls_write_what_they_are_given():
    x = np.float32([[3, 1, 2], [0, 5, 4]])
    values, indices = np.zeros((2, 6), np.float32)[:, ::2], np.zeros((2, 3), np.int64)
    size, executor, status = aclnn.aclnnSortGetWorkspaceSize(
        tensor(x), True, 1, True, tensor(values), tensor(indices)
    )
    assert status == 0
    assert aclnn.aclnnSort(np.empty(size, np.uint8), size, executor, None) == 0
    same(values, [[3, 2, 1], [5, 4, 0]])
    same(indices, [[0, 2, 1], [1, 2, 0]])
    assert aclnn.aclGetDataType(tensor(indices))[0] == T.ACL_INT64


@each("dtype", [np.float32, np.float16, np.int8, np.float64, np.int64])
def test_sorts_keep_to_their_scratch_and_results(dtype):
    """Lines shorter and longer than vectors; one thread, so that the memory is of the workspace."""
    for n, k in ((1, 1), (2, 1), (5, 5), (17, 3), (33, 20), (200, 7), (1111, 40)):
        x = lines(np.dtype(dtype), n, n)
        places = order(x, True)
        for name, count in ("sort", n), ("topk", k):
            wanted = np.take_along_axis(x, places[:, :count], -1)
            given = (x, -1, True) if name == "sort" else (x, k)
            with aclnn.num_threads(1):
                ex = aclnn.executor(name, *given)
                with watched(ex.workspace_size) as workspace:
                    found, indices = ex.run(workspace=workspace)
                    same(np.asarray(indices), places[:, :count])
                with watched(wanted.nbytes) as values, watched(wanted.size * 8) as at:
                    out = (
                        values.view(x.dtype).reshape(wanted.shape),
                        at.view(np.int64).reshape(wanted.shape),
                    )
                    getattr(aclnn, name)(*given, out=out)
                    same(out[0], wanted)
            same(np.asarray(found), wanted)
        if np.dtype(dtype) in (np.float32, np.float16):
            with aclnn.num_threads(1):
                ex = aclnn.executor(
                    "top_k_top_p", x, p=np.full(3, 1, dtype), k=np.full(3, k, np.int32)
                )
                with watched(ex.workspace_size) as workspace:
                    kept = np.asarray(ex.run(workspace=workspace))
            assert ((kept == -np.inf) | (kept == x)).all()
            assert ((kept > -np.inf).sum(-1) >= k).all()
