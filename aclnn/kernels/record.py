"""Records of kernels: all that the build, the engine and everything around it know of each.

A `Record` stands for one kernel: its operands and parameters, the forms that its body has, what it costs, its
error, and what it is in ONNX.  Families of records lie beside the bodies in this folder, as a tuple `RECORDS`
of each module.  The build reads them without the package, so that they import nothing but this module.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# What a further form of a formula computes in, by the ending of its name.
ENDINGS = {
    "f32": "float",
    "half": "float",
    "f64": "double",
    "whole": "int64_t",
    "complex": "complex_t",
}
HALVES = ("float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand or a result of a kernel.

    Attributes
    ----------
    name : str
    role : str
        Of pointwise kernels ``element``; ``truth``, a truth value; ``mask``, a truth value that chooses among the others,
        which only move.
    """

    name: str
    role: str = "element"


@dataclass(frozen=True, slots=True)
class VectorForm:
    """A formula over vectors and pairs of vectors, in `activations.pxd`; numbers are C expressions of `p`.

    Attributes
    ----------
    rel_error : float
        Bound of the relative error of half precision before it is rounded, for the rounding test; at
        most 9.5e-7.
    root : str
        Where results are so small, beside a root, that too few digits are left; of the last input.
        Half precision is computed in pairs then.
    gap : str
        How far from there.
    decay : str
        The rate at which results of a large gradient decay exponentially with the last input, where
        that is negative; the exponential may be less than a normal number before the result is.
    half_in_pairs : bool, optional
        Half precision takes more digits than vectors have; by default if there is a root.
    has_zeros : bool
        Results of 0 are exact, whatever the inputs are; else only those of a first input of 0.
    direct : bool
        Half precision is converted, computed and rounded vector by vector: for formulas so short that
        chunks in between would take longer than they do.
    direct_f32 : bool
        Float32 is loaded, computed and stored vector by vector: for short ones, which take no number
        of the node.
    """

    rel_error: float = 6e-7
    root: str = ""
    gap: str = "0.006"
    decay: str = ""
    half_in_pairs: bool | None = None
    has_zeros: bool = False
    direct: bool = False
    direct_f32: bool = False

    @property
    def in_pairs(self) -> bool:
        """Whether half precision is computed in pairs of vectors."""
        return bool(self.root) if self.half_in_pairs is None else self.half_in_pairs


@dataclass(frozen=True, slots=True)
class HalfForm:
    """A formula of half precision over vectors of floats, which round as they should, in `arithmetic.pxd`.

    Attributes
    ----------
    over : {'vecf', 'veci'}
        Floats, or the bits of halves.
    inexact : str
        When a float does not give the result, but rounds it: an expression of `own.p`.
    scant : bool
        A float may have fewer digits than it takes, because results are too small.
    """

    over: str = "vecf"
    inexact: str = ""
    scant: bool = False


@dataclass(frozen=True, slots=True)
class HandForm:
    """A fast path that is written by hand, in `simd/FAMILY.h` and `simd/FAMILY.pxd`.

    Attributes
    ----------
    family : str
        The module.
    loops : str
        What names of the loops begin with, which end in the dtypes that they take.
    prepare, classify, classify_f32 : str
        Functions that prepare parameters and tell which results are exceptional; empty: none.
    scalar : str
        As `loops`, in `simd/scalar.pxd`, where there are no vectors; empty: none.
    """

    family: str
    loops: str
    prepare: str = ""
    classify: str = ""
    classify_f32: str = ""
    scalar: str = ""


@dataclass(frozen=True, slots=True)
class StepForm:
    """A function over vectors of floats that a step of a program runs, and what becomes of its result.

    Attributes
    ----------
    function : str
        In `arithmetic.pxd`, or, without a module's name, in `simd/steps.pxd`.
    canonical : bool
        A result that is a NaN becomes the one NaN.  Half precision always does.
    unit : tuple of int
        Numbers of the node that must be 1 or -1, as nothing else is exact.
    scarce : str
        The step that takes over where floats have too few digits for results beside 0 of bfloat16.
    dtypes : tuple of str
        Of results.
    half : str
        What becomes of a result in half precision: it is ``round``ed and its NaNs become the one NaN; it is
        rounded and they ``keep`` their bits; or it is one of the operands, or their like (``same``).
    blind : bool
        Results do not tell NaNs of operands apart; those that become canonical never do.
    at_once : str
        The function where the node's prepared parameters say that rounding twice does not show.
    """

    function: str
    canonical: bool = False
    unit: tuple[int, ...] = ()
    scarce: str = ""
    dtypes: tuple[str, ...] = HALVES
    half: str = "round"
    blind: bool = False
    at_once: str = ""


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of programs on registers: for float32, and for results in half precision."""

    float32: StepForm
    half: StepForm | None = None


@dataclass(frozen=True, slots=True)
class OnnxBody:
    """What a kernel computes, in ONNX's operators: expressions of operands and parameters.

    Attributes
    ----------
    text : str
        Statements of Python's syntax, the last of which gives the result.  One operator stands for itself,
        anything else becomes a function.
    when : str
        A condition on parameters and `dtype`, the one that is computed in; empty: always.
    """

    text: str
    when: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """All there is to know about one kernel.

    Attributes
    ----------
    name : str
        Of the formula in `formulas.pxd` or `activations.pxd`.
    domain : {'point'}
    inputs, outputs : tuple of Operand
        In order.
    parameters : tuple of str
        Numbers of a node, in order: `p` of a formula.
    cost : float
        Nanoseconds that an element takes, in cache, of float32 operands, roughly.
    computed_in : {'double', 'real', 'number', 'num'}
        Of a formula: ``double``, every real result is rounded once from it; ``real``, float or double, for
        what float32 loses nothing of but by one rounding; ``number``, any, also whole numbers, in which it
        is exact; ``num``, double and vectors, as in `activations.pxd`.
    forms : tuple of str
        Further forms, by the endings of their names (`ENDINGS`).
    vectors, halves, by_hand : VectorForm, HalfForm, HandForm, optional
        Forms over vectors.
    steps : Steps, optional
        Steps of programs.
    keeps_bits : bool
        Bits of operands are passed on, those of signaling NaNs too.
    commutes : tuple of float, optional
        Parameters with which the two operands may change places.
    onnx : tuple of OnnxBody
        The first one whose condition holds counts.
    """

    name: str
    domain: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    parameters: tuple[str, ...]
    cost: float
    computed_in: str
    forms: tuple[str, ...] = ()
    vectors: VectorForm | None = None
    halves: HalfForm | None = None
    by_hand: HandForm | None = None
    steps: Steps | None = None
    keeps_bits: bool = False
    commutes: tuple[float, ...] | None = None
    onnx: tuple[OnnxBody, ...] = ()

    @property
    def masks(self) -> int:
        """How many of its operands choose among the others, which only move."""
        return sum(1 for one in self.inputs if one.role == "mask")


def operands(words: str) -> tuple[Operand, ...]:
    """Operands by their names, each with its role behind a colon where that is not ``element``.

    >>> operands("c:mask x")
    (Operand(name='c', role='mask'), Operand(name='x', role='element'))
    """
    return tuple([Operand(*word.split(":")) for word in words.split()])


def point(
    name: str,
    inputs: str,
    parameters: str = "",
    *,
    cost: float,
    computed_in: str,
    forms: str = "",
    onnx: str | Iterable[OnnxBody] = (),
    vectors: VectorForm | None = None,
    halves: HalfForm | None = None,
    by_hand: HandForm | None = None,
    steps: Steps | None = None,
    keeps_bits: bool = False,
    commutes: tuple[float, ...] | None = None,
) -> Record:
    """The record of a pointwise kernel; operands, parameters and forms are words.

    >>> point("neg", "x", cost=0.15, computed_in="number", onnx="Neg(x)").inputs
    (Operand(name='x', role='element'),)
    """
    return Record(
        name=name,
        domain="point",
        inputs=operands(inputs),
        outputs=operands("result"),
        parameters=tuple(parameters.split()),
        cost=cost,
        computed_in=computed_in,
        forms=tuple(forms.split()),
        vectors=vectors,
        halves=halves,
        by_hand=by_hand,
        steps=steps,
        keeps_bits=keeps_bits,
        commutes=commutes,
        onnx=(OnnxBody(onnx),) if isinstance(onnx, str) else tuple(onnx),
    )


# --- Steps of usual kinds ---------------------------------------------------------------------------


def rounded(name: str, *unit: int) -> Steps:
    """The function of half precision serves all dtypes: results are rounded, with numbers that are 1 or -1."""
    form = StepForm(f"arithmetic.{name}", canonical=True)
    return Steps(form, StepForm(f"arithmetic.{name}", canonical=True, unit=unit))


def rounded_to_odd(
    name: str, *unit: int, dtypes: tuple[str, ...] = HALVES, scarce: str = ""
) -> Steps:
    """Results of half precision are rounded to odd first, by a function of their own."""
    half = StepForm(f"{name}_to_odd", unit=unit, dtypes=dtypes, scarce=scarce)
    return Steps(StepForm(f"arithmetic.{name}", canonical=True), half)


def chosen(function: str, half: str = "same", blind: bool = False) -> Steps:
    """Results are operands, or numbers of the node, in all dtypes."""
    form = StepForm(function, half=half, blind=blind)
    return Steps(form, form)


def truth(name: str) -> Steps:
    """Results are truth values."""
    return Steps(StepForm(name, blind=True))
