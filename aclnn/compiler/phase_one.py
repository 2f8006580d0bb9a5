"""The rules of a call: what phase one checks before anything is recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aclnn.acl import socs
from aclnn.acl.constants import ACLNN_ERR_PARAM_INVALID, aclDataType
from aclnn.acl.errors import AclnnError
from aclnn.operators import Operator
from aclnn.operators.checks import (
    MAX_DIMS,
    NOTHING_TO_DO,
    Call,
    Rule,
    ScalarSpec,
    TensorSpec,
    broadcast_shapes,
    promoted,
)

MOST_ELEMENTS = 2**47  # no machine of today addresses more bytes


class RefusedError(AclnnError):
    """A call that breaks a rule, for explanations.

    Attributes
    ----------
    rule : Rule or None
        None where the rule is not one of the operator's own.
    operator : Operator or None
    call : Call or None
        The call as rules see it, where it came that far.
    """

    def __init__(
        self,
        message: str,
        rule: Rule | None = None,
        operator: Operator | None = None,
        call: Call | None = None,
    ):
        super().__init__(ACLNN_ERR_PARAM_INVALID if rule is None else rule.status, message)
        self.rule = rule
        self.operator = operator
        self.call = call


@dataclass(frozen=True, slots=True)
class Request:
    """A call as phase one is given it, before anything of it was checked.

    `operands` are the inputs and the outputs, `None` where an input is null, or an output is null
    or to be made; `numbers` say of each number its dtype, its facts (bits, see `_request.pxd`) and its
    value, for messages.
    """

    operator: Operator
    operands: Sequence[TensorSpec | None]
    n_inputs: int
    numbers: Sequence[tuple[int, int, float]]
    scalar_texts: Mapping[str, str] | None
    switches: Sequence[object]
    names: Mapping[str, str]
    wanted: frozenset[str] | None = None  # outputs that are made where absent; None: all

    def __post_init__(self) -> None:
        """Name the outputs of an operator that makes a list: one for each of its tensors."""
        if self.operator.makes is None:
            return
        count, (listed,) = len(self.operands) - self.n_inputs, self.operator.outputs
        sized = self.operator.sized(count)
        name = self.names.get(listed, listed)
        names = {role: f"{name}[{index}]" for index, role in enumerate(sized.outputs)}
        object.__setattr__(self, "operator", sized)
        object.__setattr__(self, "names", {**self.names, **names})


def infer(operator: Operator, call: Call) -> Mapping[str, tuple[aclDataType, tuple[int, ...]]]:
    """The dtype and shape of each result, by role."""
    if operator.infer is not None:
        return operator.infer(call)
    dtype = promoted(call, operator.kernel_operands)
    assert dtype is not None, "a rule of every operator sees to it that the inputs promote"
    shape = broadcast_shapes(*(call.shape(role) for role in operator.kernel_operands))
    if "out" in call.tensors:
        shape = call.shape("out")
    elif shape is None:
        raise RefusedError(
            "the inputs' shapes do not broadcast, so the output has no shape; give one"
        )
    return {"out": (dtype, shape)}


def check_call(request: Request, soc: str) -> tuple[Call, bool]:
    """Go through the operator's rules; the first that is broken decides.

    Returns
    -------
    call : Call
    done : bool
        Whether a rule found that there is nothing to do.
    """
    call = _as_call(request, soc)
    if not socs.has_operators(call.soc):
        raise RefusedError(f"no operator of this package exists on {call.soc}")
    for rule in request.operator.rules:
        message = rule.test(call)
        if message == NOTHING_TO_DO:
            return call, True
        if message is not None:
            raise RefusedError(message, rule, request.operator, call)
    _check_bytes(request.operator, call)
    _check_outputs(request.operator, call)
    return call, False


def _as_call(request: Request, soc: str) -> Call:
    operator, names = request.operator, request.names
    roles = (*operator.kernel_operands, *operator.outputs)
    operands = operator.by_role(request.operands[: request.n_inputs])
    lists = {role: operands.pop(role) for role in operator.lists}
    results = zip(operator.outputs, request.operands[request.n_inputs :], strict=True)
    return Call(
        tensors={role: spec for role, spec in (*operands.items(), *results) if spec is not None},
        scalars={
            attribute.role: _scalar(attribute.role, found, request.scalar_texts or {})
            for attribute, found in zip(operator.scalars, request.numbers, strict=True)
        },
        switches={
            a.role: value for a, value in zip(operator.switches, request.switches, strict=True)
        },
        names={role: names.get(role, role) for role in (*roles, *names)}
        | {a.role: names.get(a.role, a.role) for a in operator.attributes},
        soc=soc,
        lists=lists,
        makes_absent=request.wanted is None,
        c_shaped=request.wanted is not None,
    )


# The bits of a number's facts, as `_request.pxd` has them.
_BITS = tuple(1 << bit for bit in range(8))
NEGATIVE, NOT_REAL, IS_ZERO, IS_ONE, IS_NAN, IS_WHOLE, IS_ABSENT, IS_BELOW = _BITS


def _scalar(role: str, found: tuple[int, int, float], texts: Mapping[str, str]) -> ScalarSpec:
    dtype, facts, value = found
    return ScalarSpec(
        convertible=not facts & NOT_REAL,
        negative=bool(facts & NEGATIVE),
        text=texts.get(role) or repr(float(value)),
        value=value,
        dtype=aclDataType(dtype),
        zero=bool(facts & IS_ZERO),
        one=bool(facts & IS_ONE),
        nan=bool(facts & IS_NAN),
        whole=bool(facts & IS_WHOLE),
        absent=bool(facts & IS_ABSENT),
        below=bool(facts & IS_BELOW),
    )


def _check_bytes(operator: Operator, call: Call) -> None:
    """Check that kernels can address every tensor: elements of four bits come in pairs."""
    listed = [
        (f"{call.names[role]}[{index}]", spec)
        for role, specs in call.lists.items()
        for index, spec in enumerate(specs)
    ]
    for name, spec in [(call.names[role], spec) for role, spec in call.tensors.items()] + listed:
        if spec.size and spec.in_bytes() is None:
            raise RefusedError(
                f"{name} of {call.word(spec.dtype)} has shape {spec.shape} and strides {spec.strides}: "
                "elements must lie in pairs along a dimension of even size, and all others must "
                "step over whole bytes",
                None,
                operator,
                call,
            )


def _check_outputs(operator: Operator, call: Call) -> None:
    """Check the rules of every operator: outputs are writable, no two of their elements share bytes."""
    for role in operator.outputs:
        out = call.tensors.get(role)
        if out is None or out.size == 0:
            continue
        if not out.writable:
            message = f"{call.names[role]} is read-only, but is the output"
            raise RefusedError(message, None, operator, call)
        if out.pair_axis not in (None, len(out.shape) - 1):
            raise RefusedError(
                f"{call.names[role]} of {call.word(out.dtype)} has strides {out.strides}: those of an "
                "output must be adjacent along the last dimension",
                None,
                operator,
                call,
            )
        if elements_meet(out):
            raise RefusedError(
                f"{call.names[role]} has strides {out.strides} for shape {out.shape}, which make "
                "elements of the output share memory",
                None,
                operator,
                call,
            )


def elements_meet(spec: TensorSpec) -> bool:
    """Whether two elements of a view lie at one place.

    Where more than two dimensions reach into each other, by looking at all elements; of more than a
    mebi of them it is taken for granted: hardly ever do such not meet.
    """
    pairs = zip(spec.strides, spec.shape, strict=True)
    dims = sorted((abs(stride), size) for stride, size in pairs if size > 1)
    # A dimension that steps over all that the others reach keeps elements apart.
    while dims and dims[-1][0] > sum((size - 1) * stride for stride, size in dims[:-1]):
        dims.pop()
    if not dims:
        return False
    if dims[0][0] == 0:  # all elements along it are one
        return True
    if len(dims) == 2:
        (low, many), (high, more) = dims
        return high // math.gcd(low, high) < many and low // math.gcd(low, high) < more
    if math.prod(size for _, size in dims) > 1 << 20:
        return True
    offsets = np.zeros(1, np.int64)
    for stride, size in dims:
        offsets = np.add.outer(offsets, np.arange(size) * stride).ravel()
    return np.unique(offsets).size < offsets.size


def refuse_sizes(names: Mapping[str, str], outputs: Mapping[str, TensorSpec]) -> None:
    """Refuse outputs that no plan or no memory holds, by their names."""
    for role, spec in outputs.items():
        _refuse_size(names.get(role, role), spec)


def _refuse_size(name: str, spec: TensorSpec) -> None:
    """Inputs are no larger: what they share with the output is all that is walked over."""
    if len(spec.shape) > MAX_DIMS:
        raise RefusedError(
            f"{name} has shape {spec.shape}, {len(spec.shape)} dimensions, at most {MAX_DIMS} are "
            "supported"
        )
    if spec.size > MOST_ELEMENTS:
        raise RefusedError(
            f"{name} has shape {spec.shape}, {spec.size} elements, which no memory holds"
        )
