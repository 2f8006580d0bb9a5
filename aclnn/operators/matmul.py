"""Matrix products: of matrices, vectors and batches of them, alone and added to something."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aclnn.acl.constants import aclDataType, aclFormat
from aclnn.operators.checks import (
    Call,
    Rule,
    broadcast_shapes,
    castable,
    convertible_scalars,
    dtype_among,
    promoted,
)
from aclnn.operators.declaration import Attribute, Operator, entry
from aclnn.operators.lowering import FLOATING_NAMES, Lowering, graph_dtype

Shape = tuple[int, ...]
MOST_DIMS = 6
# What cubeMathType numbers.
KEEP_DTYPE, ALLOW_FP32_DOWN_PRECISION, USE_FP16, USE_HF32, USE_FP32_ADD = range(5)
# Of float32 these products multiply only what is rounded to float16.
_HALF_ONLY = ("Ascend910", "Ascend310P")
# Here bfloat16 does not promote with other dtypes.
_STRICT = ("Ascend910B", "Ascend910_93")

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


def _promotes(*roles: str) -> Rule:
    """As elsewhere, but for bfloat16."""

    def test(call: Call) -> str | None:
        found = {call.dtype(role) for role in roles}
        if len(found) == 1 or aclDataType.ACL_BF16 not in found or call.soc not in _STRICT:
            return None
        pair = ", ".join(f"{call.names[r]} {call.word(call.dtype(r))}" for r in roles)
        return f"dtypes do not promote on {call.soc}: {pair}"

    names = " and ".join(f"`{role}`" for role in roles)
    return Rule(
        f"the dtypes of {names} promote: on {' and '.join(_STRICT)} BF16 only with itself",
        test,
        roles,
    )


def _cube_math(first: str, second: str, *, batched: bool = False, last: int = USE_FP32_ADD) -> Rule:
    """What each product takes, by the dtype that the matrices promote to."""

    def test(call: Call) -> str | None:
        chosen, name = call.switches["cube_math_type"], call.names["cube_math_type"]
        dtype = promoted(call, (first, second))
        assert dtype is not None
        if chosen not in range(last + 1):
            return f"{name} is {chosen}, must be from {KEEP_DTYPE} to {last}"
        single = dtype == aclDataType.ACL_FLOAT
        if chosen == USE_FP16 and dtype == aclDataType.ACL_BF16 and not batched:
            return f"{name} is {USE_FP16}, which {call.word(dtype)} is not multiplied with"
        if chosen == USE_HF32 and (not single or call.soc in _HALF_ONLY):
            return (
                f"{name} is {USE_HF32}, which is for {call.word(aclDataType.ACL_FLOAT)}, and not on "
                f"{' and '.join(_HALF_ONLY)}"
            )
        if chosen == KEEP_DTYPE and single and call.soc in _HALF_ONLY:
            return f"{name} is {KEEP_DTYPE}, but {call.soc} does not multiply {call.word(dtype)}"
        return None

    text = "`cube_math_type` is one that the product has for the dtype"
    return Rule(text, test, ("cube_math_type", first, second))


def _result_dtype_is_promoted(*roles: str) -> Rule:
    def test(call: Call) -> str | None:
        if "out" not in call.tensors or call.dtype("out") == _result_dtype(call, roles):
            return None
        return (
            f"{call.names['out']} has dtype {call.word(call.dtype('out'))}, must have the "
            f"promoted dtype, {call.word(_result_dtype(call, roles))}"
        )

    text = "`out` has the dtype that the matrices promote to; on Ascend950 it may be FLOAT"
    return Rule(text, test, ("out", *roles))


def _result_dtype(call: Call, roles: tuple[str, ...]) -> aclDataType:
    """What the inputs promote to; Ascend950 gives the float32 sums of halves where asked to."""
    dtype = promoted(call, roles)
    assert dtype is not None
    single = aclDataType.ACL_FLOAT
    if call.soc == "Ascend950" and "out" in call.tensors and call.dtype("out") == single:
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


def _inner_sizes_agree(first: str, second: str) -> Rule:
    def test(call: Call) -> str | None:
        a, b = _matrix_shape(call, first), _matrix_shape(call, second)
        if a[-1] == b[-2:][0]:
            return None
        return (
            f"{call.names[first]} of shape {a} has rows of {a[-1]} elements, {call.names[second]} "
            f"of shape {b} columns of {b[-2:][0]}"
        )

    text = f"rows of `{first}` are as long as columns of `{second}`"
    return Rule(text, test, (first, second))


def _batches_fit(first: str, second: str) -> Rule:
    def test(call: Call) -> str | None:
        a, b = call.shape(first), call.shape(second)
        if broadcast_shapes(a[:-2], b[:-2]) is not None:
            return None
        return f"batches do not broadcast: {call.names[first]} {a}, {call.names[second]} {b}"

    return Rule(f"the batches of `{first}` and `{second}` broadcast", test, (first, second))


def _same_batch(first: str, second: str) -> Rule:
    def test(call: Call) -> str | None:
        a, b = call.shape(first), call.shape(second)
        if a[0] == b[0]:
            return None
        return f"batches differ: {call.names[first]} {a}, {call.names[second]} {b}"

    return Rule(f"`{first}` and `{second}` have as many matrices", test, (first, second))


def _has_product_shape(
    first: str, second: str, summed: bool = False, *, any_empty: bool = False
) -> Rule:
    """`any_empty`: where the product has no elements, any output without elements will do."""

    def test(call: Call) -> str | None:
        wanted = _product_shape(call, first, second, summed)
        if "out" not in call.tensors or call.shape("out") == wanted:
            return None
        if any_empty and 0 in wanted and 0 in call.shape("out"):
            return None
        return f"{call.names['out']} has shape {call.shape('out')}, must have {wanted}"

    unless = "; any empty `out` will do for an empty one" if any_empty else ""
    return Rule(f"`out` has the shape of the product{unless}", test, ("out", first, second))


def _reaches_product(role: str, first: str, second: str, summed: bool = False) -> Rule:
    def test(call: Call) -> str | None:
        wanted = _product_shape(call, first, second, summed)
        if broadcast_shapes(call.shape(role), wanted) == wanted:
            return None
        return (
            f"{call.names[role]} has shape {call.shape(role)}, which does not broadcast to that of "
            f"the product, {wanted}"
        )

    return Rule(f"`{role}` broadcasts to the product", test, (role, first, second))


def _plain_format(*roles: str) -> Rule:
    def test(call: Call) -> str | None:
        for role in call.given(roles):
            if call.tensors[role].format == aclFormat.ACL_FORMAT_FRACTAL_NZ:
                return f"{call.names[role]} has the format FRACTAL_NZ, which only mat2 may have"
        return None

    return Rule(f"{' and '.join(f'`{r}`' for r in roles)} are not FRACTAL_NZ", test, roles)


def _no_thin_blocks(role: str) -> Rule:
    def test(call: Call) -> str | None:
        blocks = call.tensors[role].format == aclFormat.ACL_FORMAT_FRACTAL_NZ
        if not blocks or 1 not in call.shape(role)[-2:]:
            return None
        return (
            f"{call.names[role]} has the format FRACTAL_NZ and the shape {call.shape(role)}, of "
            "which the last two sizes must not be 1"
        )

    return Rule(f"matrices of a `{role}` in FRACTAL_NZ have no size of 1", test, (role,))


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
    first: str, second: str, *added: str, summed: bool = False
) -> Callable[[Call], Mapping[str, tuple]]:
    def infer(call: Call) -> Mapping[str, tuple[aclDataType, Shape]]:
        dtype = _result_dtype(call, (*added, first, second))
        return {"out": (dtype, _product_shape(call, first, second, summed))}

    return infer


def _matrix(lowering: Lowering, role: str) -> int:
    value = lowering.value(role)
    turned = _is_transposed(lowering.call, role)
    return lowering.builder.transpose(value, (1, 0)) if turned else value


def _lower(first: str, second: str, *added: str) -> Callable[[Lowering], Mapping[str, int]]:
    """What lowers an operator to one node, which reads matrices where they lie."""

    def lower(lowering: Lowering) -> Mapping[str, int]:
        dtype, shape = lowering.results["out"]
        call = lowering.call
        own = promoted(call, (*added, first, second))
        a, b = _matrix_shape(call, first), _matrix_shape(call, second)
        column = () if len(b) > 1 else (1,)
        a = a if len(a) > 1 else (1, *a)
        b = (*b, *column)
        batch = broadcast_shapes(a[:-2], b[:-2])
        assert batch is not None
        (m, k), n = a[-2:], b[-1]
        operands = [
            lowering.dense(lowering.reshaped(_matrix(lowering, first), a), own, (*batch, m, k)),
            lowering.dense(lowering.reshaped(_matrix(lowering, second), b), own, (*batch, k, n)),
        ]
        for role in added:
            addend = lowering.reshaped(role, (*call.shape(role), *column))
            operands.append(lowering.dense(addend, own, (*batch, m, n)))
        made = _multiply(lowering, operands, (*batch, m, n), dtype, scaled=bool(added))
        return {"out": lowering.reshaped(made, shape)}

    return lower


def _lower_sum_of_products(lowering: Lowering) -> Mapping[str, int]:
    """Batches lie one after the other along the inner dimension of one product."""
    call, roles = lowering.call, ("batch1", "batch2", "input")
    dtype, own = lowering.results["out"][0], promoted(call, roles)
    (batch, m, k), n = call.shape("batch1"), call.shape("batch2")[2]
    rows = lowering.builder.transpose(lowering.value("batch1"), (1, 0, 2))
    operands = [
        lowering.dense(lowering.reshaped(rows, (m, batch * k)), own),
        lowering.dense(lowering.reshaped("batch2", (batch * k, n)), own),
        lowering.dense("input", own, (m, n)),
    ]
    return {"out": _multiply(lowering, operands, (m, n), dtype, scaled=True)}


def _multiply(
    lowering: Lowering, operands: list[int], shape: Shape, dtype: aclDataType, *, scaled: bool
) -> int:
    by_half = lowering.call.switches["cube_math_type"] == USE_FP16
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
        converts=True,
        loads=loads,
        stores=FLOATING_NAMES if single else (),
        in_place=(2,),
        round_inputs_to_half=by_half,
        params=tuple([lowering.number(role) for role in ("alpha", "beta")]) if scaled else (),
    )


# --- Operators ----------------------------------------------------------------------------------

_ROUNDED = (
    "Half-precision products are summed in float32, and the result is rounded once. A sum "
    "without elements is 0. Products need SciPy, whose BLAS they call; without it a call "
    "returns 361001."
)

_ACCURACY = (
    "Results lie within K·2⁻²⁴ of the product of magnitudes, K being how many products are summed "
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
        dtype_among("input"),
        dtype_among("other"),
        _promotes("input", "other"),
        castable(("input", "other")),
        _cube_math("input", "other"),
        _plain_format("input", "out"),
        _has_dims("input", 1, MOST_DIMS),
        _has_dims("other", 1, MOST_DIMS),
        _inner_sizes_agree("input", "other"),
        _batches_fit("input", "other"),
        _has_product_shape("input", "other"),
    ),
    infer=_infer("input", "other"),
    lower=_lower("input", "other"),
    example=(
        "matmul(np.float32([[1, 2], [3, 4]]), np.float32([1, 1]))",
        "array([3., 7.], dtype=float32)",
    ),
    seealso=("mm", "bmm", "addmm"),
    accuracy=_ACCURACY,
    gradient={"input, other": "gradients_of_product(grad, input, other)"},
)


def _of_rank(name: str, item: str, rank: int, summary: str, example: tuple[str, str]) -> Operator:
    """A product whose operands have so many dimensions."""
    return Operator(
        name=name,
        summary=summary,
        expression="input @ mat2",
        notes=_ROUNDED,
        inputs=("input", "mat2"),
        unlike={role: {"shape": (1,) * rank} for role in ("input", "mat2")},
        attributes=(_CUBE_MATH,),
        entries=(entry(item, "self=input mat2 out:out cubeMathType:int"),),
        rules=(
            dtype_among("input"),
            dtype_among("mat2"),
            _promotes("input", "mat2"),
            _result_dtype_is_promoted("input", "mat2"),
            _cube_math(
                "input", "mat2", batched=rank == 3, last=USE_HF32 if rank == 3 else USE_FP32_ADD
            ),
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
        in_place=f"{name}_",
        summary=summary,
        expression=expression,
        notes=_SCALED,
        inputs=("input", first, second),
        unlike={"input": {"shape": (1,) * most}}
        | {role: {"shape": (1,) * rank} for role, rank in zip(matrices, ranks, strict=True)},
        attributes=(_BETA, _ALPHA, _CUBE_MATH),
        entries=tuple(pairs),
        rules=(
            dtype_among("input"),
            dtype_among(first),
            dtype_among(second),
            _promotes("input", first, second),
            castable(("input", first, second)),
            convertible_scalars("beta", "alpha"),
            _cube_math(first, second, batched=batched),
            _plain_format("input", first, "out"),
            *[_has_dims(role, rank, rank) for role, rank in zip(matrices, ranks, strict=True)],
            *([_same_batch(first, second)] if batched else []),
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
)

addmv = _with_addend(
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
        "vec": "mv(mat.mH, grad) * alpha",
    },
)

mv = Operator(
    name="mv",
    summary="Product of a matrix and a vector.",
    expression="input @ vec",
    notes=_ROUNDED,
    inputs=("input", "vec"),
    unlike={"input": {"shape": (1, 1)}, "vec": {"shape": (1,)}},
    attributes=(_CUBE_MATH,),
    entries=(entry("aclnnMv", "self=input vec out:out cubeMathType:int"),),
    rules=(
        dtype_among("input"),
        dtype_among("vec"),
        _promotes("input", "vec"),
        castable(("input", "vec")),
        _cube_math("input", "vec"),
        _plain_format("input", "out"),
        _has_dims("input", 2, 2),
        _has_dims("vec", 1, 1),
        _inner_sizes_agree("input", "vec"),
        _has_product_shape("input", "vec"),
    ),
    infer=_infer("input", "vec"),
    lower=_lower("input", "vec"),
    example=(
        "mv(np.float32([[1, 2], [3, 4]]), np.float32([1, 1]))",
        "array([3., 7.], dtype=float32)",
    ),
    seealso=("matmul", "addmv"),
    accuracy=_ACCURACY,
    gradient={"input": "grad[:, None] * conj(vec)", "vec": "mv(input.mH, grad)"},
)


def _transposes(role: str) -> Attribute:
    doc = f"Whether to transpose `{role}`; any number but 0 means yes."
    return Attribute(f"trans_{role}", 0, "int", keyword_only=False, doc=doc)


gemm = Operator(
    name="gemm",
    summary="Product of two matrices, which may be transposed, added to a third.",
    expression="alpha·(a @ b) + beta·c, a and b transposed where the options say so",
    notes=f"With a beta of 0 `c` does not count, its NaNs neither. {_ROUNDED}",
    inputs=("a", "b", "c"),
    unlike={role: {"shape": (1, 1)} for role in ("a", "b", "c")},
    attributes=(
        Attribute("alpha", 1.0, "float", keyword_only=False, doc="Factor of the product."),
        Attribute("beta", 1.0, "float", keyword_only=False, doc="Factor of `c`."),
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
        dtype_among("a"),
        dtype_among("b"),
        dtype_among("c"),
        _promotes("a", "b", "c"),
        castable(("a", "b", "c")),
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
