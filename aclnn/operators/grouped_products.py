"""Products of lists of matrices, or of groups of rows or of columns, with a weight for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    FLOATING,
    NOTHING_TO_DO,
    Call,
    Rule,
    TensorSpec,
    list_dtype_among,
    option_dtype_among,
    rule,
)
from aclnn.operators.declaration import Attribute, Operator, entry
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.quantization import (
    BITS,
    BYTE,
    HALVES,
    LONG,
    NIBBLES,
    PACKED,
    PER_PACK,
    SINGLE,
)
from aclnn.operators.quantized_products import nibble_axis, nibbles_of
from aclnn.operators.sizes import number, option_within
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]
_HALF, _BRAIN = HALVES
WITHOUT, ALONG_ROWS, ALONG_K = -1, 0, 2
# Of the sums of quantized products; 3, the exact gelu, is refused.
_ACTIVATIONS = (0, 1, 2, 4, 5)
_ANTIQUANT = ("antiquant_scale", "antiquant_offset")
_LISTS = ("x", "weight", "bias", "scale", *_ANTIQUANT, "per_token_scale")


def _tensors(call: Call, role: str) -> tuple[TensorSpec, ...]:
    """The tensors of a list; one alone of shape (0,) counts as none where there may be none."""
    found = call.lists.get(role, ())
    is_void = role not in ("x", "weight") and [one.shape for one in found] == [(0,)]
    return () if is_void else found


def _dtype(call: Call, role: str) -> aclDataType:
    return call.lists[role][0].dtype


def _is_quantized(call: Call) -> bool:
    return _dtype(call, "x") == BYTE


def _is_weight_only(call: Call) -> bool:
    return not _is_quantized(call) and _dtype(call, "weight") in (BYTE, *NIBBLES)


def _along(call: Call) -> int:
    return number(call, "group_type")


def _weights(call: Call) -> list[Shape]:
    """The shape of each weight: eight integers of four bits lie in an element along the last axis."""
    packed = PER_PACK if _dtype(call, "weight") == PACKED else 1
    return [(*one.shape[:-1], one.shape[-1] * packed) for one in call.lists["weight"]]


def _columns(call: Call) -> int:
    return _weights(call)[0][-1]


def _groups(call: Call) -> int:
    """Number of weights, each of which is a group's."""
    shapes = _weights(call)
    return shapes[0][0] if len(shapes) == 1 and len(shapes[0]) == 3 else len(shapes)


def _result_shapes(call: Call) -> list[Shape]:
    xs, weights = [one.shape for one in call.lists["x"]], _weights(call)
    if _along(call) == WITHOUT:
        return [(*x[:-1], weight[-1]) for x, weight in zip(xs, weights, strict=True)]
    if _along(call) == ALONG_ROWS:
        return [(sum([x[0] for x in xs]), weights[0][-1])]
    if len(weights) == 1:
        return [(call.shape("group_list")[0], xs[0][0], weights[0][-1])]
    return [(xs[0][0], weight[-1]) for weight in weights]


def _count_results(shapes: Mapping[str, Any], options: Mapping[str, Any]) -> int:
    """Number of results of a call, before its rules."""
    role = {WITHOUT: "x", ALONG_K: "weight"}.get(options["group_type"])
    return max(1, len(shapes[role])) if role else 1


def _outs(call: Call) -> list[str]:
    """The results that are given, in order."""
    return [role for role in call.tensors if role.startswith("out_")]


def _out_dtype(call: Call) -> aclDataType:
    for role in _outs(call):
        return call.dtype(role)
    chosen = call.switches["output_dtype"]
    if isinstance(chosen, aclDataType):
        return chosen
    return _HALF if _is_quantized(call) else _dtype(call, "x")


# --- Rules ----------------------------------------------------------------------------------------


@rule("`x` and `weight` have a tensor")
def _not_empty(call: Call) -> str | None:
    for role in ("x", "weight"):
        if not call.lists.get(role):
            return f"{call.names[role]} is empty, must have a tensor"
    return None


@rule("`group_type` is -1 with `split_item` 0 or 1, 0 with 2 or 3, or 2")
def _group_type(call: Call) -> str | None:
    along, several = _along(call), number(call, "split_item") < 2
    name = call.names["split_item"]
    if along not in (WITHOUT, ALONG_ROWS, ALONG_K):
        return f"{call.names['group_type']} is {along}, must be -1, 0 or 2"
    if along == WITHOUT and not several:
        return f"{name} is {number(call, 'split_item')}, must be 0 or 1 with {call.names['group_type']} -1"
    if along == ALONG_ROWS and several:
        return f"{name} is {number(call, 'split_item')}, must be 2 or 3 with {call.names['group_type']} 0"
    return None


@rule(
    "`group_list` has two dimensions with `group_list_type` 2, which is of `group_type` 0, else one",
    "group_list",
    "group_list_type",
)
def _listed_by_pairs(call: Call) -> str | None:
    kind = number(call, "group_list_type")
    if "group_list" in call.tensors:
        rank = len(call.shape("group_list"))
        if rank != (2 if kind == 2 else 1):
            return f"{call.names['group_list']} has {rank} dimensions, must have {2 if kind == 2 else 1}"
    if kind == 2 and _along(call) != ALONG_ROWS:
        return f"{call.names['group_list_type']} is 2, must be 0 or 1 with {call.names['group_type']} {_along(call)}"
    return None


@rule("`x` have 2 to 6 dimensions, `weight` at least 2")
def _ranks(call: Call) -> str | None:
    for role, most in (("x", 6), ("weight", 8)):
        for index, one in enumerate(call.lists[role]):
            if not 2 <= len(one.shape) <= most:
                return f"{call.names[role]}[{index}] has {len(one.shape)} dimensions, must have 2 to {most}"
    return None


@rule("`{role}` have one dtype")
def _one_dtype(call: Call, role: str) -> str | None:
    for index, one in enumerate(_tensors(call, role)):
        if one.dtype != _dtype(call, role):
            return (
                f"{call.names[role]}[{index}] has dtype {call.word(one.dtype)}, must have that of "
                f"{call.names[role]}[0], {call.word(_dtype(call, role))}"
            )
    return None


@rule("`{role}` are {words}", "{role}")
def _dtype_if(
    call: Call, role: str, allowed: Callable[[Call], tuple[aclDataType, ...]], words: str
) -> str | None:
    """Lists whose dtype depends on other operands; `words` says how."""
    for index, one in enumerate(_tensors(call, role)):
        found = allowed(call)
        if one.dtype not in found:
            return f"{call.names[role]}[{index}] has dtype {call.word(one.dtype)}, must be {call.words(found)}"
    return None


@rule("`out` have the dtype of `x`; of INT8 FLOAT16, BF16, INT8 or INT32", "x")
def _out_dtypes_fit(call: Call) -> str | None:
    for role in _outs(call):
        if call.dtype(role) not in _out_dtypes(call) or call.dtype(role) != _out_dtype(call):
            return f"{call.typed(role)}, must be {call.words(_out_dtypes(call))}, all alike"
    return None


@rule("`act_type` is 0, 1, 2, 4 or 5")
def _activation_number(call: Call) -> str | None:
    chosen = number(call, "act_type")
    if chosen in _ACTIVATIONS:
        return None
    return f"{call.names['act_type']} is {chosen}, must be 0, 1, 2, 4 or 5"


@rule("`act_type` is 0, but of INT8 with results of half precision", "act_type", "x")
def _activation(call: Call) -> str | None:
    chosen, name = number(call, "act_type"), call.names["act_type"]
    if chosen and (not _is_quantized(call) or _out_dtype(call) not in HALVES):
        return f"{name} is {chosen}, must be 0 but for int8 with results of half precision"
    return None


def _output_dtype() -> Rule:
    among = option_dtype_among("output_dtype", (*FLOATING, BYTE, PACKED))

    def test(call: Call) -> str | None:
        chosen = call.switches["output_dtype"]
        if chosen is None:
            return None
        if message := among.test(call):
            return message
        if chosen == _out_dtype(call) and chosen in _out_dtypes(call):
            return None
        return f"{call.names['output_dtype']} is {call.word(chosen)}, must be {call.words(_out_dtypes(call))}"  # type: ignore[arg-type]

    return Rule(f"{among.text}, and that of `out`", test, ("output_dtype",))


def _weight_dtypes(call: Call) -> tuple[aclDataType, ...]:
    return (BYTE,) if _is_quantized(call) else (_dtype(call, "x"), BYTE, *NIBBLES)


def _bias_dtypes(call: Call) -> tuple[aclDataType, ...]:
    if _is_quantized(call):
        return (PACKED, _BRAIN) if _out_dtype(call) == _BRAIN else (PACKED,)
    return (SINGLE, _BRAIN) if _dtype(call, "x") == _BRAIN else (_dtype(call, "x"),)


def _out_dtypes(call: Call) -> tuple[aclDataType, ...]:
    return (*HALVES, BYTE, PACKED) if _is_quantized(call) else (_dtype(call, "x"),)


def _scale_dtypes(call: Call) -> tuple[aclDataType, ...]:
    return {_BRAIN: (_BRAIN,), _HALF: (SINGLE,), BYTE: (BITS, LONG)}.get(_out_dtype(call), ())


@rule(
    "scales are given as INT8 needs them, which is of `group_type` 0 and single tensors",
    "scale",
    "per_token_scale",
    "x",
    "group_type",
)
def _quantized_operands(call: Call) -> str | None:
    arguments = [role for role in ("scale", "per_token_scale") if _tensors(call, role)]
    if not _is_quantized(call):
        return (
            f"{call.names[arguments[0]]} is given, must be null for {call.word(_dtype(call, 'x'))}"
            if arguments
            else None
        )
    out = _out_dtype(call)
    if out == PACKED and arguments:
        return f"{call.names[arguments[0]]} is given, must be null for {call.word(out)}"
    if out != PACKED and "scale" not in arguments:
        return f"{call.names['scale']} is null, must be given for {call.word(out)}"
    if out == BYTE and "per_token_scale" in arguments:
        return f"{call.names['per_token_scale']} is given, must be null for {call.word(out)}"
    lists = [role for role in _LISTS if len(_tensors(call, role)) > 1]
    if lists:
        return f"{call.names[lists[0]]} has several tensors, must have 1 for {call.word(BYTE)}"
    return (
        f"{call.names['group_type']} is {_along(call)}, must be 0 for {call.word(BYTE)}"
        if _along(call) != ALONG_ROWS
        else None
    )


@rule(
    "`antiquant_scale` and `antiquant_offset` are given for quantized weights of a floating `x`", ""
)
def _antiquant_operands(call: Call) -> str | None:
    for role in _ANTIQUANT:
        if bool(_tensors(call, role)) != _is_weight_only(call):
            must = "be given" if _is_weight_only(call) else "be null"
            return f"{call.names[role]} must {must} for {call.names['weight']} of this dtype"
    if _is_weight_only(call) and _along(call) == ALONG_K:
        return f"{call.names['group_type']} is 2, must be -1 or 0 for {call.word(BYTE)} weights"
    return None


@rule("`bias` is null with `group_type` 2")
def _no_bias_along_k(call: Call) -> str | None:
    if not _tensors(call, "bias") or _along(call) != ALONG_K:
        return None
    return f"{call.names['bias']} is given, must be null with {call.names['group_type']} 2"


@rule("there are as many `x` as `weight`, or one with `group_type` 0 or 2", "x", "weight")
def _counts(call: Call) -> str | None:
    xs, weights = len(call.lists["x"]), len(call.lists["weight"])
    along, names = _along(call), call.names
    if along == WITHOUT or xs > 1:
        if along == ALONG_K:
            return f"{names['x']} has {xs} tensors, must have 1 with {names['group_type']} 2"
        if xs != weights:
            return f"{names['x']} has {xs} tensors, {names['weight']} {weights}"
    if along == ALONG_K and (weights > 1) != (number(call, "split_item") < 2):
        return (
            f"{names['split_item']} is {number(call, 'split_item')}, must be "
            f"{'0 or 1' if weights > 1 else '2 or 3'} with {weights} tensors of {names['weight']}"
        )
    return None


@rule(
    "`group_list` has a number, or a pair, for each weight; it is null where all sizes are known",
    "group_list",
    "weight",
)
def _has_groups(call: Call) -> str | None:
    value, name = "group_list" in call.tensors, call.names["group_list"]
    along, several = _along(call), len(call.lists["weight"]) > 1
    if along == WITHOUT or (along == ALONG_K and several):
        return f"{name} is given, must be null for these lists" if value else None
    if not value:
        one = len(call.lists["x"]) == 1
        return (
            f"{name} is null, must be given with one tensor of {call.names['x']}" if one else None
        )
    shape = call.shape("group_list")
    if 0 in shape or (len(shape) == 2 and shape[1] != 2):
        return f"{name} has shape {shape}, must have {'(groups, 2)' if len(shape) == 2 else '(groups,)'}"
    if along == ALONG_ROWS and shape[0] != _groups(call):
        return f"{name} has {shape[0]} groups, {call.names['weight']} {_groups(call)}"
    return None


def _pairs(call: Call) -> Iterator[tuple[int, int, int]]:
    """The places of x and weight that are multiplied, and K."""
    xs, weights = call.lists["x"], call.lists["weight"]
    for index in range(max(len(xs), len(weights))):
        x, weight = min(index, len(xs) - 1), min(index, len(weights) - 1)
        yield x, weight, xs[x].shape[-1]


@rule("`weight` are (K, N), or one (groups, K, N) with `group_type` 0 and one `x`", "weight", "x")
def _weights_fit(call: Call) -> str | None:
    along, shapes, name = _along(call), _weights(call), call.names["weight"]
    rank = 3 if along == ALONG_ROWS and len(shapes) == 1 and len(call.lists["x"]) == 1 else 2
    left = call.lists["x"][0].shape[-1] if along == ALONG_K and len(shapes) > 1 else None
    for x, index, k in _pairs(call):
        shape, rows = shapes[index], call.lists["x"][x].shape
        if along != WITHOUT and len(rows) != 2:
            return f"{call.names['x']}[{x}] has {len(rows)} dimensions, must have 2"
        if len(shape) != rank or (left is None and shape[-2] != k):
            return f"{name}[{index}] has shape {shape}, must have {rank} dimensions" + (
                "" if left is not None else f", and {k} rows"
            )
        if along != WITHOUT and shape[-1] != shapes[0][-1]:
            return f"{name}[{index}] has {shape[-1]} columns, {name}[0] has {shapes[0][-1]}"
        left = None if left is None else left - shape[0]
    return f"{name} do not have as many rows as {call.names['x']}[0] columns" if left else None


@rule("`{role}` have an element for each column of `weight`")
def _for_columns(call: Call, role: str) -> str | None:
    """There is a tensor for each weight, with an element for each column."""
    arguments, weights = _tensors(call, role), _weights(call)
    if not arguments:
        return None
    name = call.names[role]
    if len(arguments) != len(weights):
        return f"{name} has {len(arguments)} tensors, {call.names['weight']} {len(weights)}"
    for index, (one, weight) in enumerate(zip(arguments, weights, strict=True)):
        requested = (*weight[:-2], weight[-1])
        if one.shape == requested or _is_by_groups(call, role, one.shape, weight):
            continue
        return f"{name}[{index}] has shape {one.shape}, must have {requested}"
    return None


def _is_by_groups(call: Call, role: str, shape: Shape, weight: Shape) -> bool:
    """Whether rows of a weight of four bits share scales in groups."""
    if role not in _ANTIQUANT or _dtype(call, "weight") not in NIBBLES or len(shape) != len(weight):
        return False
    return (*shape[:-2], shape[-1]) == (*weight[:-2], weight[-1]) and (
        shape[-2] > 0 and weight[-2] % shape[-2] == 0
    )


@rule("`per_token_scale` has an element for each row", "per_token_scale", "x")
def _for_rows(call: Call) -> str | None:
    for one in _tensors(call, "per_token_scale"):
        requested = call.lists["x"][0].shape[:1]
        if one.shape != requested:
            return (
                f"{call.names['per_token_scale']}[0] has shape {one.shape}, must have {requested}"
            )
    return None


@rule("`out` have the shapes of the products", "")
def _out_shapes(call: Call) -> str | None:
    arguments, shapes = _outs(call), _result_shapes(call)
    if arguments and len(arguments) != len(shapes):
        return f"there are {len(arguments)} tensors for results, but {len(shapes)} products"
    for role, shape in zip(arguments, shapes, strict=False):
        if call.shape(role) != shape:
            return f"{call.shaped(role)}, but must have {shape}"
    return None


@rule("in C-shaped calls, if every `x` is empty there is nothing to do")
def _without_rows(call: Call) -> str | None:
    empty = all(one.size == 0 for one in call.lists["x"])
    return NOTHING_TO_DO if empty and call.c_shaped and not call.makes_absent else None


# --- Lowering -------------------------------------------------------------------------------------


def _nibbles(call: Call) -> list[str | None]:
    """The axis of each weight along which elements in memory hold several integers."""
    return [
        nibbles_of(nibble_axis(one, len(one.shape) - 1), len(one.shape))
        for one in call.lists["weight"]
    ]


def _unpacked(lowering: Lowering, kinds: list[str | None]) -> list[int]:
    """Weights of four bits in bytes of their own."""
    made, builder = [], lowering.builder
    values = zip(lowering.values("weight"), kinds, _weights(lowering.call), strict=True)
    for value, kind, shape in values:
        axes = tuple(range(len(shape)))
        turned = axes if kind == "n" else (*axes[:-2], axes[-1], axes[-2])
        lines = builder.transpose(value, turned)
        *lead, size = [shape[axis] for axis in turned]
        flat = lowering.reshaped(lines, (math.prod(lead), builder.shape(lines)[-1]))
        unpacked = lowering.opaque("unpack4", [flat], BYTE, (math.prod(lead), size))
        made.append(builder.transpose(lowering.reshaped(unpacked, (*lead, size)), turned))
    return made


def _joined(lowering: Lowering, values: list[int], dtype: aclDataType) -> int:
    """Matrices one below the other, in new memory, unless there is one alone."""
    builder = lowering.builder
    if len(values) == 1:
        return values[0]
    shapes = [builder.shape(value) for value in values]
    n = shapes[0][-1]
    whole = builder.buffer("joined", (sum([m for m, _ in shapes]), n), graph_dtype(dtype))
    start = 0
    for value, shape in zip(values, shapes, strict=True):
        if shape[0]:
            part = builder.view(whole, shape, (n, 1), start * n)
            builder.view_copy(builder.contiguous(value), part)
        start += shape[0]
    return whole


def _factors(lowering: Lowering, index: int | None) -> tuple[list[str], list[int]]:
    """Operands besides matrices: of the weight in a place, or of all of them; and their names."""
    call, present, operands = lowering.call, [], []
    n = _weights(call)[index or 0][-1]
    weights = _groups(call) if index is None else 1
    for role, name in (
        ("scale", "scale"),
        ("per_token_scale", "per_token"),
        ("bias", "bias"),
        ("antiquant_scale", "antiquant_scale"),
        ("antiquant_offset", "antiquant_offset"),
    ):
        arguments = _tensors(call, role)
        if not arguments:
            continue
        values = list(lowering.values(role))
        if index is not None:
            values = values[index : index + 1]
        if arguments[0].dtype not in (BITS, LONG, PACKED):
            values = [lowering.dense(value, SINGLE) for value in values]
        present.append(name)
        if name == "per_token":
            operands.append(values[0])
            continue
        dtype = arguments[0].dtype if arguments[0].dtype in (BITS, LONG, PACKED) else SINGLE
        flat = [
            lowering.reshaped(one, (math.prod(lowering.builder.shape(one)) // n, n))
            for one in values
        ]
        whole = _joined(lowering, flat, dtype)
        rows = lowering.builder.shape(whole)[0]
        shape = (weights, rows // weights, n) if role in _ANTIQUANT else (weights, n)
        operands.append(lowering.reshaped(whole, shape))
    return present, operands


def _lower_groups(lowering: Lowering) -> int:
    """One product of groups that are known when it runs."""
    call = lowering.call
    dtype, shape = lowering.results["out_0"]
    present, factors = _factors(lowering, None)
    x = _joined(lowering, list(lowering.values("x")), _dtype(call, "x"))
    kinds = _nibbles(call)
    weights, nibbles = list(lowering.values("weight")), kinds[0]
    if len(set(kinds)) > 1:  # one kernel reads them all
        weights, nibbles = _unpacked(lowering, kinds), None
    return lowering.opaque(
        "quantized_product",
        [x, *weights, *factors, lowering.value("group_list")],
        dtype,
        shape,
        present=(*present, "groups"),
        along=1 if _along(call) == ALONG_ROWS else 2,
        list_kind=number(call, "group_list_type"),
        activation=number(call, "act_type"),
        clears=not call.c_shaped,
        nibbles=nibbles,
    )


def _lower_each(lowering: Lowering) -> list[int]:
    """A product for each weight, of rows and columns that are known now."""
    call, builder = lowering.call, lowering.builder
    xs, weights, made = lowering.values("x"), lowering.values("weight"), []
    kinds = _nibbles(call)
    start = 0
    for x, index, k in _pairs(call):
        value, (rows, n) = xs[x], _weights(call)[index]
        if _along(call) == ALONG_K:
            (m, _), strides = builder.shape(value), builder.value(value).strides
            value, k, start = (
                builder.view(value, (m, rows), strides, start * strides[1]),
                rows,
                start + rows,
            )
        m = math.prod(builder.shape(value)[:-1])
        present, factors = _factors(lowering, index)
        made.append(
            lowering.opaque(
                "quantized_product",
                [lowering.reshaped(value, (m, k)), weights[index], *factors],
                _out_dtype(call),
                (m, n),
                present=tuple(present),
                nibbles=kinds[index],
            )
        )
    return made


def _lower(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    if "group_list" in call.tensors:
        return {"out_0": _lower_groups(lowering)}
    made, shapes = _lower_each(lowering), _result_shapes(call)
    if _along(call) == ALONG_ROWS:
        return {"out_0": _joined(lowering, made, _out_dtype(call))}
    return {
        f"out_{index}": lowering.reshaped(value, shape)
        for index, (value, shape) in enumerate(zip(made, shapes, strict=True))
        if lowering.wants(f"out_{index}")
    }


def _c_signature(extra: str = "") -> str:
    return (
        "x:tensors weight:tensors biasOptional=bias:tensors? scaleOptional=scale:tensors? "
        "offsetOptional:absent antiquantScaleOptional=antiquant_scale:tensors? "
        "antiquantOffsetOptional=antiquant_offset:tensors? "
        "perTokenScaleOptional=per_token_scale:tensors? groupListOptional=group_list:in? "
        "activationInputOptional:absent activationQuantScaleOptional:absent "
        "activationQuantOffsetOptional:absent splitItem:int groupType:int groupListType:int "
        f"actType:int {extra}out:outs activationFeatureOutOptional:absent dynQuantScaleOutOptional:absent"
    )


grouped_matmul = Operator(
    name="grouped_matmul",
    differentiable=False,
    summary="Products of lists of matrices, or of groups of rows with a weight each.",
    expression="group_type -1: out[i] = x[i] @ weight[i] + bias[i]; 0: out[s:e] = x[s:e] @ weight[g] + bias[g]; 2: out[g] = x[:, s:e] @ weight[s:e]",
    notes=(
        "All operands but `group_list` are lists. group_type -1: as many weights as x, and results (split_item 0 or 1). "
        "0: one result (split_item 2 or 3), of groups of the rows of one x with a weight each, (groups, K, N) or a list "
        "of (K, N); or of all rows of several x, one for each weight: group_list, where given, says the groups then too. "
        "2: of the columns of one x, the groups of one weight (one result, (groups, M, N)) or a list of weights (a "
        "result for each; no group_list). "
        "Groups are listed by their ends, with group_list_type 1 by their sizes, with 2 by pairs of a weight and a size "
        "as far as the first size of 0. They are read when the call runs: one that ends before it begins, or beyond "
        "the rows, ends the run with 161002. Rows of no group are 0, those of C-shaped calls are left alone. "
        "int8: (sums + bias)·scale·per_token_scale, then "
        "act_type (1: relu; 2: gelu by tanh; 4: fast gelu; 5: silu); sums are exact. int8 weights of a floating x: "
        "(weight + antiquant_offset)·antiquant_scale; of int32, which hold eight integers of four bits, or INT4 in "
        "C-shaped calls, rows may share scales in groups. Other sums are in float32, over K in its order, and rounded once."
    ),
    inputs=(*_LISTS, "group_list"),
    optional=(*_LISTS[2:], "group_list"),
    lists=_LISTS,
    makes=_count_results,
    attributes=(
        Attribute("split_item", 0, "int", doc="0, 1: several results; 2, 3: one."),
        Attribute("group_type", WITHOUT, "int", doc="-1: no groups; 0: groups of rows; 2: of columns of x."),
        Attribute("group_list_type", 0, "int", doc="How groups are listed: 0 to 2."),
        Attribute("act_type", 0, "int", doc="An activation after dequantization."),
        Attribute("output_dtype", None, "dtype", nullable=True, doc="Of the result; default: that of x, float16 for int8."),
    ),
    parameters=("x", "weight"),
    sample_specs=specs("x, weight: [1,1]"),
    entries=(
        entry("aclnnGroupedMatmulV4", _c_signature()),
        entry("aclnnGroupedMatmulV5", _c_signature("tuningConfigOptional:ignored? ")),
    ),
    rules=(
        _not_empty(),
        option_within("split_item", 0, 3),
        _group_type(),
        _listed_by_pairs(),
        _activation_number(),
        option_within("group_list_type", 0, 2),
        _ranks(),
        list_dtype_among("x", (*FLOATING, BYTE)),
        _one_dtype("x"),
        _dtype_if("weight", _weight_dtypes, "of the dtype of `x`, INT8, INT4, or INT32 that is packed"),
        _one_dtype("weight"),
        *require("group_list: INT64"),
        _out_dtypes_fit(),
        _output_dtype(),
        _activation(),
        _dtype_if("bias", _bias_dtypes, "of the dtype of `x`, FLOAT for BF16, INT32 for INT8"),
        _quantized_operands(),
        _dtype_if("scale", _scale_dtypes, "BF16 for results of BF16, FLOAT for FLOAT16, UINT64 or INT64 for INT8"),
        _dtype_if("per_token_scale", lambda call: (SINGLE,), "FLOAT"),
        _antiquant_operands(),
        _dtype_if("antiquant_scale", lambda call: (_dtype(call, "x"),), "of the dtype of `x`"),
        _dtype_if("antiquant_offset", lambda call: (_dtype(call, "x"),), "of the dtype of `x`"),
        _no_bias_along_k(),
        _counts(),
        _weights_fit(),
        _has_groups(),
        *[_for_columns(role) for role in ("bias", "scale", *_ANTIQUANT)],
        _for_rows(),
        _out_shapes(),
        _without_rows(),
    ),
    infer=lambda call: {
        f"out_{place}": (_out_dtype(call), shape) for place, shape in enumerate(_result_shapes(call))
    },
    lower=_lower,
    example=(
        "grouped_matmul([np.float32([[1, 2]]), np.float32([[3]])], [np.float32([[10], [100]]), np.float32([[2]])])",
        "(array([[210.]], dtype=float32), array([[6.]], dtype=float32))",
    ),
    accuracy="Sums are in float32, rounded once; those of int8 are exact.",
    seealso=("matmul", "quant_matmul", "moe_token_permute"),
)  # fmt: skip
