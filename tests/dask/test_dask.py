"""Operators and compiled functions over chunks of Dask's arrays: results are those of whole arrays."""

import os
import pathlib
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from cases import each
from setups import fresh

import aclnn

da = pytest.importorskip("dask.array", reason="Dask is not installed")

RNG = np.random.default_rng(7)
X = RNG.standard_normal((100, 64)).astype(np.float32)
BATCH = RNG.standard_normal((5, 7, 64)).astype(np.float32)
WEIGHT = RNG.standard_normal(64).astype(np.float32)
PRODUCT = RNG.standard_normal((64, 50)).astype(np.float32)
HALVES = (np.float16, ml_dtypes.bfloat16)


def chunked(array, size=13):
    return da.from_array(
        array, chunks=tuple(min(size + 3 * d, n) for d, n in enumerate(array.shape))
    )


def both(function, *operands, **options):
    """Of chunks, and of whole arrays; what Dask says of the former beforehand is so."""
    lifted = function(
        *[chunked(x) if isinstance(x, np.ndarray) else x for x in operands], **options
    )
    assert isinstance(lifted, da.Array)
    found, want = lifted.compute(scheduler="sync"), function(*operands, **options)
    assert lifted.dtype == lifted._meta.dtype == found.dtype == want.dtype
    assert lifted.shape == found.shape == want.shape
    for place in np.ndindex(lifted.numblocks):
        sizes = tuple([lifted.chunks[axis][n] for axis, n in enumerate(place)])
        block = lifted.blocks[place] if place else lifted
        assert block.compute(scheduler="sync").shape == sizes
    return found, want


EXACT = {
    "gelu": ((X,), {}),
    "leaky_relu": ((X, 0.1), {}),
    "mul by a number": ((X, 2), {}),
    "add": ((X, X[:1]), {"alpha": 3}),
    "where": ((X > 0, X, 0.0), {}),
    "clamp": ((X, -1, 1), {}),
    "cast": ((X, np.int8), {}),
    "eq": ((X, X[:, :1]), {}),
    "softmax": ((X, 1), {}),
    "log_softmax": ((X, 0), {}),
    "softmax_backward": ((X, X, -1), {}),
    "cumsum": ((X, 0), {}),
    "swiglu": ((X, 1), {}),
    "swiglu_backward": ((X[:, :32], X, 1), {}),
    "glu": ((X, 0), {}),
    "gelu_mul": ((X,), {}),
    "layer_norm": ((X, [64], WEIGHT), {}),
    "rms_norm": ((X, 64, WEIGHT), {}),
    "group_norm": ((BATCH, 7, WEIGHT[:7]), {}),
    "batch_norm": ((BATCH, WEIGHT[:7], WEIGHT[:7] ** 2), {}),
    "prelu": ((BATCH, WEIGHT[:7]), {}),
    "embedding": ((X, np.arange(100).reshape(20, 5)), {}),
    "var": ((X, [0]), {}),
    "arg_max": ((X, 1), {"keepdim": True}),
    "amax": ((X, [0, 1]), {}),
    "max": ((X,), {}),
}  # fmt: skip


@pytest.mark.parametrize("case", EXACT)
def test_bits_are_those_of_whole_arrays(case):
    operands, options = EXACT[case]
    found, want = both(getattr(aclnn, case.split()[0]), *operands, **options)
    assert found.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", ["gelu", "softmax", "sum", "mean", "amax"])
def test_half_precision(name, dtype):
    arguments = {"gelu": (), "softmax": (1,)}.get(name, ([1],))
    found, want = both(getattr(aclnn, name), X.astype(dtype), *arguments)
    assert found.tobytes() == want.tobytes()


@pytest.mark.parametrize("dim", [None, [0], [1], [0, 2], [-1]])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_go_over_chunks_one_by_one(name, dim, keepdim):
    found, want = both(getattr(aclnn, name), BATCH, dim, keepdim)
    np.testing.assert_allclose(found, want, rtol=2e-7, atol=1e-6)
    found, want = both(
        getattr(aclnn, name), (100 * BATCH).astype(np.int32), dim, keepdim, dtype=np.float32
    )
    np.testing.assert_allclose(found, want, rtol=2e-7)


def test_sums_of_integers_stay_integers():
    found, want = both(aclnn.sum, np.full((40, 3), 2**53 + 1), [0])
    assert found.dtype == np.int64
    assert found.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("mm", (X, PRODUCT)),
        ("matmul", (X, PRODUCT[:, 0])),
        ("matmul", (X[0], PRODUCT)),
        ("matmul", (X[0], X[1])),
        ("matmul", (BATCH, PRODUCT)),
        ("bmm", (BATCH, BATCH.transpose(0, 2, 1))),
        ("addmm", (PRODUCT[0], X, PRODUCT)),
        ("addbmm", (X[:7, :7], BATCH, BATCH.transpose(0, 2, 1))),
        ("mv", (X, WEIGHT)),
        ("addmv", (X[:, 0], X, WEIGHT)),
    ],
)
def test_products(name, operands):
    found, want = both(getattr(aclnn, name), *operands)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-4)


def test_only_axes_that_belong_together_are_rechunked():
    x = chunked(X)
    assert aclnn.gelu(x).chunks == x.chunks
    assert aclnn.softmax(x, 1).chunks == (x.chunks[0], (64,))
    assert aclnn.layer_norm(x, [64]).chunks == (x.chunks[0], (64,))
    assert aclnn.sum(x, [0]).chunks == (x.chunks[1],)
    assert aclnn.mm(x, chunked(PRODUCT)).chunks == (x.chunks[0], chunked(PRODUCT).chunks[1])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: aclnn.leaky_relu_(x), "arrays of Dask's are not written"),
        (lambda x: aclnn.gelu(x, out=X), "out is given, but Dask arrays cannot be written"),
        (lambda x: aclnn.gelu(X, out=x), "out is given, but Dask arrays cannot be written"),
        (lambda x: aclnn.cat([x, x], 0), "use dask.array's own: concatenate"),
        (lambda x: aclnn.permute(x, [1, 0]), "use dask.array's own: transpose"),
        (lambda x: aclnn.split(x, 10), "use dask.array's own: x[start:end]"),
        (lambda x: aclnn.prelu_backward(x, x, X[0]), "gradients of weights are sums over all"),
        (lambda x: aclnn.gather(x, 0, x.astype(np.int64)), "map_blocks calls it on each"),
        (lambda x: aclnn.softmax(x, 2), "dim is 2, must be from -2 to 1"),
        (lambda x: aclnn.gelu(x.astype(np.int32)), "self has dtype int32"),
        (lambda x: aclnn.add(x, X[:3]), "do not broadcast"),
        (lambda x: aclnn.gelu(x[x[:, 0] > 0]), "x.compute_chunk_sizes"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_computed(call, said):
    with pytest.raises(aclnn.AclnnError) as caught:
        call(chunked(X))
    assert said in str(caught.value)
    assert caught.traceback[-1].path == pathlib.Path(__file__)
    name, _, rest = str(caught.value).partition(": ")
    assert not rest.startswith(f"{name}: ")


SEVERAL = {
    "native_layer_norm": lambda x, y: aclnn.native_layer_norm(x, [64], WEIGHT, WEIGHT),
    "several axes": lambda x, y: aclnn.native_layer_norm(x, [6, 64]),
    "native_rms_norm": lambda x, y: aclnn.native_rms_norm(x, WEIGHT),
    "gemma_rms_norm": lambda x, y: aclnn.gemma_rms_norm(x, WEIGHT),
    "add_rms_norm": lambda x, y: aclnn.add_rms_norm(x, y, WEIGHT),
    "add_rms_norm_cast": lambda x, y: aclnn.add_rms_norm_cast(
        x.astype(np.float16), y.astype(np.float16), WEIGHT.astype(np.float16)
    ),
    "add_layer_norm": lambda x, y: aclnn.add_layer_norm(x, y, WEIGHT, WEIGHT),
    "group_norm_silu": lambda x, y: aclnn.group_norm_silu(x, WEIGHT[:6], WEIGHT[:6], 3),
    "geglu": lambda x, y: aclnn.geglu(x),
    "lifted": lambda x, y: LIFTED(x, y) if isinstance(x, da.Array) else scores(x, y),
}


@aclnn.compile
def scores(x, y):
    total = aclnn.sum(x * y, [-1], True)
    return {"x": aclnn.softmax(x, -1), "rest": (total, y + total)}


LIFTED = aclnn.dask.lift(scores, whole=-1)


@pytest.mark.parametrize("name", SEVERAL)
def test_several_results_are_those_of_whole_arrays(name):
    x, y = np.random.default_rng(3).normal(size=(2, 8, 6, 64)).astype(np.float32)
    parts = [da.from_array(one, chunks=(3, 2, 16)) for one in (x, y)]
    found, want = SEVERAL[name](*parts), SEVERAL[name](x, y)
    if name == "lifted":
        assert found.keys() == want.keys()
        found, want = ((one["x"], *one["rest"]) for one in (found, want))
    assert type(found) is type(want)
    for one, whole in zip(found, want, strict=True):
        if one is None:
            assert whole is None or name == "add_layer_norm"
            continue
        computed = one.compute(scheduler="sync")
        assert (one.shape, one.dtype) == (whole.shape, whole.dtype)
        assert computed.tobytes() == whole.tobytes()
        assert one.chunks[0] == (3, 3, 2)
        assert one.compute_chunk_sizes().chunks == one.chunks


def test_several_results_are_computed_together():
    x = da.from_array(X, chunks=(40, 16))
    results = aclnn.native_rms_norm(x, WEIGHT)
    with aclnn.profile() as profile:
        da.compute(*results, scheduler="sync")
    assert len(profile) == 3, "a run for each chunk"


def test_executors_are_of_arrays_in_memory():
    with pytest.raises(aclnn.AclnnTypeError, match=r"gelu: self is .*; use self.compute\(\)"):
        aclnn.executor("gelu", chunked(X))


def test_names_that_are_nearly_right_are_guessed():
    with pytest.raises(AttributeError, match="no attribute 'gellu'; did you mean 'gelu'") as caught:
        aclnn.dask.gellu  # noqa: B018
    assert caught.traceback[-1].path == pathlib.Path(__file__)


# --- Compiled functions ---------------------------------------------------------------------------


@aclnn.compile
def gate(x, weight):
    return aclnn.silu(x) * weight + 1.5


@aclnn.compile
def norm(x, weight):
    return aclnn.silu(aclnn.rms_norm(x, 64, weight))


@aclnn.compile
def closed_over(x):
    return aclnn.silu(x) * WEIGHT


def test_elementwise_functions_go_over_any_chunks():
    found, want = both(gate, X, WEIGHT)
    assert found.tobytes() == want.tobytes()
    assert gate(chunked(X), WEIGHT).chunks == chunked(X).chunks


def test_functions_of_rows_say_which_axes_are_whole():
    with pytest.raises(
        aclnn.AclnnError, match="norm: rms_norm may read elements of other positions"
    ):
        norm(chunked(X), WEIGHT)
    lifted = aclnn.dask.lift(norm, whole=-1)
    result = lifted(chunked(X), WEIGHT)
    assert result.chunks == (chunked(X).chunks[0], (64,))
    assert result.compute(scheduler="sync").tobytes() == norm(X, WEIGHT).tobytes()


def test_arrays_that_a_function_closes_over_are_whole():
    result = closed_over(chunked(X))
    assert result.chunks == (chunked(X).chunks[0], (64,))
    assert result.compute(scheduler="sync").tobytes() == closed_over(X).tobytes()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: x[::-1], "a slice may read elements of other positions"),
        (lambda x: aclnn.silu(x[:, ::-1]), "a slice may read"),
        (lambda x: aclnn.add(x, aclnn.amax(x, [1], True)), "amax may read"),
        (lambda x: (x, aclnn.sum(x, [1])), "gives shape \\(100,\\) for arguments of shape"),
        (lambda x: (x, 3 * X), "gives an array that is not made of its arguments"),
        (lambda x: None, "gives no array"),
        (
            lambda x: aclnn.sum(x, [1]),
            "gives shape \\(100,\\) for arguments of shape \\(100, 64\\)",
        ),
    ],
)
def test_functions_that_are_not_elementwise_are_refused(function, said):
    with pytest.raises(aclnn.AclnnError, match=said):
        aclnn.dask.lift(function)(chunked(X))


def test_lift_checks_what_it_is_told():
    with pytest.raises(aclnn.AclnnError, match="whole is 'rows', must be ints"):
        aclnn.dask.lift(gate, whole="rows")
    with pytest.raises(aclnn.AclnnError, match="whole has 2, but the result has 2 axes"):
        aclnn.dask.lift(gate, whole=2)(chunked(X), WEIGHT)
    with pytest.raises(
        aclnn.AclnnError, match="weight is a Dask array, which must be passed by position"
    ):
        aclnn.dask.lift(gate)(chunked(X), weight=chunked(WEIGHT))


def test_arguments_of_lifted_functions_broadcast():
    lifted = aclnn.dask.lift(lambda x, y: x @ y, whole=-1)
    with pytest.raises(aclnn.AclnnError, match="its arguments do not broadcast"):
        lifted(chunked(X), chunked(PRODUCT))


def test_a_plain_function_is_compiled():
    lifted = aclnn.dask.lift(lambda x: aclnn.relu(x) - 1)
    assert (
        lifted(chunked(X)).compute(scheduler="sync").tobytes() == (np.maximum(X, 0) - 1).tobytes()
    )


# --- Packages and threads -------------------------------------------------------------------------


def test_nothing_is_imported_for_it():
    done = fresh(
        "import sys, numpy as np, aclnn; aclnn.gelu(np.ones(3, np.float32)); aclnn.aclnnGelu\n"
        "assert not any(name.partition('.')[0] == 'dask' for name in sys.modules)\n"
        "sys.modules['dask'] = None\n"
        "try:\n    import aclnn.dask\n"
        "except ImportError as error:\n    print(error)\n"
    )
    assert done.stdout.strip() == "aclnn.dask needs Dask: pip install 'aclnn-cpu[dask]'", (
        done.stderr
    )


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="looks into /proc")
COUNT = """
import os
import pathlib
import numpy as np, dask.array as da, aclnn

def tasks():
    return len(os.listdir("/proc/self/task"))

aclnn.set_num_threads(2)
"""


@needs_proc
def test_chunks_take_the_threads_of_dask_alone():
    done = fresh(
        COUNT
        + """
x = da.ones((4, 1 << 17), chunks=(1, -1), dtype=np.float32)
double = aclnn.compile(lambda x: aclnn.silu(x) + x, threads=2)
before = tasks()
for result in (aclnn.gelu(x), aclnn.softmax(x, 1), aclnn.sum(x), double(x)):
    result.compute(scheduler="sync")
    assert tasks() == before, result
aclnn.gelu(np.ones(1 << 17, np.float32))
assert tasks() == before + 1
""",
        OPENBLAS_NUM_THREADS="1",
    )
    assert done.returncode == 0, done.stderr


CLUSTER = (
    COUNT
    + """
import dask
from distributed import Client, LocalCluster

GIB = 1 << 30

@aclnn.compile
def gate(x, weight):
    return aclnn.silu(x) * weight

def unlimited():
    "What the test would see if chunks were computed with more threads."
    aclnn.set_num_threads(2)
    before = tasks()
    aclnn.gelu(np.ones(1 << 17, np.float32))
    return tasks() - before

def main():
    environ = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1", "MALLOC_TRIM_THRESHOLD_": "0"}
    dask.config.set({"distributed.nanny.pre-spawn-environ": environ})
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="300MiB", processes=True, dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(aclnn.set_num_threads, 2)
        x = da.ones((1 << 14, 1 << 14), chunks=(1 << 8, 1 << 14), dtype=np.float32)
        assert x.nbytes == GIB
        warm = aclnn.sum(gate(x[:512], np.float32(2)))
        warm.compute()
        before = client.run(tasks)
        y = aclnn.sum(aclnn.softmax(gate(x, np.float32(2)), -1))
        total = float(y.compute())
        assert total == 1 << 14, total
        assert client.run(tasks) == before, "chunks have woken threads"
        assert set(client.run(unlimited).values()) == {1}
        workers = client.scheduler_info()["workers"].values()
        assert all(worker["memory_limit"] < 315 << 20 for worker in workers)

if __name__ == "__main__":
    main()
    print("done")
"""
)


@needs_proc
def test_a_cluster_of_processes_with_less_memory_than_the_array(tmp_path):
    pytest.importorskip("distributed", reason="distributed is not installed")
    (tmp_path / "cluster.py").write_text(CLUSTER)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "cluster.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "done", done.stderr[-3000:]


@each("chunks", [((0, 3), (4,)), ((3,), (0, 4, 0)), ((0, 1, 0, 2), (2, 0, 2)), ((3, 0), (1, 3))])
def test_reductions_take_chunks_without_elements(chunks):
    for dtype in (np.float32, ml_dtypes.bfloat16, np.int8):
        x = -np.arange(1, 13, dtype=np.float32).reshape(3, 4).astype(dtype)
        lazy = da.from_array(x, chunks=chunks)
        for axis in ((0,), (1,), (0, 1)):
            for kept in (False, True):
                found = aclnn.amax(lazy, axis, kept).compute()
                np.testing.assert_array_equal(found, aclnn.amax(x, axis, kept))
                if dtype == np.float32:
                    found = aclnn.sum(lazy, axis, kept).compute()
                    np.testing.assert_array_equal(found, aclnn.sum(x, axis, kept))
        assert aclnn.max(lazy).compute() == aclnn.max(x)
    nothing = np.ones((0, 4), np.float32)
    alone, lazy = [
        outcome_of_amax(one) for one in (nothing, da.from_array(nothing, chunks=((0, 0), (4,))))
    ]
    assert alone == lazy


def outcome_of_amax(array):
    try:
        aclnn.amax(array, 0)
    except aclnn.AclnnError as error:
        return error.status
    return 0
