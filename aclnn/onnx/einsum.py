"""Einsum: products of matrices over the letters of two operands at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from aclnn.api import functional
from aclnn.onnx.numpy_forms import as_step, matmul
from aclnn.onnx.steps import Step
from aclnn.tracing.array import TracedArray

ours: Any = functional  # whose names are made from declarations


def _letters(step: Step) -> tuple[list[str], str]:
    """The letters of operands and of the result; those of an ellipsis are digits, which it has none of."""
    text = step.required("equation").replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(step.inputs):
        raise step.refused(
            f"equation {text} has {len(terms)} operands, {len(step.inputs)} are given"
        )
    most, found = 0, []
    for term, one in zip(terms, step.inputs, strict=True):
        own = one.ndim - len(term.replace("...", ""))
        if own < 0 or (own and "..." not in term):
            raise step.refused(f"{term} does not name the {one.ndim} axes of its operand")
        most = max(most, own)
        # Axes of an ellipsis are counted from the last one on.
        found.append(term.replace("...", "".join(str(n) for n in range(own))[::-1]))
    every = "".join(str(n) for n in range(most))[::-1]
    if not arrow:
        once = sorted({one for one in left if one.isalpha() and left.count(one) == 1})
        right = every + "".join(once)
    return found, right.replace("...", every)


def _diagonal(x: Any, letters: str) -> tuple[Any, str]:
    """An operand with each letter once: of those that it has twice, the elements of equal places."""
    once = "".join(dict.fromkeys(letters))
    if once == letters:
        return x, letters
    sizes = dict(zip(letters, x.shape, strict=True))
    shape = [sizes[one] for one in once]
    own, kept = ([once.index(one) for one in text] for text in (letters, once))
    if not isinstance(x, TracedArray):
        return np.einsum(x, own, kept), once
    return as_step("diagonal", lambda x: np.einsum(x, own, kept), [x], shape, x.dtype), once


def _summed(x: Any, letters: str, kept: str) -> tuple[Any, str]:
    """An operand without the letters that nothing else has."""
    gone = [n for n, one in enumerate(letters) if one not in kept]
    if not gone:
        return x, letters
    return ours.sum(x, gone, False), "".join([one for one in letters if one in kept])


def _product(a: Any, of_a: str, b: Any, of_b: str, kept: str) -> tuple[Any, str]:
    """The product of two operands, summed over the letters that are kept nowhere."""
    sizes = dict(zip(of_a, a.shape, strict=True))
    for one, size in zip(of_b, b.shape, strict=True):
        sizes[one] = size if sizes.get(one, 1) == 1 else sizes[one]
    both = [one for one in of_a if one in of_b]
    batch = [one for one in both if one in kept]
    inner = [one for one in both if one not in kept]
    rows = [one for one in of_a if one not in of_b]
    columns = [one for one in of_b if one not in of_a]
    left = _grouped(a, of_a, batch, [rows, inner], sizes)
    right = _grouped(b, of_b, batch, [inner, columns], sizes)
    made = matmul(left, right)
    order = [*batch, *rows, *columns]
    return made.reshape(*[sizes[one] for one in order]), "".join(order)


def _grouped(
    x: Any,
    letters: str,
    batch: Sequence[str],
    groups: Sequence[Sequence[str]],
    sizes: dict[str, int],
) -> Any:
    """An operand as a batch of matrices, whose axes are groups of letters."""
    order = [*batch, *[one for group in groups for one in group]]
    x = x.transpose(*[letters.index(one) for one in order])
    wide = tuple([sizes[one] for one in order])
    x = x if x.shape == wide else x.broadcast_to(wide)
    made = [sizes[one] for one in batch]
    return x.reshape(*made, *[math.prod([sizes[one] for one in group]) for group in groups])


def einsum(step: Step) -> Any:
    letters, result = _letters(step)
    if len({*result}) != len(result):
        raise step.refused("its result has a letter twice")
    if {*result} - {*"".join(letters)}:
        raise step.refused("its result has letters that no operand has")
    operands = [_diagonal(*one) for one in zip(step.inputs, letters, strict=True)]
    made, own = operands.pop(0)
    while operands:
        other, of_other = operands.pop(0)
        later = result + "".join([one for _, one in operands])
        made, own = _summed(made, own, later + of_other)
        other, of_other = _summed(other, of_other, later + own)
        made, own = _product(made, own, other, of_other, later)
    made, own = _summed(made, own, result)
    return made.transpose(*[own.index(one) for one in result]) if own != result else made
