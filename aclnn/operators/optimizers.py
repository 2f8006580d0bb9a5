"""Steps of optimizers."""

from __future__ import annotations

from collections.abc import Mapping

from aclnn.acl.constants import ACLNN_ERR_PARAM_NULLPTR, aclDataType
from aclnn.operators.checks import Call, Rule, dtype_among, rule, same_shape, when
from aclnn.operators.declaration import Attribute, Operator, entry
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.words import require, specs

_SINGLE, _DOUBLE = aclDataType.ACL_FLOAT, aclDataType.ACL_DOUBLE
_STATE = {"out": "param", "m": "exp_avg", "v": "exp_avg_sq", "most": "max_exp_avg_sq"}


def _most_given() -> Rule:
    def test(call: Call) -> str | None:
        if not call.switches["amsgrad"] or "max_exp_avg_sq" in call.tensors:
            return None
        return f"{call.names['max_exp_avg_sq']} is null, must be given with {call.names['amsgrad']}"

    roles = ("max_exp_avg_sq", "amsgrad")
    return Rule("`max_exp_avg_sq` is given with `amsgrad`", test, roles, ACLNN_ERR_PARAM_NULLPTR)


def _like_param() -> Rule:
    return when(
        lambda call: "max_exp_avg_sq" in call.tensors, same_shape("max_exp_avg_sq", "param")
    )


@rule("`step` has one element")
def _one_step(call: Call) -> str | None:
    size = call.tensors["step"].size
    return None if size == 1 else f"{call.names['step']} has {size} elements, must have one"


def _infer(call: Call) -> Mapping[str, tuple[aclDataType, tuple[int, ...]]]:
    kept = [name for name in _STATE if name != "most" or call.switches["amsgrad"]]
    return {name: (call.dtype(_STATE[name]), call.shape("param")) for name in kept}


class _Factors:
    """Factors that hold for all elements, computed in double."""

    def __init__(self, lowering: Lowering):
        self._lowering = lowering
        self._one = self._filled(1.0)
        step = lowering.dense(lowering.reshaped("step", (1,)), _DOUBLE)
        self._steps = self._of("add", step, self._one, 1.0)

    def _filled(self, number: object) -> int:
        return self._lowering.point("fill", (), _DOUBLE, (1,), params=(number,))

    def number(self, role: str) -> int:
        return self._filled(self._lowering.number(role, "exact"))

    def _of(self, formula: str, a: int, b: int, *params: float) -> int:
        return self._lowering.point(formula, [a, b], _DOUBLE, (1,), params=params)

    def _bias(self, beta: str) -> int:
        return self._of("sub", self._one, self._of("pow", self.number(beta), self._steps), 1.0)

    def spread(self, value: int) -> int:
        shape = self._lowering.call.shape("param")
        single = self._lowering.builder.cast(value, graph_dtype(_SINGLE))
        return self._lowering.builder.view(single, shape, (0,) * len(shape))

    def decay(self) -> int:
        loss = self._of("mul", self.number("lr"), self.number("weight_decay"))
        return self.spread(self._of("sub", self._one, loss, 1.0))

    def rate(self) -> int:
        return self.spread(self._of("div", self.number("lr"), self._bias("beta1")))

    def root(self) -> int:
        """The root of the second moment's bias."""
        root = self._lowering.point("sqrt", [self._bias("beta2")], _DOUBLE, (1,))
        return self.spread(root)


def _lower(lowering: Lowering) -> Mapping[str, int]:
    call, builder, shape = lowering.call, lowering.builder, lowering.call.shape("param")

    def single(formula: str, *operands: int, params: tuple[object, ...] = ()) -> int:
        return lowering.point(formula, operands, _SINGLE, shape, params=params)

    factors = _Factors(lowering)
    param, m, v, grad = (
        lowering.dense(role, _SINGLE) for role in ("param", "exp_avg", "exp_avg_sq", "grad")
    )
    if call.switches["maximize"]:
        grad = single("neg", grad)
    m = single("lerps", grad, m, params=(lowering.number("beta1"),))
    v = single("lerps", single("square", grad), v, params=(lowering.number("beta2"),))
    made = {"m": m, "v": v}
    if call.switches["amsgrad"]:
        v = made["most"] = single("maximum", lowering.dense("max_exp_avg_sq", _SINGLE), v)
    root = single("div", single("sqrt", v), factors.root())
    below = single("adds", root, params=(lowering.number("eps"), 1.0))
    change = single("mul", single("div", m, below), factors.rate())
    kept = single("mul", param, factors.decay())
    made["out"] = single("sub", kept, change, params=(1.0,))
    return {
        name: builder.cast(value, graph_dtype(call.dtype(_STATE[name])))
        for name, value in made.items()
    }


adamw_ = Operator(
    name="adamw_",
    in_place="adamw_",
    summary="A step of AdamW: parameters and both moments, in place.",
    expression=(
        "m += (1 - beta1)·(grad - m); v = beta2·v + (1 - beta2)·grad²; param = param·(1 - lr·weight_decay) - "
        "lr/(1 - beta1^t)·m/(√v/√(1 - beta2^t) + eps), t = step + 1"
    ),
    notes=(
        "`step` is the number of steps before this one. With `amsgrad` the largest second moment counts, and is "
        "kept in `max_exp_avg_sq`; with `maximize` the gradient is negated."
    ),
    inputs=("param", "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "grad", "step"),
    outputs=tuple(_STATE),
    optional=("max_exp_avg_sq", "most"),
    attributes=(
        Attribute("lr", 1e-3, "float", doc="The learning rate."),
        Attribute("beta1", 0.9, "float", doc="Of the first moment."),
        Attribute("beta2", 0.999, "float", doc="Of the second moment."),
        Attribute("weight_decay", 1e-2, "float", doc="How much parameters shrink, times lr."),
        Attribute("eps", 1e-8, "float", doc="Added to what divides."),
        Attribute("amsgrad", False, "bool", doc="Whether the largest second moment counts."),
        Attribute("maximize", False, "bool", doc="Whether to go along the gradient."),
    ),
    sample_specs=specs("step: INT64[1]"),
    entries=(
        entry(
            "aclnnApplyAdamWV2",
            "varRef=param:inout mRef=exp_avg:inout vRef=exp_avg_sq:inout "
            "maxGradNormOptionalRef=max_exp_avg_sq:inout? grad step lr:float beta1:float beta2:float "
            "weightDecay=weight_decay:float eps:float amsgrad:bool maximize:bool",
        ),
    ),
    rules=(
        _most_given(),
        *[dtype_among(role) for role in ("param", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")],
        *require("grad: FLOATING; step: FLOAT INT64; exp_avg, exp_avg_sq: shape of param"),
        _like_param(),
        *require("grad: shape of param"),
        _one_step(),
        *require("param: if empty done"),
    ),
    infer=_infer,
    lower=_lower,
    example=(
        "adamw_(np.float32([1]), np.float32([0]), np.float32([0]), np.float32([0]), np.float32([2]), "
        "np.int64([0]), lr=0.5, beta1=0.5, beta2=0.75, weight_decay=0.0, eps=0.0, amsgrad=True)",
        "(array([0.5], dtype=float32), array([1.], dtype=float32), array([1.], dtype=float32), array([1.], dtype=float32))",
    ),
    accuracy="Factors are computed in float64, elements in float32, each operation rounded.",
)
