"""Attention by its weights: with dropout, with sinks, and with gradients of shifts, which the operator lacks.

The weights are what the operator gives for values that are the columns of a unit matrix, so that masks, modes and
groups of heads are its own. Tensors are those of the CPU over memory of the device.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from aclnn.torch.npu.refusals import checked
from aclnn.torch.overloads import form

# Axes of batch, heads, length and size in each layout, and back.
_AXES = {"BSH": (0, 2, 1, 3), "SBH": (1, 2, 0, 3), "BSND": (0, 2, 1, 3), "BNSD": (0, 1, 2, 3)}
_BACK = _AXES | {"SBH": (2, 0, 1, 3)}


@dataclass
class Attention:
    """A call: operands, and the operator's options of the same names."""

    query: Any
    key: Any
    value: Any
    heads: int
    layout: str
    scale: float
    keep_prob: float = 1.0
    seed: int = 0
    pse: Any = None
    sink: Any = None
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.layout == "TND":
            raise checked(
                "NOT_SUPPORT: attention of the layout TND is emulated without dropout and sinks",
                "007",
            )
        if self.sink is not None and self.sink.numel() != self.heads:
            raise checked(
                f"sink should have {self.heads} elements, one for each head, but got {self.sink.numel()}"
            )

    def of_heads(self, x: Any) -> Any:
        """An operand as [batch, heads, length, size] in float32."""
        if self.layout in ("BSH", "SBH"):
            size = self.query.shape[-1] // self.heads
            x = (
                x.unflatten(-1, (-1, size))
                if x is not self.value
                else x.unflatten(-1, (self.groups, -1))
            )
        return x.permute(_AXES[self.layout]).float()

    @property
    def groups(self) -> int:
        """Heads of keys and values."""
        if self.layout in ("BSH", "SBH"):
            return int(self.key.shape[-1] // (self.query.shape[-1] // self.heads))
        return int(self.key.shape[1 if self.layout == "BNSD" else 2])

    def as_given(self, x: Any, like: Any) -> Any:
        """Heads as the layout has them, in a dtype."""
        made = x.permute(_BACK[self.layout])
        made = made.flatten(-2) if self.layout in ("BSH", "SBH") else made
        return made.contiguous().to(like.dtype)

    def repeated(self, x: Any) -> Any:
        """Keys or values of each head of queries."""
        return x.repeat_interleave(self.heads // self.groups, 1)

    def summed(self, x: Any) -> Any:
        """Gradients of heads that share keys or values."""
        return x.unflatten(1, (self.groups, -1)).sum(2)

    def weights(self) -> tuple[Any, Any, Any]:
        """Weights of keys, largest scores and sums of exponentials of each query."""
        query, key = self.of_heads(self.query), self.of_heads(self.key)
        count, size = key.shape[2:]
        pse = None if self.pse is None else self.pse.float()
        parts = []
        for begin in range(0, count, size):
            width = min(size, count - begin)
            columns = torch.zeros(*key.shape[:2], count, size)
            columns[..., begin : begin + width, :width] = torch.eye(width)
            made, most, total = form("fusion_attention")(
                query, key, columns, self.heads, "BNSD", pse, None, scale=self.scale, **self.options
            )
            parts.append(made[..., :width])
        return torch.cat(parts, -1), most, total

    def with_sink(self, weights: Any, most: Any, total: Any) -> tuple[Any, Any, Any]:
        """Weights next to that of a sink, which has no value; sums with it; the weight of the sink."""
        if self.sink is None:
            return weights, total, None
        sink = self.sink.reshape(1, -1, 1, 1).float()
        whole = form("add")(total, form("exp")(form("sub")(sink, most)))
        share = form("div")(total, whole)[..., :1]
        return form("mul")(weights, share), whole, form("rsub")(share, 1)

    def kept(self, shape: Any) -> Any:
        """Factors of dropout: the same for the same seed."""
        if self.keep_prob == 1:
            return None
        generator = torch.Generator().manual_seed(self.seed)
        drawn = torch.rand(shape, generator=generator) < self.keep_prob
        return drawn.float() / self.keep_prob


def attended(call: Attention) -> tuple[Any, Any, Any, int]:
    """The result, both statistics, and the number of elements of the mask of dropout."""
    weights, most, total = call.weights()
    weights, total, _ = call.with_sink(weights, most, total)
    kept = call.kept(weights.shape)
    used = weights if kept is None else form("mul")(weights, kept)
    made = form("matmul")(used, call.repeated(call.of_heads(call.value)))
    count = 0 if kept is None else kept.numel()
    return call.as_given(made, call.query), most, total, count


def gradients(call: Attention, dy: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Gradients of query, key, value, shift and sink."""
    weights, most, total = call.weights()
    weights, _, of_sink = call.with_sink(weights, most, total)
    kept = call.kept(weights.shape)
    query, key, value = (call.of_heads(one) for one in (call.query, call.key, call.value))
    grad = _of_result(call, dy, value.shape[-1])
    used = weights if kept is None else form("mul")(weights, kept)
    of_value = call.summed(form("matmul")(used.mT, grad))
    of_weights = form("matmul")(grad, call.repeated(value).mT)
    of_weights = of_weights if kept is None else form("mul")(of_weights, kept)
    mean = form("sum")(form("mul")(of_weights, weights), [-1], True)
    of_scores = form("mul")(weights, form("sub")(of_weights, mean))
    of_scores = form("mul")(of_scores, call.scale)
    found = (
        call.as_given(form("matmul")(of_scores, call.repeated(key)), call.query),
        call.as_given(call.summed(form("matmul")(of_scores.mT, query)), call.key),
        call.as_given(of_value, call.value),
    )
    shift = sink = None
    if (
        call.pse is not None
        and call.pse.dim() == 4
        and call.pse.shape[2] in (1, of_scores.shape[2])
    ):
        shift = of_scores.sum_to_size(call.pse.shape).to(call.pse.dtype)
    if of_sink is not None:
        sink = (
            -form("mul")(of_sink, mean).sum((0, 2, 3)).reshape(call.sink.shape).to(call.sink.dtype)
        )
    return (*found, shift, sink)


def _of_result(call: Attention, dy: Any, size: int) -> Any:
    heads = dy.unflatten(-1, (call.heads, size)) if call.layout in ("BSH", "SBH") else dy
    return heads.permute(_AXES[call.layout]).float()
