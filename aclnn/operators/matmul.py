"""Matrix products: of matrices, vectors and batches of them, alone and added to something."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from aclnn.acl import dtypes
from aclnn.acl.constants import aclDataType, aclFormat
from aclnn.operators.checks import (
    FLOATING,
    FLOATING_AND_DOUBLE,
    Call,
    Rule,
    broadcast_shapes,
    castable,
    dtype_among,
    of_cann,
    promoted,
    result_castable,
    rule,
    same_dtype,
    scalar_dtype_among,
)
from aclnn.operators.declaration import Attribute, Operator, argument, entry
from aclnn.operators.lowering import FLOATING_NAMES, Lowering, graph_dtype
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]
MOST_DIMS = 6
# What cubeMathType numbers.
KEEP_DTYPE, ALLOW_FP32_DOWN_PRECISION, USE_FP16, USE_HF32, USE_FP32_ADD = range(5)
# What pointwise steps on results may read and write while these are in the caches.
_FINISHED = ("float32", "float16", "bfloat16")
# Of float32 these products multiply only what is rounded to float16.
_HALF_ONLY = ("Ascend910", "Ascend310P")
# These take matrices, addends and outputs of any floating dtypes.
_MIXING = ("Ascend910B", "Ascend910_93", "Ascend950")

_CUBE_MATH = Attribute(
    "cube_math_type",
    ALLOW_FP32_DOWN_PRECISION,
    "int",
    doc=(
        "How to multiply float32: 0, 1, 3 and 4 in float32, where NPUs may lose digits; 2 rounds "
        "to float16 first."
    ),
)


# --- Rules --------------------------------------------------------------------------------------


def _output_fits(*roles: str, promoted_alone: bool = False) -> Rule:
    """Rule for outputs: any where dtypes mix; elsewhere what the result can be cast to, or only its dtype."""
    anything = of_cann(dtype_among("out"))
    castable_one = castable(roles)

    def test(call: Call) -> str | None:
        if "out" not in call.tensors:
            return None
        if call.soc in _MIXING or not promoted_alone:
            return anything.test(call) or castable_one.test(call)
        dtype = promoted(call, roles)
        if call.dtype("out") == dtype:
            return None
        return f"{call.typed('out')}, must have the promoted dtype, {call.word(dtype)}"

    text = anything.text
    if promoted_alone:
        text += f", and has the promoted dtype except on {', '.join(_MIXING)}"
    return Rule(text, test, ("out", *roles))


def _matrix_like_vector() -> Rule:
    same = same_dtype("input", "vec")

    def test(call: Call) -> str | None:
        return same.test(call) if call.tensors["input"].size else None

    return Rule(f"{same.text}, unless it is empty", test, ("input", "vec"))


def _cube_math(first: str, second: str) -> Rule:
    """Rule for modes of products, by the dtype that the matrices promote to."""

    def test(call: Call) -> str | None:
        chosen, name = call.switches["cube_math_type"], call.names["cube_math_type"]
        if chosen not in range(USE_FP32_ADD + 1):
            return f"{name} is {chosen}, must be from {KEEP_DTYPE} to {USE_FP32_ADD}"
        single = promoted(call, (first, second)) == aclDataType.ACL_FLOAT
        if not single or call.soc not in _HALF_ONLY:
            return None
        if chosen in (ALLOW_FP32_DOWN_PRECISION, USE_FP16):
            return None
        return (
            f"{name} is {chosen}, but {call.soc} multiplies {call.word(aclDataType.ACL_FLOAT)} only "
            f"with {ALLOW_FP32_DOWN_PRECISION} or {USE_FP16}"
        )

    text = (
        f"`cube_math_type` is from {KEEP_DTYPE} to {USE_FP32_ADD}; on {' and '.join(_HALF_ONLY)} FLOAT "
        f"needs {ALLOW_FP32_DOWN_PRECISION} or {USE_FP16}"
    )
    return Rule(text, test, ("cube_math_type", first, second))


def _result_dtype(call: Call, roles: tuple[str, ...]) -> aclDataType:
    """Dtype that the inputs promote to: float32 for any mixture.

    Where dtypes mix, a float32 output gets the float32 sums of halves.
    """
    dtype = promoted(call, roles)
    assert dtype is not None
    single = aclDataType.ACL_FLOAT
    if call.soc in _MIXING and "out" in call.tensors and call.dtype("out") == single:
        return single
    return dtype


def _has_dims(role: str, least: int, most: int) -> Rule:
    counts = f"{least}" if least == most else f"{least} to {most}"

    def test(call: Call) -> str | None:
        rank = len(call.shape(role))
        if least <= rank <= most:
            return None
        return f"{call.names[role]} has {rank} dimensions, must have {counts}"

    return Rule(f"`{role}` has {counts} dimensions", test, (role,))


@rule("rows of `{first}` are as long as columns of `{second}`")
def _inner_sizes_agree(call: Call, first: str, second: str) -> str | None:
    a, b = _matrix_shape(call, first), _matrix_shape(call, second)
    if a[-1] == b[-2:][0]:
        return None
    return (
        f"{call.names[first]} of shape {a} has rows of {a[-1]} elements, {call.names[second]} "
        f"of shape {b} columns of {b[-2:][0]}"
    )


@rule("the batches of `{first}` and `{second}` broadcast")
def _batches_fit(call: Call, first: str, second: str) -> str | None:
    a, b = call.shape(first), call.shape(second)
    if broadcast_shapes(a[:-2], b[:-2]) is not None:
        return None
    return f"batches do not broadcast: {call.names[first]} {a}, {call.names[second]} {b}"


def _same_batch(first: str, second: str, *, either: bool) -> Rule:
    """`either`: whether the first may have a single matrix, too."""

    def test(call: Call) -> str | None:
        a, b = call.shape(first), call.shape(second)
        if a[0] == b[0] or b[0] == 1 or (either and a[0] == 1):
            return None
        return f"batches differ: {call.names[first]} {a}, {call.names[second]} {b}"

    which = "one" if either else f"`{second}`"
    return Rule(
        f"`{first}` and `{second}` have as many matrices, or {which} has one", test, (first, second)
    )


def _has_product_shape(
    first: str,
    second: str,
    summed: bool = False,
    *,
    any_empty: bool = False,
    any_shape: bool = False,
) -> Rule:
    """`any_empty`: where the product has no elements, any output without elements will do.
    `any_shape`: in C-shaped calls any output of as many elements does.
    """

    def test(call: Call) -> str | None:
        requested = _product_shape(call, first, second, summed)
        if "out" not in call.tensors or call.shape("out") == requested:
            return None
        if any_empty and 0 in requested and 0 in call.shape("out"):
            return None
        if any_shape and call.c_shaped and math.prod(requested) == call.tensors["out"].size:
            return None
        return f"{call.shaped('out')}, must have {requested}"

    unless = "; any empty `out` will do for an empty one" if any_empty else ""
    unless += "; in C-shaped calls only its number of elements counts" if any_shape else ""
    return Rule(f"`out` has the shape of the product{unless}", test, ("out", first, second))


@rule("`{role}` broadcasts to the product", "{role}", "{first}", "{second}")
def _reaches_product(
    call: Call, role: str, first: str, second: str, summed: bool = False
) -> str | None:
    requested = _product_shape(call, first, second, summed)
    if broadcast_shapes(call.shape(role), requested) == requested:
        return None
    return f"{call.shaped(role)}, which does not broadcast to that of the product, {requested}"


def _plain_format(*roles: str) -> Rule:
    def test(call: Call) -> str | None:
        for role in call.given(roles):
            if call.tensors[role].format == aclFormat.ACL_FORMAT_FRACTAL_NZ:
                return f"{call.names[role]} has the format FRACTAL_NZ, which only mat2 may have"
        return None

    return Rule(f"{' and '.join(f'`{r}`' for r in roles)} are not FRACTAL_NZ", test, roles)


@rule("matrices of a `{role}` in FRACTAL_NZ have no size of 1")
def _no_thin_blocks(call: Call, role: str) -> str | None:
    blocks = call.tensors[role].format == aclFormat.ACL_FORMAT_FRACTAL_NZ
    if not blocks or 1 not in call.shape(role)[-2:]:
        return None
    return (
        f"{call.names[role]} has the format FRACTAL_NZ and the shape {call.shape(role)}, of "
        "which the last two sizes must not be 1"
    )


# --- Shapes and nodes ---------------------------------------------------------------------------


def _is_transposed(call: Call, role: str) -> bool:
    return bool(call.switches.get(f"trans_{role}"))


def _matrix_shape(call: Call, role: str) -> Shape:
    """The shape that takes part: turned around where an option says so."""
    shape = call.shape(role)
    return shape[::-1] if _is_transposed(call, role) else shape


def _product_shape(call: Call, first: str, second: str, summed: bool = False) -> Shape:
    """PyTorch's rule: operands of one dimension get one, which the result loses again.

    `summed`: over the batches.
    """
    a, b = _matrix_shape(call, first), _matrix_shape(call, second)
    batch = broadcast_shapes(a[:-2], b[:-2])
    assert batch is not None
    shape = (*batch, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))
    return shape[len(batch) :] if summed else shape


def _infer(
    first: str, second: str, *added: str, summed: bool = False, any_shape: bool = False
) -> Callable[[Call], Mapping[str, tuple]]:
    def infer(call: Call) -> Mapping[str, tuple[aclDataType, Shape]]:
        dtype = _result_dtype(call, (*added, first, second))
        shape = _product_shape(call, first, second, summed)
        if any_shape and call.c_shaped and "out" in call.tensors:
            shape = call.shape("out")
        return {"out": (dtype, shape)}

    return infer


def _matrix(lowering: Lowering, role: str) -> int:
    value = lowering.value(role)
    turned = _is_transposed(lowering.call, role)
    return lowering.builder.transpose(value, (1, 0)) if turned else value


def _lower(
    first: str, second: str, *added: str, own: aclDataType | None = None
) -> Callable[[Lowering], Mapping[str, int]]:
    """Lowering of an operator to one node, which reads matrices where they are.

    `own` is the dtype that is computed in, where that is not what the tensors promote to.
    """

    def lower(lowering: Lowering) -> Mapping[str, int]:
        dtype, shape = lowering.results["out"]
        call = lowering.call
        within = promoted(call, (*added, first, second)) if own is None else own
        a, b = _matrix_shape(call, first), _matrix_shape(call, second)
        column = () if len(b) > 1 else (1,)
        a = a if len(a) > 1 else (1, *a)
        b = (*b, *column)
        batch = broadcast_shapes(a[:-2], b[:-2])
        assert batch is not None
        (m, k), n = a[-2:], b[-1]
        operands = [
            lowering.dense(lowering.reshaped(_matrix(lowering, first), a), within, (*batch, m, k)),
            lowering.dense(lowering.reshaped(_matrix(lowering, second), b), within, (*batch, k, n)),
        ]
        for role in added:
            addend = lowering.reshaped(role, (*call.shape(role), *column))
            operands.append(lowering.dense(addend, within, (*batch, m, n)))
        made = _multiply(
            lowering, operands, (*batch, m, n), dtype, (first, second), scaled=bool(added)
        )
        return {"out": lowering.reshaped(made, shape)}

    return lower


def _product_batch(call: Call, first: str, second: str) -> int:
    found = broadcast_shapes(call.shape(first)[:1], call.shape(second)[:1])
    assert found is not None
    return found[0]


def _lower_sum_of_products(lowering: Lowering) -> Mapping[str, int]:
    """Batches lie one after the other along the inner dimension of one product."""
    call, roles = lowering.call, ("batch1", "batch2", "input")
    dtype, own = lowering.results["out"][0], promoted(call, roles)
    (_, m, k), n = call.shape("batch1"), call.shape("batch2")[2]
    batch = _product_batch(call, "batch1", "batch2")
    first = lowering.builder.broadcast_to(lowering.value("batch1"), (batch, m, k))
    second = lowering.builder.broadcast_to(lowering.value("batch2"), (batch, k, n))
    rows = lowering.builder.transpose(first, (1, 0, 2))
    operands = [
        lowering.dense(lowering.reshaped(rows, (m, batch * k)), own),
        lowering.dense(lowering.reshaped(second, (batch * k, n)), own),
        lowering.dense("input", own, (m, n)),
    ]
    matrices = ("batch1", "batch2")
    return {"out": _multiply(lowering, operands, (m, n), dtype, matrices, scaled=True)}


def _multiply(
    lowering: Lowering,
    operands: list[int],
    shape: Shape,
    dtype: aclDataType,
    matrices: tuple[str, str],
    *,
    scaled: bool,
) -> int:
    asked = lowering.call.switches["cube_math_type"] == USE_FP16
    mixed = promoted(lowering.call, matrices) == aclDataType.ACL_FLOAT
    by_half = asked and mixed and dtype != aclDataType.ACL_DOUBLE
    form = "exact" if dtype == aclDataType.ACL_DOUBLE else "rounded"
    # Of bfloat16 that was cast to float32 all digits are there to be rounded.
    loads = tuple([name for name in FLOATING_NAMES if not by_half or name != "bfloat16"])
    # Kernels round sums once, to the dtype that they write.
    single = dtype == aclDataType.ACL_FLOAT
    return lowering.builder.compute(
        "matmul",
        operands,
        shape,
        graph_dtype(dtype),
        domain="opaque",
        reads_strided=True,
        writes_strided=True,
        finishes=() if dtype == aclDataType.ACL_DOUBLE else _FINISHED,
        converts=True,
        loads=loads,
        stores=FLOATING_NAMES if single else (),
        in_place=(2,) if len(operands) > 2 else (),
        round_inputs_to_half=by_half,
        params=tuple([lowering.number(role, form) for role in ("alpha", "beta")]) if scaled else (),
    )


# --- Operators ----------------------------------------------------------------------------------

_ROUNDED = (
    "Half-precision products are summed in float32, and the result is rounded once. A sum "
    "without elements is 0. Every sum takes its terms in an order that depends on how many they are "
    "alone: a row of a result has the same bits whatever the other rows, the batch, the layout of "
    "operands and the number of threads."
)

_ACCURACY = (
    "Results are within K·2⁻²⁴ of the product of magnitudes, K being how many products are summed "
    "up, and half a unit of the last place."
)

matmul = Operator(
    name="matmul",
    summary="Matrix product, of batches too.",
    expression="input @ other",
    notes=(
        "Operands have 1 to 6 dimensions, by PyTorch's rules: batches broadcast; a vector stands "
        f"for a row on the left and for a column on the right. {_ROUNDED}"
    ),
    inputs=("input", "other"),
    attributes=(_CUBE_MATH,),
    entries=(entry("aclnnMatmul", "self=input mat2=other out:out cubeMathType:int"),),
    rules=(
        *require("input, other: FLOATING"),
        _output_fits("input", "other"),
        _cube_math("input", "other"),
        _plain_format("input", "out"),
        _has_dims("input", 1, MOST_DIMS),
        _has_dims("other", 1, MOST_DIMS),
        _inner_sizes_agree("input", "other"),
        _batches_fit("input", "other"),
        _has_product_shape("input", "other", any_shape=True),
    ),
    infer=_infer("input", "other", any_shape=True),
    lower=_lower("input", "other"),
    example=(
        "matmul(np.float32([[1, 2], [3, 4]]), np.float32([1, 1]))",
        "array([3., 7.], dtype=float32)",
    ),
    seealso=("mm", "bmm", "addmm"),
    accuracy=_ACCURACY,
    gradient={"input, other": "gradients_of_product(grad, input, other)"},
    chunking="product",
)


def _of_rank(name: str, item: str, rank: int, summary: str, example: tuple[str, str]) -> Operator:
    """A product whose operands have so many dimensions."""
    return Operator(
        name=name,
        summary=summary,
        expression="input @ mat2",
        notes=_ROUNDED,
        inputs=("input", "mat2"),
        sample_specs={role: {"shape": (1,) * rank} for role in ("input", "mat2")},
        attributes=(_CUBE_MATH,),
        entries=(entry(item, "self=input mat2 out:out cubeMathType:int"),),
        rules=(
            *require("input, mat2: FLOATING"),
            _output_fits("input", "mat2", promoted_alone=rank == 2),
            _cube_math("input", "mat2"),
            _plain_format("input", "out"),
            *((_no_thin_blocks("mat2"),) if rank == 3 else ()),
            _has_dims("input", rank, rank),
            _has_dims("mat2", rank, rank),
            _inner_sizes_agree("input", "mat2"),
            *([_batches_fit("input", "mat2")] if rank == 3 else []),
            _has_product_shape("input", "mat2"),
        ),
        infer=_infer("input", "mat2"),
        lower=_lower("input", "mat2"),
        example=example,
        seealso=("matmul",),
        accuracy=_ACCURACY,
        gradient={"input": f"{name}(grad, mat2.mH)", "mat2": f"{name}(input.mH, grad)"},
        chunking="product",
    )


mm = _of_rank(
    "mm",
    "aclnnMm",
    2,
    "Product of two matrices.",
    ("mm(np.float32([[1, 2]]), np.float32([[3], [4]]))", "array([[11.]], dtype=float32)"),
)

bmm = _of_rank(
    "bmm",
    "aclnnBatchMatMul",
    3,
    "Products of the matrices of two batches, of which one may have a single matrix.",
    ("bmm(np.float32([[[1, 2]]]), np.float32([[[3], [4]]]))", "array([[[11.]]], dtype=float32)"),
)

_ALPHA = Attribute("alpha", 1.0, doc="Factor of the product.")
_BETA = Attribute("beta", 1.0, doc="Factor of `input`.")
_SCALED = f"If beta is 0, `input` is ignored, including its NaNs. {_ROUNDED}"


def _with_addend(
    name: str,
    item: str,
    matrices: tuple[str, str],
    ranks: tuple[int, int],
    summary: str,
    expression: str,
    example: tuple[str, str],
    *,
    numbers: str = "beta:scalar alpha:scalar",
    in_place: bool = True,
    summed: bool = False,
    gradient: Mapping[str, str] | None = None,
    chunking: str = "product",
) -> Operator:
    """A product of matrices, scaled and added to what is scaled, too."""
    first, second = matrices
    rest = f"{first} {second} {numbers}"
    pairs = [entry(f"aclnn{item}", f"self=input {rest} out:out cubeMathType:int")]
    if in_place:
        pairs.append(entry(f"aclnnInplace{item}", f"selfRef=input:inout {rest} cubeMathType:int"))
    batched = ranks[0] == 3
    most = _RESULT_DIMS[ranks] - summed
    return Operator(
        name=name,
        chunking=chunking,
        in_place=f"{name}_",
        summary=summary,
        expression=expression,
        notes=_SCALED,
        inputs=("input", first, second),
        sample_specs={"input": {"shape": (1,) * most}}
        | {role: {"shape": (1,) * rank} for role, rank in zip(matrices, ranks, strict=True)},
        attributes=(_BETA, _ALPHA, _CUBE_MATH),
        entries=tuple(pairs),
        rules=(
            *require("input: FLOATING"),
            dtype_among(first),
            dtype_among(second),
            _output_fits("input", first, second),
            *require("beta, alpha: numbers"),
            _cube_math(first, second),
            _plain_format("input", first, "out"),
            *[_has_dims(role, rank, rank) for role, rank in zip(matrices, ranks, strict=True)],
            *([_same_batch(first, second, either=summed)] if batched else []),
            _inner_sizes_agree(first, second),
            _has_dims("input", 1, most),
            _reaches_product("input", first, second, summed),
            _has_product_shape(first, second, summed, any_empty=name == "addmm"),
        ),
        infer=_infer(first, second, "input", summed=summed),
        lower=_lower_sum_of_products if summed else _lower(first, second, "input"),
        example=example,
        seealso=("matmul", "mm"),
        accuracy=_ACCURACY,
        gradient=gradient or {},
    )


# How many dimensions a product has, by those of the matrices.
_RESULT_DIMS = {(2, 2): 2, (3, 3): 3, (2, 1): 1}

addmm = _with_addend(
    "addmm",
    "Addmm",
    ("mat1", "mat2"),
    (2, 2),
    "Product of two matrices, added to a third.",
    "beta·input + alpha·(mat1 @ mat2)",
    (
        "addmm(np.float32([[1]]), np.float32([[1, 2]]), np.float32([[3], [4]]), beta=2)",
        "array([[13.]], dtype=float32)",
    ),
    gradient={
        "input": "grad * beta",
        "mat1": "mm(grad, mat2.mH) * alpha",
        "mat2": "mm(mat1.mH, grad) * alpha",
    },
)

baddbmm = _with_addend(
    "baddbmm",
    "Baddbmm",
    ("batch1", "batch2"),
    (3, 3),
    "Products of the matrices of two batches, added to those of a third.",
    "beta·input + alpha·(batch1 @ batch2)",
    (
        "baddbmm(np.float32([[[1]]]), np.float32([[[1, 2]]]), np.float32([[[3], [4]]]), beta=2)",
        "array([[[13.]]], dtype=float32)",
    ),
    gradient={
        "input": "grad * beta",
        "batch1": "bmm(grad, batch2.mH) * alpha",
        "batch2": "bmm(batch1.mH, grad) * alpha",
    },
)

addbmm = _with_addend(
    "addbmm",
    "Addbmm",
    ("batch1", "batch2"),
    (3, 3),
    "Sum of the products of the matrices of two batches, added to a matrix.",
    "beta·input + alpha·Σ (batch1[i] @ batch2[i])",
    (
        "addbmm(np.float32([[1]]), np.float32([[[1]], [[2]]]), np.float32([[[3]], [[4]]]), beta=2)",
        "array([[13.]], dtype=float32)",
    ),
    summed=True,
    gradient={
        "input": "grad * beta",
        "batch1": "matmul(grad, batch2.mH) * alpha",
        "batch2": "matmul(batch1.mH, grad) * alpha",
    },
    chunking="summed_batch",
)

_VECTORS = (
    *FLOATING_AND_DOUBLE,
    aclDataType.ACL_INT64,
    aclDataType.ACL_INT32,
    aclDataType.ACL_INT16,
    aclDataType.ACL_INT8,
    aclDataType.ACL_UINT8,
    aclDataType.ACL_BOOL,
)
_ADDED_VECTOR = ("input", "mat", "vec")


def _vector_dtype(call: Call) -> aclDataType | None:
    """Dtype that the tensors promote to, with the factors that are not 1.

    In functional forms factors count as NumPy's and PyTorch's numbers do: by their kind.
    """
    result = promoted(call, _ADDED_VECTOR)
    for role in ("alpha", "beta"):
        number = call.scalars[role]
        if result is None or number.one:
            continue
        known = not call.c_shaped and _kind(number.dtype) <= _kind(result)
        result = result if known else dtypes.promote(result, number.dtype)
    return result


def _kind(dtype: aclDataType) -> int:
    kinds = (dtypes.BOOL, dtypes.INTEGERS, dtypes.FLOATS, dtypes.COMPLEX)
    return next(index for index, kind in enumerate(kinds) if dtype in kind)


def _infer_vector(call: Call) -> Mapping[str, tuple[aclDataType, Shape]]:
    dtype = _vector_dtype(call)
    assert dtype is not None, "a rule sees to it that the dtypes promote"
    if dtype in FLOATING:
        dtype = (
            _result_dtype(call, _ADDED_VECTOR) if dtype == promoted(call, _ADDED_VECTOR) else dtype
        )
    return {"out": (dtype, _product_shape(call, "mat", "vec"))}


def _lower_vector(lowering: Lowering) -> Mapping[str, int]:
    """By the kernel of products where these are floating; else products, their sums, and both terms."""
    dtype, shape = lowering.results["out"]
    if dtype in FLOATING_AND_DOUBLE:
        own = _vector_dtype(lowering.call)
        return _lower("mat", "vec", "input", own=own)(lowering)
    wide, (rows, columns) = aclDataType.ACL_INT64, lowering.call.shape("mat")
    matrix = lowering.dense("mat", dtype)
    vector = lowering.dense(lowering.dense("vec", dtype), None, (rows, columns))
    products = lowering.point("mul", [matrix, vector], dtype, (rows, columns))
    if columns:
        names = {"loads": _WHOLE_NAMES, "stores": ()}
        (total,) = lowering.rows("sum", [products], [(wide, (rows, 1))], -1, **names)
        total = lowering.builder.cast(lowering.reshaped(total, shape), graph_dtype(dtype))
    else:
        total = lowering.filled(0, dtype, shape)
    scaled = lowering.point(
        "muls", [total], dtype, shape, params=lowering.params(("alpha",), dtype)
    )
    added = lowering.dense("input", dtype, shape)
    params = lowering.params(("beta",), dtype)
    return {"out": lowering.point("add", [scaled, added], dtype, shape, params=params)}


_WHOLE_NAMES = tuple([dtypes.name(dtype) for dtype in _VECTORS if dtype not in FLOATING_AND_DOUBLE])

_addmv = _with_addend(
    "addmv",
    "Addmv",
    ("mat", "vec"),
    (2, 1),
    "Product of a matrix and a vector, added to a vector.",
    "beta·input + alpha·(mat @ vec)",
    (
        "addmv(np.float32([1]), np.float32([[1, 2]]), np.float32([3, 4]), beta=2)",
        "array([13.], dtype=float32)",
    ),
    numbers="alpha:scalar beta:scalar",
    in_place=False,
    gradient={
        "input": "grad * beta",
        "mat": "grad[:, None] * conj(vec) * alpha",
        "vec": "addmv(aten.zeros_like(vec), mat.mH, grad, beta=0) * alpha",
    },
)

addmv = replace(
    _addmv,
    attributes=(
        replace(_BETA, facts=("dtype", "one")),
        replace(_ALPHA, facts=("dtype", "one")),
        _CUBE_MATH,
    ),
    notes=(
        f"{_SCALED} Other dtypes are computed in what all promote to, factors that are not 1 "
        "included; for bools products are 'and', sums 'or'."
    ),
    rules=(
        *[dtype_among(role, _VECTORS) for role in (*_ADDED_VECTOR, "out")],
        *[scalar_dtype_among(role, _VECTORS) for role in ("alpha", "beta")],
        result_castable(_vector_dtype),
        _cube_math("mat", "vec"),
        _plain_format("input", "mat", "out"),
        _has_dims("mat", 2, 2),
        _has_dims("vec", 1, 1),
        _inner_sizes_agree("mat", "vec"),
        _has_dims("input", 1, 1),
        _reaches_product("input", "mat", "vec"),
        _has_product_shape("mat", "vec"),
    ),
    infer=_infer_vector,
    lower=_lower_vector,
    chunking="product",
)
del _addmv

mv = Operator(
    name="mv",
    summary="Product of a matrix and a vector.",
    expression="input @ vec",
    notes=_ROUNDED,
    inputs=("input", "vec"),
    sample_specs=specs("input: [1,1]; vec: [1]"),
    attributes=(_CUBE_MATH,),
    entries=(entry("aclnnMv", "self=input vec out:out cubeMathType:int"),),
    rules=(
        *require("input, vec: FLOATING; out: dtype of vec"),
        _matrix_like_vector(),
        _cube_math("input", "vec"),
        _plain_format("input", "out"),
        _has_dims("input", 2, 2),
        _has_dims("vec", 1, 1),
        _inner_sizes_agree("input", "vec"),
        _has_product_shape("input", "vec"),
    ),
    infer=lambda call: {"out": (call.dtype("vec"), _product_shape(call, "input", "vec"))},
    lower=_lower("input", "vec"),
    example=(
        "mv(np.float32([[1, 2], [3, 4]]), np.float32([1, 1]))",
        "array([3., 7.], dtype=float32)",
    ),
    seealso=("matmul", "addmv"),
    accuracy=_ACCURACY,
    gradient={"input": "grad[:, None] * conj(vec)", "vec": "mv(input.mH, grad)"},
    chunking="product",
)


def _transposes(role: str) -> Attribute:
    doc = f"Whether to transpose `{role}`; any number but 0 means yes."
    return argument(f"trans_{role}", 0, "int", doc)


gemm = Operator(
    name="gemm",
    summary="Product of two matrices, which may be transposed, added to a third.",
    expression="alpha·(a @ b) + beta·c, a and b transposed where the options say so",
    notes=f"With a beta of 0 `c` does not count, its NaNs neither. {_ROUNDED}",
    inputs=("a", "b", "c"),
    sample_specs=specs("a, b, c: [1,1]"),
    attributes=(
        argument("alpha", 1.0, "float", "Factor of the product."),
        argument("beta", 1.0, "float", "Factor of `c`."),
        _transposes("a"),
        _transposes("b"),
        _CUBE_MATH,
    ),
    entries=(
        entry(
            "aclnnGemm",
            "A=a B=b C=c alpha:float beta:float transA=trans_a:int transB=trans_b:int out:out "
            "cubeMathType:int",
        ),
    ),
    rules=(
        *require("a, b, c: FLOATING"),
        _output_fits("a", "b", "c"),
        _cube_math("a", "b"),
        _plain_format("a", "c", "out"),
        _has_dims("a", 2, 2),
        _has_dims("b", 2, 2),
        _inner_sizes_agree("a", "b"),
        _has_dims("c", 1, 2),
        _reaches_product("c", "a", "b"),
        _has_product_shape("a", "b", any_empty=True),
    ),
    infer=_infer("a", "b", "c"),
    lower=_lower("a", "b", "c"),
    example=(
        "gemm(np.float32([[1, 2]]), np.float32([[3, 4]]), np.float32([[1]]), trans_b=1)",
        "array([[12.]], dtype=float32)",
    ),
    seealso=("addmm", "matmul"),
    accuracy=_ACCURACY,
    gradient={
        "a": "(mm(b.T if trans_b else b, grad.T) if trans_a else mm(grad, b if trans_b else b.T)) * alpha",
        "b": "(mm(grad.T, a.T if trans_a else a) if trans_b else mm(a if trans_a else a.T, grad)) * alpha",
        "c": "grad * beta",
    },
)
