"""Chunks of operators: the axes of operands and results that belong together.

A `Layout` labels axes, as ``dask.array.blockwise`` wants it: what has one label is divided alike.  Labels
of the result are its axes, counted from 0; others belong to axes that a call uses up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from aclnn.acl.errors import invalid
from aclnn.api.functional import HANDLES_BY_NAME

Labels = tuple[int, ...]
USED_UP = 100  # the first label that no result has


@dataclass(frozen=True, slots=True)
class Facts:
    """A call as layouts see it.

    Attributes
    ----------
    name : str
        Of the functional form.
    shapes : tuple of (tuple of int or None)
        Of the operands in the kernels' order; None for what is not given.
    out : tuple of int
        The shape of the result.
    options : mapping of str to object
        Those that shape a plan, by role.
    """

    name: str
    shapes: tuple[tuple[int, ...] | None, ...]
    out: tuple[int, ...]
    options: Mapping[str, Any]

    def ints(self, role: str, ndim: int) -> tuple[int, ...]:
        """An option that names axes of a tensor, counted from its first one; all where it names none."""
        value = self.options[role]
        axes = (value,) if isinstance(value, int) else tuple(value or ())
        return tuple(sorted({axis % ndim for axis in axes})) if axes else tuple(range(ndim))


@dataclass(frozen=True, slots=True)
class Layout:
    """Labels of the operands' axes and the result's, and the labels whose axes have to be in one chunk.

    Attributes
    ----------
    operands : tuple of (tuple of int or None)
    whole : frozenset of int
    sizes : mapping of int to int
        The result's, along axes that no operand has.
    """

    operands: tuple[Labels | None, ...]
    whole: frozenset[int] = frozenset()
    sizes: Mapping[int, int] = field(default_factory=dict)


Rule = Callable[[Facts], Layout]


def aligned(shapes: Sequence[tuple[int, ...] | None], ndim: int) -> tuple[Labels | None, ...]:
    """The labels of operands that are broadcast to a result of `ndim` axes."""
    return tuple([None if one is None else tuple(range(ndim - len(one), ndim)) for one in shapes])


def elementwise(facts: Facts) -> Layout:
    return Layout(aligned(facts.shapes, len(facts.out)))


def along_dim(facts: Facts) -> Layout:
    """Elements along `dim` belong together."""
    ndim = len(facts.out)
    return Layout(
        aligned(facts.shapes, ndim), frozenset(facts.ints("dim", ndim)) if ndim else frozenset()
    )


def halved(facts: Facts) -> Layout:
    """Elements along `dim` belong together, and operands and results are of different lengths there."""
    ndim = len(facts.out)
    (dim,) = facts.ints("dim", ndim) if "dim" in facts.options else (ndim - 1,)
    operands, kept = [], False
    for shape in facts.shapes:
        assert shape is not None
        same = shape[dim] == facts.out[dim]
        kept |= same
        operands.append(tuple([d if d != dim or same else USED_UP for d in range(ndim)]))
    sizes = {} if kept else {dim: facts.out[dim]}
    return Layout(tuple(operands), frozenset({dim, USED_UP}), sizes)


def last_axes(facts: Facts) -> Layout:
    """The last axes belong together, as many as `normalized_shape` has."""
    ndim, arguments = len(facts.out), facts.options["normalized_shape"]
    count = 1 if isinstance(arguments, int) else len(arguments)
    return Layout(aligned(facts.shapes, ndim), frozenset(range(ndim - count, ndim)))


def normalized_by(index: int) -> Rule:
    """The last axes belong together, as many as a weight has, which is the operand at `index`."""

    def rule(facts: Facts) -> Layout:
        ndim = len(facts.out)
        weight = facts.shapes[index]
        assert weight is not None
        return Layout(aligned(facts.shapes, ndim), frozenset(range(ndim - len(weight), ndim)))

    return rule


def channels(whole: Callable[[int], Sequence[int]]) -> Rule:
    """The first operand has channels along axis 1, and the others an element for each of them."""

    def rule(facts: Facts) -> Layout:
        others = facts.shapes[1:]
        ndim = len(facts.out)
        labels = [None if one is None else (1,)[: len(one)] for one in others]
        return Layout((tuple(range(ndim)), *labels), frozenset(whole(ndim)))

    return rule


def weight_of_channels(facts: Facts) -> Layout:
    """A weight for each channel, or one for all."""
    weight, ndim = facts.shapes[1] or (), len(facts.out)
    alone = ndim < 2 or prod(weight) == 1
    labels = (USED_UP if alone else 1,)[: len(weight)]
    return Layout((tuple(range(ndim)), labels), frozenset({USED_UP}))


def rows_of_table(facts: Facts) -> Layout:
    """Any row of the table, which is the first operand, may be asked for."""
    ndim = len(facts.out)
    return Layout(((USED_UP, ndim - 1), tuple(range(ndim - 1))), frozenset({USED_UP}))


def product(facts: Facts) -> Layout:
    """Products, with an addend before the two factors: rows and columns stay, sums are whole."""
    *addends, a, b = [shape or () for shape in facts.shapes]
    ndim = len(facts.out)
    kept_rows, kept_columns = len(a) > 1, len(b) > 1
    batch = ndim - kept_rows - kept_columns
    of_a = (*_last(batch, len(a) - 2), *((batch,) if kept_rows else ()), USED_UP)
    of_b = (*_last(batch, len(b) - 2), USED_UP, *((ndim - 1,) if kept_columns else ()))
    return Layout((*aligned(addends, ndim), of_a, of_b), frozenset({USED_UP}))


def _last(batch: int, count: int) -> Labels:
    return tuple(range(batch - max(count, 0), batch))


def summed_batch(facts: Facts) -> Layout:
    """Sums go over the batch too."""
    addend = aligned(facts.shapes[:1], 2)
    whole = frozenset({USED_UP, USED_UP + 1})
    return Layout((*addend, (USED_UP + 1, 0, USED_UP), (USED_UP + 1, USED_UP, 1)), whole)


def reduced(facts: Facts) -> Layout:
    """Axes of `dim` are used up; kept ones have one element."""
    (shape,) = facts.shapes
    assert shape is not None
    ndim = len(shape)
    gone = facts.ints("dim", ndim) if ndim else ()
    if len(facts.out) == ndim:
        labels = tuple([USED_UP + d if d in gone else d for d in range(ndim)])
        return Layout((labels,), _used(labels), dict.fromkeys(gone, 1))
    left = iter(range(ndim))
    labels = tuple([USED_UP + d if d in gone else next(left) for d in range(ndim)])
    return Layout((labels,), _used(labels))


def _used(labels: Labels) -> frozenset[int]:
    return frozenset([one for one in labels if one >= USED_UP])


# By what declarations say (`Operator.chunking`).
RULES: dict[str, Rule] = {
    "elementwise": elementwise,
    "along_dim": along_dim,
    "halved": halved,
    "last_axes": last_axes,
    "weight_1": normalized_by(1),
    "weight_2": normalized_by(2),
    "channels": channels(lambda ndim: range(1, ndim)),
    "channels_alone": channels(lambda ndim: ()),
    "weight_of_channels": weight_of_channels,
    "rows_of_table": rows_of_table,
    "product": product,
    "summed_batch": summed_batch,
    "reduced": reduced,
}
SUMMED_WEIGHTS = "summed_weights"
INSTEAD = "dask.array: "  # what Dask has itself, for messages


def is_elementwise(operator: Any) -> bool:
    """Whether a result's element is made of those in its place, as far as operands are broadcast."""
    if operator.chunking:
        return bool(operator.chunking == "elementwise")
    return bool(operator.is_elementwise)


def layout_of(facts: Facts) -> Layout:
    """The layout of a call.

    Raises
    ------
    AclnnError
        If the operator does not go over chunks.
    """
    operator = HANDLES_BY_NAME[facts.name].handle.operator
    if rule := RULES.get(operator.chunking):
        return rule(facts)
    if is_elementwise(operator):
        return elementwise(facts)
    if operator.chunking == SUMMED_WEIGHTS:
        raise invalid(
            "it does not go over chunks of Dask's arrays, as gradients of weights are sums over all of "
            "them: dask.array.map_blocks calls it on each, and a sum adds these up"
        )
    other = operator.chunking.removeprefix(INSTEAD)
    raise invalid(
        "it does not go over chunks of Dask's arrays; "
        + (f"use dask.array's own: {other}" if other else "dask.array.map_blocks calls it on each")
    )
