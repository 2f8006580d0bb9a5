"""Calls as editors and type checkers see them; `tests/api/test_types.py` has them checked."""

from array import array
from typing import Any, assert_type

import numpy as np
from aclnn.graph import Graph, Schedule, WorkspacePlan
from numpy.typing import NDArray

import aclnn

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


class Exporter:
    """An array of another library's."""

    def __dlpack__(self, *, stream: int | None = None) -> object:
        raise NotImplementedError


def executors(x: Floats) -> None:
    ex = aclnn.executor("gelu", x)
    assert_type(ex, aclnn.aclOpExecutor)
    assert_type(ex.graph, Graph)
    assert_type(ex.plan, WorkspacePlan)
    assert_type(ex.schedule, Schedule)
    assert_type(ex.profile(repeat=3), aclnn.Profile)
    assert_type(ex.workspace_size, int)
    assert_type(ex.plan.to_text(), str)


def forms(x: Floats, other: Exporter) -> None:
    assert_type(aclnn.gelu(x), Floats)
    assert_type(aclnn.gelu([1.0, 2.0]), NDArray[Any])
    assert_type(aclnn.gelu(array("f", [1.0])), NDArray[Any])
    assert_type(aclnn.gelu(other, approximate="tanh"), Exporter)
    assert_type(aclnn.add(other, 2.0), Exporter)
    assert_type(aclnn.add(x, x, alpha=2), Floats)
    assert_type(aclnn.add(x, 2.0), Floats)
    assert_type(aclnn.add(np.arange(3), 2.0), NDArray[Any])
    assert_type(aclnn.exp(x), Floats)
    assert_type(aclnn.eq(x, 2.0), NDArray[np.bool])
    assert_type(aclnn.eq(other, 2.0), Exporter)
    assert_type(aclnn.where(x > 0, x, x), Floats)
    assert_type(aclnn.cat([x, x], 0), Floats)
    assert_type(aclnn.cat([other, other], 0), Exporter)
    assert_type(aclnn.split(x, 2), tuple[Floats, ...])
    assert_type(aclnn.split(other, 2), tuple[Exporter, ...])
    assert_type(aclnn.leaky_relu_(x), Floats)
    assert_type(aclnn.gelu(x, out=x), Floats)
    assert_type(aclnn.add([1, 2], x, out=x), Floats)
    assert_type(aclnn.gelu(input=x), Floats)
    assert_type(aclnn.gelu(self=x), Floats)
    assert_type(aclnn.gelu(other, out=other), Exporter)
    aclnn.gelu(x, approximate="tahn")  # type: ignore[call-overload]
    aclnn.gelu(x, aproximate="tanh")  # type: ignore[call-overload]
    aclnn.gelu(None)  # type: ignore[call-overload]
    aclnn.softmax(x)  # type: ignore[call-overload]


def rows(x: Floats, half: NDArray[np.float16], indices: NDArray[np.int64]) -> None:
    assert_type(aclnn.softmax(half, dim=-1), NDArray[np.float16])
    assert_type(aclnn.matmul(x, x), Floats)
    assert_type(aclnn.matmul(x, half), NDArray[Any])
    assert_type(aclnn.sum(x, 0), Floats)
    assert_type(aclnn.sum(indices, 0), NDArray[Any])
    assert_type(aclnn.sum(x, 0, dtype=np.float64), NDArray[Any])
    assert_type(aclnn.arg_max(x, 0), Integers)
    assert_type(aclnn.max_dim(half, 0), tuple[NDArray[np.float16], Integers])
    assert_type(aclnn.topk(x, 2), tuple[Floats, Integers])
    assert_type(aclnn.native_rms_norm(half, half), tuple[NDArray[np.float16], Floats])
    assert_type(aclnn.layer_norm(half, 8, half), NDArray[np.float16])
    assert_type(aclnn.layer_norm(half, 8, x), NDArray[Any])
    assert_type(aclnn.index_select(half, 0, indices), NDArray[np.float16])
    assert_type(aclnn.conv2d(x, x, None, 2), Floats)
    assert_type(aclnn.nonzero_padded(x), tuple[Integers, Integers])
    assert_type(aclnn.cast(x, np.float16), NDArray[Any])
    assert_type(aclnn.dynamic_quant(half), tuple[NDArray[np.int8], Floats])
    aclnn.topk(x)  # type: ignore[call-overload]
    aclnn.sum(x, 0, dtpye=np.float64)  # type: ignore[call-overload]


@aclnn.compile
def gate(x: Floats, y: Floats, scale: float = 1.0) -> tuple[NDArray[Any], float]:
    """A function with an option."""
    return aclnn.silu(x) * y, scale


@aclnn.compile(threads=2, strategy="exact")
def halves(x: Floats) -> list[NDArray[Any]]:
    return [x[0], x[1]]


def compiled(x: Floats) -> None:
    assert_type(gate(x, x), tuple[NDArray[Any], float])
    assert_type(gate(x, y=x, scale=2.0), tuple[NDArray[Any], float])
    assert_type(gate(x, x, out=(x, None)), tuple[NDArray[Any], float])
    assert_type(gate.executor(x, x), aclnn.aclOpExecutor)
    assert_type(halves(x), list[NDArray[Any]])
    assert_type(halves.cache_info(), dict[str, int])
    gate("x", x)  # type: ignore[call-overload]
    halves(x, 3)  # type: ignore[call-overload]
    gate.executor()  # type: ignore[call-overload]


def c_shaped(x: Floats) -> None:
    assert_type(aclnn.tensor(x), aclnn.aclTensor)
    size, ex, status = aclnn.aclnnGeluGetWorkspaceSize(aclnn.tensor(x), aclnn.tensor(x))
    assert_type((size, status), tuple[int, int])
    assert_type(ex, aclnn.aclOpExecutor | None)
    assert_type(aclnn.aclnnGelu(None, size, ex, None), int)


def errors() -> None:
    try:
        aclnn.set_verbose(1, logger="aclnn")
    except aclnn.AclnnTypeError as error:
        assert_type(error.status, int)
        assert_type(error.message, str)
