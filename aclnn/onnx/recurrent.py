"""Recurrent layers: LSTM, GRU and RNN, whose inputs are multiplied all at once.

What depends on the state before is a cell. A few steps are part of the plan; of more the cell is a plan of its own,
which runs once for each.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from aclnn.api import functional
from aclnn.onnx.steps import Form, Step
from aclnn.tracing.array import TracedArray
from aclnn.tracing.compiled import compile as compiled
from aclnn.tracing.opaque import call

ours: Any = functional  # whose names are made from declarations
MOST_UNROLLED = 32  # steps that become part of a plan
TOGETHER = 16  # steps of one run of a cell's plan, where there are more
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
ACTIVATIONS = {
    "LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",),
}  # fmt: skip
STATES = {"LSTM": 2, "GRU": 1, "RNN": 1}
Activation = Callable[[Any], Any]

# By name: the function, of an array, alpha and beta, and what these are by default.
_FUNCTIONS: dict[str, tuple[Callable[..., Any], float, float]] = {
    "sigmoid": (lambda x, a, b: ours.sigmoid(x), 0, 0),
    "tanh": (lambda x, a, b: ours.tanh(x), 0, 0),
    "relu": (lambda x, a, b: ours.relu(x), 0, 0),
    "affine": (lambda x, a, b: x * a + b, 1, 0),
    "leakyrelu": (lambda x, a, b: ours.leaky_relu(x, a), 0.01, 0),
    "thresholdedrelu": (lambda x, a, b: ours.threshold(x, a, 0.0), 1, 0),
    "scaledtanh": (lambda x, a, b: ours.tanh(x * b) * a, 1, 1),
    "hardsigmoid": (lambda x, a, b: ours.clamp(x * a + b, 0.0, 1.0), 0.2, 0.5),
    "elu": (lambda x, a, b: ours.elu(x, a), 1, 0),
    "softsign": (lambda x, a, b: x / (ours.abs(x) + 1.0), 0, 0),
    "softplus": (lambda x, a, b: ours.softplus(x), 0, 0),
}


@dataclass(frozen=True)
class Layer:
    """One direction of a layer: what its steps have in common.

    Attributes
    ----------
    kind : str
    size : int
        Elements of a state.
    clip : float or None
    activations : tuple of callable
    is_late : bool
        Whether a GRU resets after its product.
    is_coupled : bool
        Whether an LSTM forgets what it does not take in.
    """

    kind: str
    size: int
    clip: float | None
    activations: tuple[Activation, ...]
    is_late: bool
    is_coupled: bool

    def activated(self, index: int, x: Any) -> Any:
        if self.clip is not None:
            x = ours.clamp(x, -self.clip, self.clip)
        return self.activations[index](x)

    def step(self, value: Any, states: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
        """The states after a step, of the inputs' share of it."""
        return {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[self.kind](
            value, states, weights
        )

    def _parts(self, x: Any) -> list[Any]:
        return [x[..., n * self.size : (n + 1) * self.size] for n in range(GATES[self.kind])]

    def _lstm(self, value: Any, states: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
        (h, c), (recurrent, _, peepholes) = states, weights
        take, out, forget, new = self._parts(ours.add(value, ours.matmul(h, recurrent)))
        if peepholes is not None:
            of_take, of_out, of_forget = (
                peepholes[n * self.size : (n + 1) * self.size] for n in range(3)
            )
            take, forget = take + c * of_take, forget + c * of_forget
        take = self.activated(0, take)
        kept = 1.0 - take if self.is_coupled else self.activated(0, forget)
        c = kept * c + take * self.activated(1, new)
        if peepholes is not None:
            out = out + c * of_out
        return [self.activated(0, out) * self.activations[2](c), c]

    def _gru(self, value: Any, states: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
        (h,), (recurrent, bias, _) = states, weights
        size = self.size
        keep, reset, new = self._parts(value)
        if self.is_late:
            product = ours.matmul(h, recurrent)
            of_new = product[..., 2 * size :]
            of_new = of_new if bias is None else ours.add(of_new, bias)
        else:
            product = ours.matmul(h, recurrent[:, : 2 * size])
        keep = self.activated(0, ours.add(keep, product[..., :size]))
        reset = self.activated(0, ours.add(reset, product[..., size : 2 * size]))
        share = reset * of_new if self.is_late else ours.matmul(reset * h, recurrent[:, 2 * size :])
        new = self.activated(1, ours.add(new, share))
        return [(1.0 - keep) * new + keep * h]

    def _rnn(self, value: Any, states: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
        return [self.activated(0, ours.add(value, ours.matmul(states[0], weights[0])))]


class _Cell:
    """Some steps of a layer as a function of arrays; constant weights belong to it."""

    __aclnn_constant__ = True  # nobody binds its arrays anew

    def __init__(self, layer: Layer, weights: Sequence[Any], is_reversed: bool):
        self.layer, self.is_reversed = layer, is_reversed
        self.fixed = [None if isinstance(one, TracedArray) else one for one in weights]
        self.is_given = [isinstance(one, TracedArray) for one in weights]
        self.n_states = STATES[layer.kind]
        self.__name__ = layer.kind.lower()
        count = 1 + self.n_states + sum(self.is_given)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(f"x{n}", kind) for n in range(count)]
        )

    def __call__(self, arguments: Any, *others: Any) -> Any:
        states: Sequence[Any] = others[: self.n_states]
        left = iter(others[self.n_states :])
        weights = [
            next(left) if is_given else one
            for is_given, one in zip(self.is_given, self.fixed, strict=True)
        ]
        rows: list[Any] = [None] * arguments.shape[0]
        for at in reversed(range(len(rows))) if self.is_reversed else range(len(rows)):
            states = rows[at] = self.layer.step(arguments[at], states, weights)
        made = [ours.stack([row[n] for row in rows], 0) for n in range(self.n_states)]
        return made[0] if len(made) == 1 else tuple(made)


def _looped(
    layer: Layer, value: Any, states: Sequence[Any], weights: Sequence[Any], order: Sequence[int],
    lengths: Any,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """The results of all steps and the last states, by a plan for some steps that runs until all are done."""
    cell = compiled(_Cell(layer, weights, order[0] > order[-1]), threads=1, packed=True)
    together = _together(len(order)) if lengths is None else 1
    n_states = len(states)
    traced = [one for one in weights if isinstance(one, TracedArray)]
    n_read = 1 + n_states + len(traced)
    shape = (n_states, value.shape[0], *states[0].shape)

    def run(*views: Any, out: Any) -> None:
        # One memory for the states of all runs, whose plan is one then.
        before = [np.array(one) for one in views[1 : 1 + n_states]]
        more, ends = views[1 + n_states : n_read], views[n_read:]
        for begin in range(0, len(order), together):
            some = order[begin : begin + together]
            part = slice(min(some), max(some) + 1)
            now = [out[n, part] for n in range(n_states)]
            cell(views[0][part], *before, *more, out=now[0] if n_states == 1 else tuple(now))
            for end in ends:
                for one, last in zip(now, before, strict=True):
                    np.copyto(one[0], last, where=end <= some[0])
            for n, one in enumerate(before):
                one[...] = out[n, some[-1]]

    run.__name__ = layer.kind.lower()
    ends = [] if lengths is None else [lengths]
    made = call(run, value, *states, *traced, *ends, shape=shape, dtype=value.dtype)
    rows = made[0]
    if lengths is not None:
        steps = np.arange(value.shape[0], dtype=lengths.dtype).reshape(-1, 1, 1)
        rows = ours.where(ours.gt(lengths, steps), rows, 0.0)
    return rows, [made[n, order[-1]] for n in range(n_states)]


def _together(count: int) -> int:
    """The steps of one run of so many: all runs are as long, where that is not too short.

    >>> _together(100), _together(64), _together(97)
    (10, 16, 16)
    """
    sizes = [one for one in range(TOGETHER // 2, TOGETHER + 1) if count % one == 0]
    return max(sizes, default=TOGETHER)


def _unrolled(
    layer: Layer, arguments: Any, states: Sequence[Any], weights: Sequence[Any],
    order: Sequence[int], lengths: Any,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """The results of all steps, and the states after the last."""
    rows: list[Any] = [None] * len(order)
    now = list(states)
    for at in order:
        after = layer.step(arguments[at], now, weights)
        rows[at] = after[0]
        if lengths is not None:
            goes_on = ours.gt(lengths, at)
            after = [ours.where(goes_on, one, last) for one, last in zip(after, now, strict=True)]
            rows[at] = ours.where(goes_on, rows[at], 0.0)
        now = after
    return ours.stack(rows, 0), now


def _applied(function: Callable[..., Any], alpha: float, beta: float, x: Any) -> Any:
    return function(x, alpha, beta)


def _activations(step: Step, direction: int) -> tuple[Activation, ...]:
    kinds = ACTIVATIONS[step.kind]
    names = list(step.attribute("activations", ())) or [*kinds, *kinds]
    names = [one.decode() if isinstance(one, bytes) else one for one in names]
    alphas = iter(step.attribute("activation_alpha", ()))
    betas = iter(step.attribute("activation_beta", ()))
    found: list[Activation] = []
    for name in names:
        if name.lower() not in _FUNCTIONS:
            raise step.refused(f"activation {name} is not supported")
        function, alpha, beta = _FUNCTIONS[name.lower()]
        # Numbers are listed for those functions that have them, in their order.
        a = next(alphas, alpha) if alpha else alpha
        b = next(betas, beta) if beta else beta
        found.append(partial(_applied, function, a, b))
    begin = direction * len(kinds)
    if len(found) < begin + len(kinds):
        raise step.refused(f"{len(found)} activations, {begin + len(kinds)} are needed")
    return tuple(found[begin : begin + len(kinds)])


def _direction(step: Step, number: int, is_backward: bool, lengths: Any) -> tuple[Any, list[Any]]:
    """The results of a direction, [step, batch, element], and its last states."""
    x, weight, recurrent, bias = (step.given(index) for index in range(4))
    size, gates = recurrent.shape[-1], GATES[step.kind]
    clip = step.attribute("clip", 0.0)
    layer = Layer(
        step.kind, size, clip or None, _activations(step, number),
        bool(step.attribute("linear_before_reset", 0)), bool(step.attribute("input_forget", 0)),
    )  # fmt: skip
    count, batch = x.shape[:2]
    product = ours.matmul(x.reshape(count * batch, x.shape[2]), weight[number].T)
    late = None
    if bias is not None:
        own, other = bias[number, : gates * size], bias[number, gates * size :]
        if layer.kind == "GRU" and layer.is_late:  # the last is added before it is reset
            late = other[2 * size :]
            other = _with_zeros(other[: 2 * size], size)
        product = ours.add(product, own + other)
    value = product.reshape(count, batch, gates * size)
    peepholes = step.given(7)
    weights = [recurrent[number].T, late, None if peepholes is None else peepholes[number]]
    states = [_initial(step, index, number, x, size) for index in (5, 6)[: STATES[step.kind]]]
    order = [*range(count)]
    order = order[::-1] if is_backward else order
    run = _unrolled if count <= MOST_UNROLLED else _looped
    return run(layer, value, states, weights, order, lengths)


def _with_zeros(bias: Any, size: int) -> Any:
    if isinstance(bias, TracedArray):
        return ours.constant_pad_nd(bias, [0, size], 0)
    return np.concatenate([bias, np.zeros(size, bias.dtype)])


def _initial(step: Step, index: int, number: int, x: Any, size: int) -> Any:
    """The state before the first step."""
    arguments = step.given(index)
    if arguments is not None:
        return arguments[number]
    return ours.mul(ours.expand(x[:1, :, :1], (1, x.shape[1], size)), 0.0).reshape(x.shape[1], size)


def _recurrent(step: Step) -> Any:
    x, lengths = step.inputs[0], step.given(4)
    is_by_batch = bool(step.attribute("layout", 0))
    if is_by_batch:
        turned = [one if one is None else one.transpose(1, 0, 2) for one in step.inputs[5:7]]
        inputs = [x.transpose(1, 0, 2), *step.inputs[1:5], *turned, *step.inputs[7:]]
        step = Step(
            step.kind, step.name, step.opset, tuple(inputs), step.attributes, step.n_outputs
        )
        x = step.inputs[0]
    if (
        not isinstance(lengths, TracedArray)
        and lengths is not None
        and (lengths == x.shape[0]).all()
    ):
        lengths = None
    if lengths is not None:
        lengths = lengths.reshape(-1, 1)
    if not x.size:
        raise step.refused(f"its input has shape {list(x.shape)}, which has no elements")
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    direction = step.attribute("direction", "forward")
    if direction not in ways:
        raise step.refused(f"direction is {direction}, must be one of {', '.join(ways)}")
    found = [
        _direction(step, number, is_backward, lengths)
        for number, is_backward in enumerate(ways[direction])
    ]
    rows = ours.stack([one for one, _ in found], 1)
    states = [ours.stack([*each], 0) for each in zip(*[last for _, last in found], strict=True)]
    if is_by_batch:
        rows = rows.transpose(2, 0, 1, 3)
        states = [one.transpose(1, 0, 2) for one in states]
    return (rows, *states)


RECURRENT: dict[str, Form] = dict.fromkeys(GATES, _recurrent)
