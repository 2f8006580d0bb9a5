"""Mixtures of experts: gates, the order of tokens by their experts, and sums of what experts give."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    NOTHING_TO_DO,
    Call,
    Rule,
    answering,
    dtype_among,
    rule,
    same_dtype,
    when,
)
from aclnn.operators.declaration import REQUIRED, Attribute, Operator, argument, entry
from aclnn.operators.lowering import Lowering
from aclnn.operators.sizes import FAILED_PLAN, number, planned, size_is, together
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]
Inferred = Mapping[str, tuple[aclDataType, Shape]]

_SINGLE, _INT, _LONG = aclDataType.ACL_FLOAT, aclDataType.ACL_INT32, aclDataType.ACL_INT64
_BOOL = aclDataType.ACL_BOOL
SOFTMAX, SIGMOID, CHOSEN = range(3)
UNCOUNTED, CUMULATIVE, COUNTED, BEFORE = range(4)
_ORDER = (
    "Experts are in descending order, of equal ones the one with the smaller index comes first."
)
_ACCURACY = "Sums are in float64; results are rounded to float32, and then to their dtype."
_EXACT = "Results are exact."
_MOST_CHOSEN, _MOST_EXPERTS = 1024, 2048


def _matrix(lowering: Lowering, role: str) -> int:
    shape = lowering.call.shape(role)
    return lowering.reshaped(role, (math.prod(shape[:-1]), shape[-1]))


# --- Gates ----------------------------------------------------------------------------------------


def _lead(call: Call) -> Shape:
    return call.shape("x")[:-1]


def _chosen_shape(call: Call) -> Shape:
    return (*_lead(call), number(call, "k"))


@rule("`{role}` has elements")
def _has_elements(call: Call, role: str) -> str | None:
    if call.tensors[role].size:
        return None
    return f"{call.shaped(role)}, which has no elements"


@rule(f"`k` is from 1 to the number of experts, at most {_MOST_CHOSEN}", "k", "x")
def _few_chosen(call: Call) -> str | None:
    k, most = number(call, "k"), min(call.shape("x")[-1], _MOST_CHOSEN)
    if 1 <= k <= most:
        return None
    return f"{call.names['k']} is {k}, must be from 1 to {most}"


def _finished() -> Rule:
    return size_is("finished", _lead, "the shape of `x` without its last")


@rule("`renorm` is 0 or 1")
def _renorm_is(call: Call, *allowed: int) -> str | None:
    if number(call, "renorm") in allowed:
        return None
    return f"{call.chosen('renorm')}, must be 0 or 1"


def _gate(lowering: Lowering, results: Mapping[str, str], **options: object) -> Mapping[str, int]:
    """The node of a gate; `results` are the operator's, by what the kernel calls them."""
    call = lowering.call
    rows, experts, k = math.prod(_lead(call)), call.shape("x")[-1], number(call, "k")
    operands, present = [_matrix(lowering, "x")], []
    for role in ("bias", "finished"):
        if role in call.tensors and lowering.has(role):
            present.append(role)
            operands.append(lowering.reshaped(role, (call.tensors[role].size,)))
    made = [(call.dtype("x"), (rows, k)), (_INT, (rows, k))]
    for kind, shape, dtype in (("rows", (rows, k), _INT), ("normalized", (rows, experts), _SINGLE)):
        if kind in results and lowering.wants(results[kind]):
            present.append(kind)
            made.append((dtype, shape))
    numbers = options.pop("params", (1.0, 0.0))
    found = lowering.opaque_all(
        "gate", operands, made, present=tuple(present), params=numbers, **options
    )
    kinds = ["y", "experts", *[kind for kind in ("rows", "normalized") if kind in present]]
    return {
        results[kind]: lowering.reshaped(one, lowering.results[results[kind]][1])
        for kind, one in zip(kinds, found, strict=True)
    }


_K = Attribute("k", 1, "int", doc="How many experts a token gets.")
_GATE_SPECS = specs("x: [1,1]; expert_idx, row_idx: INT32; softmax_result, out: FLOAT")

moe_gating_top_k_softmax = Operator(
    name="moe_gating_top_k_softmax",
    differentiable=False,
    summary="The experts of each token: the largest of a softmax.",
    expression="y, expert_idx = topk(softmax(x), k); row_idx[i, j] = j·rows + i",
    notes=f"{_ORDER} Where `finished` is true, expert_idx is the number of experts.",
    inputs=("x", "finished"),
    optional=("finished",),
    outputs=("y", "expert_idx", "row_idx"),
    attributes=(argument("k", 1, "int", "How many experts a token gets."),),
    sample_specs=_GATE_SPECS,
    entries=(
        entry(
            "aclnnMoeGatingTopKSoftmax",
            "x finishedOptional=finished:in? k:int yOut=y:out expertIdxOut=expert_idx:out rowIdxOut=row_idx:out",
        ),
    ),
    rules=(
        *require("x: FLOATING; finished: BOOL; y: dtype of x; expert_idx, row_idx: INT32"),
        *require("x, finished, y, expert_idx, row_idx: plain format"),
        *planned(
            *require("x: 2 to 3 dims"),
            _has_elements("x"),
            _finished(),
            _few_chosen(),
            *[
                size_is(role, _chosen_shape, "the shape of `x`, k in its last place")
                for role in ("y", "expert_idx", "row_idx")
            ],
        ),
    ),
    infer=lambda call: {
        "y": (call.dtype("x"), _chosen_shape(call)),
        "expert_idx": (_INT, _chosen_shape(call)),
        "row_idx": (_INT, _chosen_shape(call)),
    },
    lower=lambda lowering: _gate(
        lowering, {"y": "y", "experts": "expert_idx", "rows": "row_idx"}, norm=SOFTMAX
    ),
    example=(
        "moe_gating_top_k_softmax(np.float32([[0, 0, -200]]), k=2)",
        "(array([[0.5, 0.5]], dtype=float32), array([[0, 1]], dtype=int32), array([[0, 1]], dtype=int32))",
    ),
    accuracy=_ACCURACY,
    seealso=("moe_gating_top_k", "topk"),
)  # fmt: skip


def _wants_softmax(call: Call) -> bool:
    return bool(call.switches["output_softmax"]) and number(call, "renorm") == 0


def _infer_gate_v2(call: Call) -> Inferred:
    found = {"y": (call.dtype("x"), _chosen_shape(call)), "expert_idx": (_INT, _chosen_shape(call))}
    if _wants_softmax(call):
        found["softmax_result"] = (_SINGLE, call.shape("x"))
    return found


def _if_softmax(rule: Rule) -> Rule:
    return when(_wants_softmax, rule, "{} where asked for")


moe_gating_top_k_softmax_v2 = Operator(
    name="moe_gating_top_k_softmax_v2",
    differentiable=False,
    summary="The experts of each token, and the softmax of all or of the chosen.",
    expression="renorm 0: y, expert_idx = topk(softmax(x), k); 1: t, expert_idx = topk(x, k), y = softmax(t)",
    notes=f"{_ORDER} softmax_result is a result with `output_softmax` and renorm 0.",
    inputs=("x", "finished"),
    optional=("finished", "softmax_result"),
    outputs=("y", "expert_idx", "softmax_result"),
    attributes=(
        _K,
        Attribute("renorm", 0, "int", doc="Whether softmax is of the chosen alone."),
        Attribute("output_softmax", False, "bool", doc="Whether the softmax is a result."),
    ),
    parameters=("x",),
    sample_specs=_GATE_SPECS,
    entries=(
        entry(
            "aclnnMoeGatingTopKSoftmaxV2",
            "x finishedOptional=finished:in? k:int renorm:int outputSoftmaxResultFlag=output_softmax:bool yOut=y:out "
            "expertIdxOut=expert_idx:out softmaxResultOutOptional=softmax_result:out?",
        ),
    ),
    rules=(
        *require("x: FLOATING; finished: BOOL; y: dtype of x; expert_idx: INT32"),
        _if_softmax(dtype_among("softmax_result", (_SINGLE,))),
        *planned(
            *require("x: 2 to 3 dims"),
            _has_elements("x"),
            _finished(),
            _few_chosen(),
            _renorm_is(0, 1),
            size_is("y", _chosen_shape, "the shape of `x`, k in its last place"),
            size_is("expert_idx", _chosen_shape, "the shape of `x`, k in its last place"),
            _if_softmax(size_is("softmax_result", lambda call: call.shape("x"), "the shape of `x`")),
        ),
    ),
    infer=_infer_gate_v2,
    lower=lambda lowering: _gate(
        lowering,
        {"y": "y", "experts": "expert_idx", "normalized": "softmax_result"},
        norm=CHOSEN if number(lowering.call, "renorm") else SOFTMAX,
    ),
    example=(
        "moe_gating_top_k_softmax_v2(np.float32([[0, 0, -200]]), k=2, output_softmax=True)",
        "(array([[0.5, 0.5]], dtype=float32), array([[0, 1]], dtype=int32), array([[0.5, 0.5, 0. ]], dtype=float32))",
    ),
    accuracy=_ACCURACY,
    seealso=("moe_gating_top_k_softmax",),
)  # fmt: skip


def _that(text: str, holds: Callable[[Call], bool], *roles: str) -> Rule:
    """A rule about numbers, whose message shows them."""

    def test(call: Call) -> str | None:
        if holds(call):
            return None
        numbers = [r for r in roles if r in call.switches]
        shown = [call.chosen(r) for r in numbers]
        shown += [f"{call.shaped(r)}" for r in roles if r in call.tensors]
        plain = text
        for role in roles:
            plain = plain.replace(f"`{role}`", call.names[role])
        return f"{', '.join(shown)}: must be such that {plain}"

    return Rule(text, test, roles)


def _experts(call: Call) -> int:
    return call.shape("x")[-1]


_GROUP_RULES = (
    size_is("bias", lambda call: call.shape("x")[-1:], "an element for each expert"),
    _that(
        "`k` is no more than there are experts", lambda c: number(c, "k") <= _experts(c), "k", "x"
    ),
    _that(f"`x` has at most {_MOST_EXPERTS} columns", lambda c: _experts(c) <= _MOST_EXPERTS, "x"),
    _that("`k` is positive", lambda c: number(c, "k") > 0, "k"),
    _that("`k_group` is positive", lambda c: number(c, "k_group") > 0, "k_group"),
    _that(
        "`k_group` is no more than `group_count`",
        lambda c: number(c, "k_group") <= number(c, "group_count"),
        "k_group",
        "group_count",
    ),
    _that("`group_count` is positive", lambda c: number(c, "group_count") > 0, "group_count"),
    _that("`norm_type` is 0 or 1", lambda c: number(c, "norm_type") in (0, 1), "norm_type"),
    _that(
        "`group_select_mode` is 0 or 1",
        lambda c: number(c, "group_select_mode") in (0, 1),
        "group_select_mode",
    ),
    _that("`renorm` is 0 or 1", lambda c: number(c, "renorm") in (0, 1), "renorm"),
    _that(
        "`group_count` divides the columns of `x`",
        lambda c: _experts(c) % number(c, "group_count") == 0,
        "group_count",
        "x",
    ),
    _that(
        "groups have more experts than `group_select_mode`",
        lambda c: _experts(c) // number(c, "group_count") > number(c, "group_select_mode"),
        "group_select_mode",
        "group_count",
        "x",
    ),
    _that(
        "`k` is no more than the experts of `k_group` groups",
        lambda c: (
            number(c, "k") <= number(c, "k_group") * (_experts(c) // number(c, "group_count"))
        ),
        "k",
        "k_group",
        "group_count",
    ),
)


def _infer_gate(call: Call) -> Inferred:
    found = {"y": (call.dtype("x"), _chosen_shape(call)), "expert_idx": (_INT, _chosen_shape(call))}
    if call.switches["out_flag"]:
        found["out"] = (_SINGLE, call.shape("x"))
    return found


def _lower_gate(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    norm = number(call, "norm_type")
    return _gate(
        lowering,
        {"y": "y", "experts": "expert_idx", "normalized": "out"},
        norm=norm,
        groups=number(call, "group_count"),
        kept=number(call, "k_group"),
        by_two=number(call, "group_select_mode") == 1,
        divides=norm == SIGMOID or number(call, "renorm") == 1,
        params=(lowering.number("routed_scaling_factor", "exact"), lowering.number("eps", "exact")),
    )


def _if_out(rule: Rule) -> Rule:
    return when(lambda call: call.switches["out_flag"], rule, "{} where asked for")


moe_gating_top_k = Operator(
    name="moe_gating_top_k",
    differentiable=False,
    summary="The experts of each token, which may be chosen by groups and with a bias.",
    expression="expert_idx = the k largest of n + bias in the best groups; y = n there·routed_scaling_factor",
    notes=(
        f"n is the softmax of x, with norm_type 1 its sigmoid. {_ORDER} With several groups, those stay whose largest, or "
        "with group_select_mode 1 the sum of whose two largest, is among the k_group best. With norm_type 1 or "
        "renorm 1, y is divided by the sum of the chosen n, plus eps. out is n, a result with `out_flag`."
    ),
    inputs=("x", "bias"),
    optional=("bias",),
    outputs=("y", "expert_idx", "out"),
    attributes=(
        argument("k", REQUIRED, "int", "How many experts a token gets."),
        Attribute("k_group", 1, "int", doc="How many groups stay."),
        Attribute("group_count", 1, "int", doc="How many groups there are."),
        Attribute("group_select_mode", 0, "int", doc="How groups are ranked: by one expert, or two."),
        Attribute("renorm", 0, "int", doc="Whether to divide softmax by the sum of the chosen."),
        Attribute("norm_type", 0, "int", doc="0: softmax; 1: sigmoid."),
        Attribute("out_flag", False, "bool", doc="Whether n is a result."),
        Attribute("routed_scaling_factor", 1.0, "float", doc="Multiplies the result."),
        Attribute("eps", 1e-20, "float", doc="Added to the sum that divides."),
    ),
    parameters=("x", "k"),
    sample_specs={**_GATE_SPECS, "k": 1},
    entries=(
        entry(
            "aclnnMoeGatingTopK",
            "x biasOptional=bias:in? k:int kGroup=k_group:int groupCount=group_count:int "
            "groupSelectMode=group_select_mode:int renorm:int normType=norm_type:int outFlag=out_flag:bool "
            "routedScalingFactor=routed_scaling_factor:float eps:float yOut=y:out expertIdxOut=expert_idx:out outOut=out:out",
        ),
    ),
    rules=(
        *require("x: FLOATING; bias, y: dtype of x; expert_idx: INT32"),
        _if_out(dtype_among("out", (_SINGLE,))),
        *planned(
            *require("x: 2 dims"),
            *_GROUP_RULES,
            _has_elements("x"),
            size_is("y", _chosen_shape, "the shape of `x`, k in its last place"),
            size_is("expert_idx", _chosen_shape, "the shape of `x`, k in its last place"),
            _if_out(size_is("out", lambda call: call.shape("x"), "the shape of `x`")),
        ),
    ),
    infer=_infer_gate,
    lower=_lower_gate,
    example=(
        "moe_gating_top_k(np.float32([[0, 0, 50]]), 1, norm_type=1, out_flag=True)",
        "(array([[1.]], dtype=float32), array([[2]], dtype=int32), array([[0.5, 0.5, 1. ]], dtype=float32))",
    ),
    accuracy=_ACCURACY,
    seealso=("moe_gating_top_k_softmax",),
)  # fmt: skip


# --- The order of tokens --------------------------------------------------------------------------


def _routed(
    lowering: Lowering,
    ids: int,
    rows: int,
    *,
    each: int,
    experts: int = 0,
    capacity: int = 0,
    counting: int = UNCOUNTED,
    counts: int = 0,
) -> tuple[int, ...]:
    """Targets of each place of a list of experts, the token of each row, and counts."""
    size = lowering.builder.value(ids).shape[0]
    made = [(_INT, (size,)), (_INT, (rows,))] + [(_INT, (counts,))] * (counting != UNCOUNTED)
    return lowering.opaque_all(
        "route", [ids], made, each=each, experts=experts, capacity=capacity, counting=counting
    )


def _places(call: Call) -> int:
    return call.tensors["expert_idx"].size


def _drops(call: Call) -> bool:
    return number(call, "drop_pad_mode") == 1


def _expanded_shape(call: Call) -> Shape:
    if _drops(call):
        return number(call, "expert_num"), number(call, "expert_capacity"), call.shape("x")[1]
    active, count = number(call, "active_num"), _places(call)
    return min(active, count) if active > 0 else count, call.shape("x")[1]


def _counts_wanted(call: Call) -> tuple[bool, bool]:
    """Whether counts, or running sums, and whether counts before some are dropped."""
    flag = number(call, "expert_tokens_count_or_cumsum_flag")
    before = bool(call.switches["expert_tokens_before_capacity_flag"])
    return not _drops(call) and flag > 0, _drops(call) and before


_COUNTS = ("expert_tokens_count_or_cumsum", "expert_tokens_before_capacity")


def _infer_init(call: Call) -> Inferred:
    found = {
        "expanded_x": (call.dtype("x"), _expanded_shape(call)),
        "expanded_row_idx": (_INT, (_places(call),)),
    }
    for role, requested in zip(_COUNTS, _counts_wanted(call), strict=True):
        if requested:
            found[role] = (_INT, (number(call, "expert_num"),))
    return found


def _lower_init(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    shape = _expanded_shape(call)
    rows, experts = math.prod(shape[:-1]), number(call, "expert_num")
    counted, before = _counts_wanted(call)
    counting = UNCOUNTED
    if before:
        counting = BEFORE
    elif counted:
        counting = number(call, "expert_tokens_count_or_cumsum_flag")
    if not _places(call):  # nothing but counts
        return {
            role: lowering.filled(0, dtype, shape)
            for role, (dtype, shape) in lowering.results.items()
            if math.prod(shape)
        }
    ids = lowering.reshaped("expert_idx", (_places(call),))
    positions, sources, *counts = _routed(
        lowering, ids, rows,
        each=call.shape("expert_idx")[1], counting=counting, counts=experts,
        experts=experts if counted or _drops(call) else 0,
        capacity=number(call, "expert_capacity") if _drops(call) else 0,
    )  # fmt: skip
    found = {"expanded_row_idx": positions}
    if "expanded_x" in lowering.results:
        taken = lowering.taken(
            "take_rows", [lowering.value("x"), sources], call.dtype("x"), (rows, shape[-1])
        )
        found["expanded_x"] = lowering.reshaped(taken, shape)
    for role, requested in zip(_COUNTS, (counted, before), strict=True):
        if requested:
            found[role] = counts[0]
    return found


def _unless_empty(rule: Rule) -> Rule:
    """The dtype of a tensor without elements is not looked at."""
    role = rule.roles[0]
    return when(
        lambda call: role in call.tensors and call.tensors[role].size,
        rule,
        "{}, unless it is empty",
    )


@rule("counts are given where a flag asks for them", *_COUNTS)
def _counts_given(call: Call) -> str | None:
    if call.makes_absent:
        return None
    for role, requested in zip(_COUNTS, _counts_wanted(call), strict=True):
        if requested and role not in call.tensors:
            return f"{call.names[role]} is null, but a flag asks for it"
    return None


def _if_counted(index: int, rule: Rule) -> Rule:
    return when(lambda call: _counts_wanted(call)[index], rule, "where asked for, {}")


@rule("in C-shaped calls, if `x` or `expert_idx` is empty there is nothing to do")
def _done_init(call: Call) -> str | None:
    empty = call.tensors["x"].size == 0 or call.tensors["expert_idx"].size == 0
    return NOTHING_TO_DO if empty and call.c_shaped else None


def _count_of_experts(call: Call) -> Shape:
    return (number(call, "expert_num"),)


moe_init_routing = Operator(
    name="moe_init_routing",
    differentiable=False,
    summary="Tokens in the order of their experts, as many times as they have experts.",
    expression="expanded_x[p] = x[s[p] // k], expanded_row_idx[s[p]] = p, s = argsort(expert_idx), stable",
    notes=(
        "With drop_pad_mode 1 each expert has expert_capacity rows: surplus tokens are dropped, whose "
        "expanded_row_idx is -1, and what is left are zeros. Counts of tokens are results with "
        "expert_tokens_count_or_cumsum_flag 2, their running sums with 1, in mode 0; those before dropping with "
        "expert_tokens_before_capacity_flag in mode 1. An index that no expert has ends the run with 161002. CANN's "
        "second version; PyTorch's adapter calls its own `npu_moe_init_routing_v2` what is a third one."
    ),
    inputs=("x", "expert_idx"),
    outputs=("expanded_x", "expanded_row_idx", *_COUNTS),
    optional=_COUNTS,
    attributes=(
        Attribute("active_num", 0, "int", doc="How many rows to keep in mode 0; 0: all."),
        Attribute("expert_capacity", 0, "int", doc="Rows of each expert in mode 1."),
        Attribute("expert_num", 0, "int", doc="How many experts there are."),
        Attribute("drop_pad_mode", 0, "int", doc="1: each expert has as many rows."),
        Attribute("expert_tokens_count_or_cumsum_flag", 0, "int", doc="1: running sums of counts; 2: counts."),
        Attribute("expert_tokens_before_capacity_flag", False, "bool", doc="Whether to count before dropping."),
    ),
    sample_specs=specs("x: [1,1]; expert_idx: INT32[1,1]; expanded_row_idx, expert_tokens_count_or_cumsum, expert_tokens_before_capacity: INT32"),
    entries=(
        entry(
            "aclnnMoeInitRoutingV2",
            "x expertIdx=expert_idx activeNum=active_num:int expertCapacity=expert_capacity:int expertNum=expert_num:int "
            "dropPadMode=drop_pad_mode:int expertTokensCountOrCumsumFlag=expert_tokens_count_or_cumsum_flag:int "
            "expertTokensBeforeCapacityFlag=expert_tokens_before_capacity_flag:bool expandedXOut=expanded_x:out "
            "expandedRowIdxOut=expanded_row_idx:out expertTokensCountOrCumsumOut=expert_tokens_count_or_cumsum:out? "
            "expertTokensBeforeCapacityOut=expert_tokens_before_capacity:out?",
        ),
    ),
    rules=(
        _unless_empty(dtype_among("x")),
        _unless_empty(dtype_among("expert_idx", (_INT,))),
        _unless_empty(same_dtype("expanded_x", "x")),
        _unless_empty(dtype_among("expanded_row_idx", (_INT,))),
        *[_if_counted(place, dtype_among(role, (_INT,))) for place, role in enumerate(_COUNTS)],
        *answering(
            FAILED_PLAN,
            *require("x: 2 dims"),
            _that(
                "`expert_idx` has the rows of `x`",
                lambda c: c.shape("expert_idx")[:1] == c.shape("x")[:1], "x", "expert_idx",
            ),
            _that("`expert_capacity` is not negative", lambda c: number(c, "expert_capacity") >= 0, "expert_capacity"),
            _that("`expert_num` is not negative", lambda c: number(c, "expert_num") >= 0, "expert_num"),
            _that("`drop_pad_mode` is 0 or 1", lambda c: number(c, "drop_pad_mode") in (0, 1), "drop_pad_mode"),
            _that(
                "`expert_capacity` and `expert_num` are positive with `drop_pad_mode` 1",
                lambda c: not _drops(c) or min(number(c, "expert_capacity"), number(c, "expert_num")) > 0,
                "expert_capacity", "expert_num", "drop_pad_mode",
            ),
            _that(
                "`expert_tokens_count_or_cumsum_flag` is from 0 to 2",
                lambda c: number(c, "expert_tokens_count_or_cumsum_flag") in (0, 1, 2),
                "expert_tokens_count_or_cumsum_flag",
            ),
            _that(
                "`expert_num` is positive where experts are counted",
                lambda c: not _counts_wanted(c)[0] or number(c, "expert_num") > 0,
                "expert_num", "expert_tokens_count_or_cumsum_flag",
            ),
            _that(
                "`expert_capacity` is no more than the rows of `x`",
                lambda c: number(c, "expert_capacity") <= c.shape("x")[0], "expert_capacity", "x",
            ),
            _that("`active_num` is not negative", lambda c: number(c, "active_num") >= 0, "active_num"),
            *require("expert_idx: 2 dims"),
            size_is("expanded_x", _expanded_shape, "the shape of the rows that are kept"),
            size_is("expanded_row_idx", lambda call: (_places(call),), "an element for each of `expert_idx`"),
            _counts_given(),
            *[
                _if_counted(place, size_is(role, _count_of_experts, "an element for each expert"))
                for place, role in enumerate(_COUNTS)
            ],
        ),
        _done_init(),
    ),
    infer=_infer_init,
    lower=_lower_init,
    example=(
        "moe_init_routing(np.float32([[5], [7]]), np.int32([[1], [0]]), expert_num=2, "
        "expert_tokens_count_or_cumsum_flag=2)",
        "(array([[7.],\n       [5.]], dtype=float32), array([1, 0], dtype=int32), array([1, 1], dtype=int32), None)",
    ),
    accuracy=_EXACT,
    seealso=("moe_finalize_routing", "moe_token_permute"),
)  # fmt: skip


def _permuted_rows(call: Call) -> int:
    count, requested = call.tensors["indices"].size, call.switches["num_out_tokens"]
    if not isinstance(requested, int):
        return count
    return min(requested, count) if requested > 0 else max(count + requested, 0)


def _each(call: Call) -> int:
    shape = call.shape("indices")
    return shape[1] if len(shape) > 1 else 1


@rule("`padded_mode` is false")
def _not_padded(call: Call) -> str | None:
    if not call.switches["padded_mode"]:
        return None
    return f"{call.names['padded_mode']} is true, must be false"


def _lower_permute(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    count, rows = call.tensors["indices"].size, _permuted_rows(call)
    shape = call.shape("tokens")
    width = math.prod(shape[1:])
    ids = lowering.reshaped("indices", (count,))
    positions, sources = _routed(lowering, ids, rows, each=_each(call))
    found = {"sorted_indices": positions}
    if lowering.wants("permuted_tokens"):
        table = lowering.reshaped("tokens", (shape[0], width))
        taken = lowering.taken("take_rows", [table, sources], call.dtype("tokens"), (rows, width))
        found["permuted_tokens"] = lowering.reshaped(taken, (rows, *shape[1:]))
    return found


moe_token_permute = Operator(
    name="moe_token_permute",
    differentiable=False,
    summary="Tokens in the order of their indices, as many times as they have some.",
    expression="permuted_tokens[sorted_indices[f]] = tokens[f // top_k], sorted_indices = the inverse of argsort(indices)",
    notes=(
        "The sort is stable. `num_out_tokens` keeps so many rows; 0 or less, all but so many. A negative index ends the "
        "run with 161002."
    ),
    inputs=("tokens", "indices"),
    outputs=("permuted_tokens", "sorted_indices"),
    attributes=(
        argument("num_out_tokens", None, "int", "How many rows to keep; default: all.", nullable=True),
        argument("padded_mode", False, "bool", "Must be false."),
    ),
    sample_specs=specs("tokens: [1,1]; indices: INT32[1]; sorted_indices: INT32"),
    entries=(
        entry(
            "aclnnMoeTokenPermute",
            "tokens indices numOutTokens=num_out_tokens:int paddedMode=padded_mode:bool "
            "permuteTokensOut=permuted_tokens:out sortedIndicesOut=sorted_indices:out",
        ),
    ),
    rules=(
        *require("tokens: FLOATING; indices: INT32 INT64; permuted_tokens: dtype of tokens"),
        *require("sorted_indices: INT32"),
        *planned(
            _not_padded(),
            *require("tokens: 2 to 8 dims; indices: 1 to 2 dims"),
            _that(
                "`indices` has the rows of `tokens`",
                lambda c: c.shape("indices")[:1] == c.shape("tokens")[:1], "tokens", "indices",
            ),
            size_is(
                "permuted_tokens", lambda call: (_permuted_rows(call), *call.shape("tokens")[1:]), "the shape of the rows that are kept"
            ),
            size_is("sorted_indices", lambda call: (call.tensors["indices"].size,), "an element for each index"),
        ),
    ),
    infer=lambda call: {
        "permuted_tokens": (call.dtype("tokens"), (_permuted_rows(call), *call.shape("tokens")[1:])),
        "sorted_indices": (_INT, (call.tensors["indices"].size,)),
    },
    lower=_lower_permute,
    example=(
        "moe_token_permute(np.float32([[5], [7]]), np.int32([1, 0]))",
        "(array([[7.],\n       [5.]], dtype=float32), array([1, 0], dtype=int32))",
    ),
    accuracy=_EXACT,
    seealso=("moe_token_unpermute",),
)  # fmt: skip


# --- Sums -----------------------------------------------------------------------------------------


def _combined(
    lowering: Lowering,
    rows: int,
    index: int,
    shape: Shape,
    operands: Mapping[str, int],
    **options: object,
) -> int:
    dtype = lowering.results["out"][0]
    kinds = [kind for kind in ("scales", "x1", "x2", "bias", "experts") if kind in operands]
    value = [rows, index, *[operands[kind] for kind in kinds]]
    return lowering.opaque("combine", value, dtype, shape, present=tuple(kinds), **options)


def _token_count(call: Call) -> int:
    count = call.tensors["sorted_indices"].size
    if "probs" in call.tensors:
        return call.shape("probs")[0]
    return count


def _token_each(call: Call) -> int:
    return call.shape("probs")[1] if "probs" in call.tensors else 1


def _unpermuted_shape(call: Call) -> Shape:
    return _token_count(call), *call.shape("permuted_tokens")[1:]


def _lower_unpermute(lowering: Lowering) -> Mapping[str, int]:
    operands = {"scales": lowering.value("probs")} if lowering.has("probs") else {}
    shape = lowering.results["out"][1]
    made = _combined(
        lowering, lowering.value("permuted_tokens"), lowering.value("sorted_indices"), shape, operands,
        each=_token_each(lowering.call), by_columns=False, drops=False,
    )  # fmt: skip
    return {"out": made}


@rule("`restore_shape` is null")
def _no_restored_shape(call: Call) -> str | None:
    if not call.switches["restore_shape"]:
        return None
    return f"{call.chosen('restore_shape')}, must be null"


moe_token_unpermute = Operator(
    name="moe_token_unpermute",
    differentiable=False,
    summary="Sums of the rows of each token, with weights.",
    expression="out[i] = Σ permuted_tokens[sorted_indices[i·K + j]]·probs[i, j] over j",
    notes=(
        "Without probs K is 1, and rows are moved alone. An index beyond the rows, which moe_token_permute cut off, adds "
        "nothing; a negative one ends the run with 161002. Sums are in float32, rounded once."
    ),
    inputs=("permuted_tokens", "sorted_indices", "probs"),
    optional=("probs",),
    attributes=(
        argument("padded_mode", False, "bool", "Must be false."),
        argument("restore_shape", None, "ints", "Must be null.", nullable=True),
    ),
    sample_specs=specs("permuted_tokens: [1,1]; sorted_indices: INT32[1]"),
    entries=(
        entry(
            "aclnnMoeTokenUnpermute",
            "permutedTokens=permuted_tokens sortedIndices=sorted_indices probsOptional=probs:in? "
            "paddedMode=padded_mode:bool restoreShapeOptional=restore_shape:ints? out:out",
        ),
    ),
    rules=(
        *require("permuted_tokens: FLOATING; sorted_indices: INT32; probs: FLOATING"),
        *require("out: dtype of permuted_tokens"),
        *planned(
            _not_padded(),
            _no_restored_shape(),
            *require("permuted_tokens: 2 dims; sorted_indices: 1 dim; probs: 2 dims"),
            _that(
                "`probs` has as many elements as `sorted_indices`",
                lambda c: "probs" not in c.tensors or c.tensors["probs"].size == c.tensors["sorted_indices"].size,
                "probs", "sorted_indices",
            ),
            size_is("out", _unpermuted_shape, "the shape of a row for each token"),
        ),
    ),
    infer=lambda call: {"out": (call.dtype("permuted_tokens"), _unpermuted_shape(call))},
    lower=_lower_unpermute,
    example=(
        "moe_token_unpermute(np.float32([[7], [5]]), np.int32([1, 0]), np.float32([[2, 1]]))",
        "array([[17.]], dtype=float32)",
    ),
    accuracy="Sums are in float32, rounded once.",
    seealso=("moe_token_permute", "moe_finalize_routing"),
)  # fmt: skip


def _each_row(call: Call) -> int:
    return call.shape("scales")[1] if "scales" in call.tensors else 1


def _final_shape(call: Call) -> Shape:
    rows = call.tensors["expanded_src_to_dst_row"].size // max(1, _each_row(call))
    return rows, call.shape("expanded_permuted_rows")[-1]


def _of_results(role: str) -> Rule:
    return size_is(role, _final_shape, "the shape of the result")


@rule(
    "`expanded_permuted_rows` has 2 dimensions, in the modes 1 and 3 it has 3",
    "expanded_permuted_rows",
    "drop_pad_mode",
)
def _rank_by_mode(call: Call) -> str | None:
    requested = 3 if number(call, "drop_pad_mode") % 2 else 2
    rank = len(call.shape("expanded_permuted_rows"))
    if rank == requested:
        return None
    name = call.names["expanded_permuted_rows"]
    return f"{name} has {rank} dimensions, must have {requested} with {call.names['drop_pad_mode']} {number(call, 'drop_pad_mode')}"


def _lower_finalize(lowering: Lowering) -> Mapping[str, int]:
    call, mode = lowering.call, number(lowering.call, "drop_pad_mode")
    shape = lowering.results["out"][1]
    named = {
        "scales": "scales", "x1": "skip1", "x2": "skip2", "bias": "bias", "experts": "export_for_source_row",
    }  # fmt: skip
    operands = {kind: lowering.value(role) for kind, role in named.items() if lowering.has(role)}
    if "bias" not in operands:
        operands.pop("experts", None)
    made = _combined(
        lowering, _matrix(lowering, "expanded_permuted_rows"), lowering.value("expanded_src_to_dst_row"), shape, operands,
        each=_each_row(call), by_columns=mode < 2, drops=mode % 2 == 1,
    )  # fmt: skip
    return {"out": made}


moe_finalize_routing = Operator(
    name="moe_finalize_routing",
    differentiable=False,
    summary="Sums of what the experts of each token give, with weights, biases and residuals.",
    expression="out[i] = skip1[i] + skip2[i] + Σ scales[i, j]·(rows[r] + bias[expert]) over j, r = the index of (i, j)",
    notes=(
        "The index is at j·R + i in the modes 0 and 1, of R tokens, at i·K + j in 2 and 3. In the modes 1 and 3 rows are "
        "(experts, capacity, size), and -1 stands for a token that was dropped: it adds nothing, bias included. Nor "
        "does an index beyond the rows. Other negative ones, and experts that there are not, end the run with 161002. "
        "Sums are in float32, rounded once."
    ),
    inputs=(
        "expanded_permuted_rows", "skip1", "skip2", "bias", "scales", "expanded_src_to_dst_row", "export_for_source_row",
    ),
    optional=("skip1", "skip2", "bias", "scales", "export_for_source_row"),
    attributes=(argument("drop_pad_mode", 0, "int", "The mode: 0 to 3."),),
    sample_specs=specs("expanded_permuted_rows: [1,1]; expanded_src_to_dst_row: INT32[1]"),
    entries=(
        entry(
            "aclnnMoeFinalizeRoutingV2",
            "expandedX=expanded_permuted_rows expandedRowIdx=expanded_src_to_dst_row x1Optional=skip1:in? "
            "x2Optional=skip2:in? biasOptional=bias:in? scalesOptional=scales:in? "
            "expertIdxOptional=export_for_source_row:in? dropPadMode=drop_pad_mode:int out:out",
        ),
    ),
    rules=(
        *require("expanded_permuted_rows: FLOATING; expanded_src_to_dst_row: INT32"),
        *[same_dtype(role, "expanded_permuted_rows") for role in ("skip1", "skip2", "bias", "out")],
        *require("scales: FLOAT or dtype of expanded_permuted_rows; export_for_source_row: INT32"),
        *answering(
            FAILED_PLAN,
            _that("`drop_pad_mode` is from 0 to 3", lambda c: number(c, "drop_pad_mode") in range(4), "drop_pad_mode"),
            _rank_by_mode(),
            _has_elements("expanded_permuted_rows"),
            *require("expanded_src_to_dst_row: 1 dim; scales: 2 dims"),
            _that(
                "`scales` has as many elements as the index",
                lambda c: "scales" not in c.tensors
                or c.tensors["scales"].size == c.tensors["expanded_src_to_dst_row"].size,
                "scales", "expanded_src_to_dst_row",
            ),
            together("skip2", "skip1"),
            together("bias", "export_for_source_row"),
            _of_results("skip1"),
            _of_results("skip2"),
            *require("bias: 2 dims"),
            _that(
                "`bias` has the columns of rows, and at least as many experts as a token has",
                lambda c: "bias" not in c.tensors
                or (c.shape("bias")[1] == _final_shape(c)[1] and c.shape("bias")[0] >= _each_row(c)),
                "bias",
            ),
            size_is(
                "export_for_source_row", lambda call: (_final_shape(call)[0], _each_row(call)), "an expert for each row"
            ),
            _of_results("out"),
        ),
    ),
    infer=lambda call: {"out": (call.dtype("expanded_permuted_rows"), _final_shape(call))},
    lower=_lower_finalize,
    example=(
        "moe_finalize_routing(np.float32([[7], [5]]), np.float32([[1]]), None, None, np.float32([[2, 1]]), "
        "np.int32([1, 0]), None)",
        "array([[18.]], dtype=float32)",
    ),
    accuracy="Sums are in float32, rounded once.",
    seealso=("moe_init_routing", "moe_token_unpermute"),
)  # fmt: skip
