"""Memory outside: more than 8 dimensions, and views that reach further than what they are of."""

from dataclasses import replace

import numpy as np
import pytest
from aclnn.graph import DType, GraphBuilder, GraphError, check
from cases import each
from setups import tensor

import aclnn

EIGHT = np.ones((2,) * 8, np.float32)
F32 = DType("float32", 4)

RESULTS = {
    "a new axis of the result": lambda x: aclnn.relu(x)[None],
    "a new axis of an argument": lambda x: x[None],
    "an operand": lambda x: x[None] * 2,
    "repeats": lambda x: np.broadcast_to(x, (2, 2, *x.shape)),
    "a reshape": lambda x: x.reshape(2, 2, 2, 2, 2, 2, 2, 2, 1),
    "a sum": lambda x: np.broadcast_to(x, (2,) * 9).sum(),
    "a stack": lambda x: np.stack([x, x]),
    "a step": lambda x: aclnn.call(np.copyto, x, shape=(1,) * 9, dtype=np.float32),
}


@each("name", list(RESULTS))
def test_compiled_functions_refuse_more_than_eight_dimensions(name):
    function = RESULTS[name]
    with pytest.raises(aclnn.AclnnError, match=r"(9|10) dimensions, at most 8") as caught:
        aclnn.compile(function)(EIGHT)
    assert f"test_many_dims.py:{function.__code__.co_firstlineno}" in str(caught.value)


@each("rows, rank", [(2, 8), (2, 7), (4, 6)])
def test_selections_refuse_results_of_more_than_eight_dimensions(rows, rank):
    index = np.zeros((1,) * rank, np.int64)
    fits = rank + rows - 1 <= 8
    for function, table in [
        (lambda t: aclnn.gather_v2(t, 0, index), np.ones((3,) * rows, np.float32)),
        (lambda t: aclnn.embedding(t, index), np.ones((3, 2), np.float32)),
    ]:
        if fits or (table.ndim == 2 and rank < 8):
            assert function(table).ndim == rank + table.ndim - 1
            continue
        with pytest.raises(
            aclnn.AclnnError, match=r"out has shape .* dimensions, at most 8"
        ) as caught:
            function(table)
        assert caught.value.status == 161002


@each("pad", [(-3, 2), (2, -3), (-1, -2), (-3, 3), (0, 0, -5, 4), (-100, 200)])
def test_padding_removes_no_more_than_there_is(pad):
    x = np.ones((4, 2), np.float32)
    with pytest.raises(aclnn.AclnnError, match=r"less than nothing") as caught:
        aclnn.constant_pad_nd(x, pad)
    assert caught.value.status == 161002
    sizes = np.maximum(np.add(x.shape, [sum(pad[2:]), sum(pad[:2])]), 0)
    operands = (
        tensor(x),
        aclnn.aclCreateIntArray(list(pad)),
        aclnn.aclCreateScalar(0.0, aclnn.ACL_FLOAT),
    )
    aclnn.aclGetRecentErrMsg()
    *_, status = aclnn.aclnnConstantPadNdGetWorkspaceSize(*operands, tensor(np.empty(sizes, "f4")))
    assert status == 161002
    assert "pad is" in aclnn.aclGetRecentErrMsg()


@each("pad", [(-2, 2), (2, -2), (-1, -1), (-2, 0, 3, -4)])
def test_padding_may_remove_all(pad):
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    found = aclnn.constant_pad_nd(x, pad, 7)
    assert (found == 7).all() or not found.size


OUTSIDE = [
    ((4,), (1,), -1),
    ((5,), (1,), 0),
    ((2,), (-1,), 0),
    ((2, 2), (3, 1), 0),
    ((1,), (1,), 4),
]


@each("shape, strides, offset", OUTSIDE)
def test_graphs_have_no_views_outside(shape, strides, offset):
    for verify in (False, True):
        builder = GraphBuilder()
        x, out = builder.input("x", (4,), F32), builder.output("out", shape, F32)
        builder.view_copy(builder.contiguous(builder.view(x, shape, strides, offset)), out)
        with pytest.raises(GraphError, match="stays inside x"):
            builder.build(verify=verify)


def test_nothing_has_no_views_with_elements():
    builder = GraphBuilder()
    x, out = builder.input("x", (0,), F32), builder.output("out", (1,), F32)
    builder.view_copy(builder.contiguous(builder.view(x, (1,), (1,))), out)
    with pytest.raises(GraphError, match="stays inside x"):
        builder.build(verify=False)


def test_the_verifier_looks_at_changed_views():
    builder = GraphBuilder()
    x, out = builder.input("x", (4,), F32), builder.output("out", (2,), F32)
    view = builder.view(x, (2,), (1,))
    builder.view_copy(builder.contiguous(view), out)
    graph = builder.build()
    moved = [replace(v, offset=3) if v.id == view else v for v in graph.values]
    with pytest.raises(GraphError, match="stays inside x"):
        check(replace(graph, values=tuple(moved)))
