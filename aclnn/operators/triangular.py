"""Systems of linear equations whose matrix is a triangle."""

from __future__ import annotations

from collections.abc import Mapping

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import Call, broadcast_shapes, has_shape, of_cann, rule
from aclnn.operators.declaration import Operator, argument, entry
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]

_SOLVED = (aclDataType.ACL_FLOAT, aclDataType.ACL_DOUBLE)
_OUTPUTS = ("out", "cloned_coefficient")


def _batch(call: Call) -> Shape | None:
    """The dimensions before the last two, of both operands."""
    return broadcast_shapes(call.shape("input")[:-2], call.shape("A")[:-2])


def _solved_shape(call: Call) -> Shape:
    return (*(_batch(call) or ()), *call.shape("input")[-2:])


def _matrix_shape(call: Call) -> Shape:
    return (*(_batch(call) or ()), *call.shape("A")[-2:])


@rule("the last two sizes of `A` are equal")
def _square(call: Call) -> str | None:
    rows, columns = call.shape("A")[-2:]
    if rows == columns:
        return None
    return f"{call.shaped('A')}, its last two sizes must be equal"


@rule("`input` has as many rows as `A`")
def _rows_fit(call: Call) -> str | None:
    rows, requested = call.shape("input")[-2], call.shape("A")[-1]
    if rows == requested:
        return None
    return (
        f"{call.shaped('input')}, must have {requested} rows, as many as "
        f"{call.names['A']} of shape {call.shape('A')}"
    )


@rule("all but the last two dimensions of both broadcast", "input", "A")
def _batches_broadcast(call: Call) -> str | None:
    if _batch(call) is not None:
        return None
    return (
        f"shapes do not broadcast before the last two dimensions: {call.names['input']} "
        f"{call.shape('input')}, {call.names['A']} {call.shape('A')}"
    )


@rule("`A` is FLOAT when `unitriangular` is true")
def _single_if_unit(call: Call) -> str | None:
    single = aclDataType.ACL_FLOAT
    if not call.switches["unitriangular"] or call.dtype("A") == single:
        return None
    return (
        f"{call.typed('A')}, must be {call.word(single)} when {call.names['unitriangular']} is true"
    )


def _lower(lowering: Lowering) -> Mapping[str, int]:
    """The transpose of a lower triangle is read as an upper one."""
    call, builder = lowering.call, lowering.builder
    dtype, shape = call.dtype("input"), _solved_shape(call)
    matrix = builder.broadcast_to(lowering.value("A"), _matrix_shape(call))
    made = {}
    if lowering.wants("cloned_coefficient"):
        made["cloned_coefficient"] = builder.contiguous(matrix)
    if not lowering.wants("out") or 0 in shape:
        return made
    transpose, upper = bool(call.switches["transpose"]), bool(call.switches["upper"])
    if transpose:
        value = builder.value(matrix)
        *batch, down, across = value.strides
        matrix = builder.view(matrix, value.shape, (*batch, across, down))
    right = builder.broadcast_to(lowering.value("input"), shape)
    wide = dtype if dtype in _SOLVED else aclDataType.ACL_FLOAT
    right, matrix = (builder.cast(one, graph_dtype(wide)) for one in (right, matrix))
    unit = bool(call.switches["unitriangular"])
    solved = lowering.opaque(
        "solve_triangle", [right, matrix], wide, shape, upper=upper != transpose, unit=unit
    )
    return {"out": builder.cast(solved, graph_dtype(dtype)), **made}


triangular_solve = Operator(
    name="triangular_solve",
    summary="Solution of linear systems whose matrix is a triangle, and a copy of the matrix.",
    expression="A·out = input, or Aᵀ·out = input when transpose; cloned_coefficient = A",
    notes=(
        "Only the triangle of `A` that `upper` names is read, without its diagonal when `unitriangular`. "
        "Dimensions before the last two broadcast. A zero on the diagonal gives Inf or NaN. "
        "Complex systems are not supported."
    ),
    inputs=("input", "A"),
    outputs=_OUTPUTS,
    optional=("cloned_coefficient",),
    attributes=tuple(
        [
            argument(role, default, "bool", doc)
            for role, default, doc in (
                ("upper", True, "Whether the upper triangle of `A` counts, or the lower one."),
                ("transpose", False, "Whether the transpose of `A` is the matrix."),
                ("unitriangular", False, "Whether the diagonal counts as ones."),
            )
        ]
    ),
    sample_specs=specs("input, A: [1,1]"),
    entries=(
        entry(
            "aclnnTriangularSolve",
            "self=input A=A upper:bool transpose:bool unitriangular:bool xOut=out:out "
            "mOut=cloned_coefficient:out?",
        ),
    ),
    rules=(
        *require("input: FLOATING_AND_DOUBLE; cann input: FLOAT DOUBLE; A: FLOATING_AND_DOUBLE"),
        *require("cann A: FLOAT DOUBLE; out: FLOATING_AND_DOUBLE"),
        *require("A, out, cloned_coefficient: dtype of input; input, A: 2 to 8 dims"),
        _square(),
        _rows_fit(),
        _batches_broadcast(),
        has_shape("out", _solved_shape, "the shape of `input`, broadcast"),
        has_shape("cloned_coefficient", _matrix_shape, "the shape of `A`, broadcast"),
        *require("input, A: if empty ends"),
        of_cann(_single_if_unit()),
    ),
    lower=_lower,
    example=(
        "triangular_solve(np.float32([[4], [6]]), np.float32([[2, 1], [0, 3]]))",
        "(array([[1.],\n       [2.]], dtype=float32), array([[2., 1.],\n       [0., 3.]], dtype=float32))",
    ),
    accuracy=(
        "Systems are solved by substitution in float64; float32 solutions are rounded once at the end, "
        "those of half precision from float32."
    ),
    gradient={"input, A": "gradient_of_solution(grad, A, out, upper, transpose, unitriangular)"},
    seealso=("tril", "triu", "matmul"),
)
