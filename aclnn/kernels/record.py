"""Records of kernels: all that the build, the engine and everything around it know of each.

A `Record` stands for one kernel: its operands and parameters, the forms that its body has, what it costs, its
error, and what it is in ONNX.  Families of records are next to the bodies in this folder, as a tuple `RECORDS`
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
        Of pointwise kernels ``element``; ``truth``, a truth value, as which a result is
        0 or 1; ``mask``, one that chooses among the
        other operands, which only move.  Of row-wise kernels ``input`` and ``out`` have the shape of the
        rows, ``column`` one element for each column, ``given`` and ``result`` one for each row.  Of opaque
        kernels ``whole``, or ``index``: places along an axis.
    slot : int
        Of row-wise kernels: where bodies find it, among those of its role.
    optional : bool
        Whether it may be absent.
    statistic : bool
        A result of its own accuracy: it is rounded once, to its own dtype.
    needed_by : str
        An optional result: the operand is there where that is wanted.  Empty: whatever is.
    several : bool
        Of an opaque kernel: there may be more than one in its place.
    """

    name: str
    role: str = "element"
    slot: int = 0
    optional: bool = False
    statistic: bool = False
    needed_by: str = ""
    several: bool = False


@dataclass(frozen=True, slots=True)
class VectorForm:
    """A formula over vectors and pairs of vectors, in `activations.pxd`; numbers are C expressions of `p`.

    Attributes
    ----------
    rel_error, rel_error_f16 : float
        Bounds of the relative error of half precision before it is rounded, for the rounding test; at most 9.5e-7.
        `tools/bounds.py` computes them. That of float16, whose exponents are smaller, is the same where it is 0.
    root : str
        Where results are so small, near a root, that too few digits are left; of the last input.
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
        Float32 is loaded, computed and stored vector by vector: for short ones.
    in_steps : bool
        So it is in programs, where registers suffice for that; else these run its loop on a block.
    """

    rel_error: float = 2.38e-7
    rel_error_f16: float = 0.0
    root: str = ""
    gap: str = "0.006"
    decay: str = ""
    half_in_pairs: bool | None = None
    has_zeros: bool = False
    direct: bool = False
    direct_f32: bool = False
    in_steps: bool = True

    def bound(self, dtype: str) -> float:
        """The bound of results of a dtype."""
        return self.rel_error_f16 or self.rel_error if dtype == "float16" else self.rel_error

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
    float32 : bool
        It serves float32 too, of which it chooses, compares or rounds once.
    """

    over: str = "vecf"
    inexact: str = ""
    scant: bool = False
    float32: bool = False


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
        The step that takes over where floats have too few digits for results near 0 of bfloat16.
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
    """The steps of programs on registers: for float32, and for results in half precision.

    `spills` names the instruction sets whose registers do not hold what they need besides the eight vectors that
    they get; ``v4`` means those for bfloat16 alone.
    """

    float32: StepForm
    half: StepForm | None = None
    spills: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OnnxBody:
    """Body of a kernel in ONNX's operators: expressions of operands and parameters.

    Attributes
    ----------
    text : str
        Statements of Python's syntax, the last of which gives the result; or assignments to the results' names.
        One operator stands for itself, anything else becomes a function.  Besides operands and parameters there
        are `axis`, `axes`, which has it alone, `diagonal` and `ignored`.
    when : str
        A condition on parameters; `dtype`, the one that is computed in; `present`, the optional operands and
        results that there are; `rank`, of the result; `given`, how many parameters are.  Empty: always.
    takes : str
        The operands, where these are not all; the body counts where the others are absent.
    flat : tuple of str
        Operands that are taken along one dimension.
    """

    text: str
    when: str = ""
    takes: str = ""
    flat: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """The struct that an opaque kernel's function gets; kernels may share one.

    Attributes
    ----------
    name : str
        Of the struct.
    fields : str
        Declarations in Cython, one a line.
    """

    name: str
    fields: str


@dataclass(frozen=True, slots=True)
class Record:
    """All there is to know about one kernel.

    Attributes
    ----------
    name : str
        Of a pointwise kernel: of the formula in `formulas.pxd` or `activations.pxd`.
    domain : {'point', 'row', 'opaque'}
        Elements by themselves; whole rows; operands as a whole.
    body : str
        The `.pxd` module with its body.  That of a row-wise kernel has ``NAME_passes``, that of an opaque one
        ``NAME``, a `call_kernel`.
    inputs, outputs : tuple of Operand
        In order.
    parameters : tuple of str
        Numbers of a node, in order: `p` of a formula.
    cost : float
        Nanoseconds that an element takes, in cache, of float32 operands, roughly.
    moves : bool
        Elements only move, whatever their dtype; else they are computed with.
    reference : str
        Of a row-wise kernel: its reference in the tests, where that has another name than the kernel.
    sums_integers : bool
        Of a row-wise kernel: it takes integers too, and sums them.
    widened : bool
        Of a row-wise kernel: operands that become double as they are read give the bits of a call on their
        own dtype.
    chunks : str
        Of an opaque kernel: into as many parts its work may be cut.  An expression of `arguments`; with the
        common state ``lines`` along the axis, ``rows`` of the last dimension, or ``outer``: elements of the
        dimensions up to the axis.
    arguments : str
        Of an opaque kernel: what is read of a node, as statements of Python's syntax.  A name alone is the attribute of
        that name.  In expressions there are `attr`, `inputs` and `outputs`, which are dtypes, operands by
        their names, which are shapes, `views`, which are their values in the graph, and `steps`, those on results;
        an operand after one that may be absent has no name.
    state : State, optional
        Of an opaque kernel: fields that have the name of an argument get its value, those of an operand its
        place, or -1 where it is absent, all others 0.  Expressions see them as ``state.name``.
    function : str
        Of an opaque kernel with a state: the `call_kernel`, where it has another name than the kernel.
    per_set : bool
        Of an opaque kernel with a state: its module has loops for each instruction set, functions that load and store
        elements too.
    parts : str
        What the kernel keeps in scratch, as ``TYPE NAME[COUNT]``, one a line.  Counts are expressions of fields
        and arguments.
    work : str
        Nanoseconds of a call, where these follow from its sizes: an expression of arguments.
    check : tuple of (str, str)
        A `call_kernel` that comes before all writing, and the places of operands that it looks at; empty: none.
    factory : str
        Of an opaque kernel whose state is an object: the family in `isa` and the function that makes it of dtypes and
        `arguments`, as ``family:function``.
    loops : str
        Of an opaque kernel: what gives loops over its lines, in the module of row-wise kernels.
    scratch : bool
        Of an opaque kernel: it takes memory from the workspace besides its operands.
    failures : tuple of (int or str, str)
        Of an opaque kernel: what is said where it fails with a code; `detail` is the kernel's.  Other names in
        braces are arguments; with the common state `first` and `last`, the least and the largest index.
    computed_in : {'double', 'real', 'number', 'num'}
        Of a formula: ``double``, every real result is rounded once from it; ``real``, float or double, for
        what float32 loses nothing of but by one rounding; ``number``, any, also integers, in which it
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
    expression : str
        As one expression of operands and parameters, for the libraries that benchmarks compare with: of
        `where`, `exp`, `erf` and arithmetic.  Kernels that have one make up the default matrix.
    """

    name: str
    domain: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    parameters: tuple[str, ...]
    cost: float
    body: str
    computed_in: str = "double"
    moves: bool = False
    reference: str = ""
    sums_integers: bool = False
    widened: bool = False
    chunks: str = ""
    arguments: str = ""
    state: State | None = None
    function: str = ""
    per_set: bool = False
    parts: str = ""
    work: str = ""
    check: tuple[str, str] | tuple[()] = ()
    factory: str = ""
    loops: str = ""
    scratch: bool = False
    failures: tuple[tuple[int | str, str], ...] = ()
    forms: tuple[str, ...] = ()
    vectors: VectorForm | None = None
    halves: HalfForm | None = None
    by_hand: HandForm | None = None
    steps: Steps | None = None
    keeps_bits: bool = False
    commutes: tuple[float, ...] | None = None
    onnx: tuple[OnnxBody, ...] = ()
    expression: str = ""

    @property
    def masks(self) -> int:
        """Number of operands that choose among the others, which only move."""
        return sum(1 for one in self.inputs if one.role == "mask")


def operands(words: str, usual: str = "element") -> tuple[Operand, ...]:
    """Operands by their names, each with its role after a colon where that is not the usual one.

    One that may be absent has a question mark, one that there may be several of an asterisk.

    >>> [one.role for one in operands("c:mask x")]
    ['mask', 'element']
    >>> [(one.name, one.optional, one.several) for one in operands("x* bias?", "whole")]
    [('x', False, True), ('bias', True, False)]
    """
    pairs = [word.partition(":") for word in words.split()]
    return tuple(
        [
            Operand(
                name.rstrip("?*"),
                role or usual,
                optional=name.endswith("?"),
                several=name.endswith("*"),
            )
            for name, _, role in pairs
        ]
    )


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
    expression: str = "",
    result: str = "result",
) -> Record:
    """The record of a pointwise kernel; operands, parameters, forms and the result are words.

    >>> point("neg", "x", cost=0.15, computed_in="number", onnx="Neg(x)").onnx
    (OnnxBody(text='Neg(x)', when='', takes='', flat=()),)
    """
    return Record(
        name=name,
        domain="point",
        inputs=operands(inputs),
        outputs=operands(result),
        parameters=tuple(parameters.split()),
        cost=cost,
        body="activations" if computed_in == "num" else "formulas",
        computed_in=computed_in,
        forms=tuple(forms.split()),
        vectors=vectors,
        halves=halves,
        by_hand=by_hand,
        steps=steps,
        keeps_bits=keeps_bits,
        commutes=commutes,
        onnx=_bodies(onnx),
        expression=expression,
    )


def _bodies(onnx: str | Iterable[OnnxBody]) -> tuple[OnnxBody, ...]:
    return (OnnxBody(onnx),) if isinstance(onnx, str) else tuple(onnx)


def row(
    name: str,
    inputs: Iterable[Operand],
    outputs: Iterable[Operand],
    parameters: str = "",
    *,
    body: str,
    cost: float,
    onnx: str | Iterable[OnnxBody],
    reference: str = "",
    sums_integers: bool = False,
    widened: bool = False,
) -> Record:
    """The record of a row-wise kernel."""
    return Record(
        name=name,
        domain="row",
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        parameters=tuple(parameters.split()),
        cost=cost,
        body=body,
        reference=reference or name,
        sums_integers=sums_integers,
        widened=widened,
        onnx=_bodies(onnx),
    )


def opaque(
    name: str,
    inputs: str,
    parameters: str = "",
    *,
    outputs: str = "result",
    body: str,
    onnx: str | Iterable[OnnxBody],
    cost: float = 0.0,
    moves: bool = False,
    chunks: str = "",
    arguments: str = "",
    state: State | None = None,
    function: str = "",
    per_set: bool = False,
    parts: str = "",
    work: str = "",
    check: tuple[str, str] | tuple[()] = (),
    factory: str = "",
    loops: str = "",
    scratch: bool = False,
    failures: Iterable[tuple[int | str, str]] = (),
) -> Record:
    """The record of an opaque kernel; operands and parameters are words.

    `cost` is 0 where the work follows from sizes.
    """
    return Record(
        name=name,
        domain="opaque",
        inputs=operands(inputs, "whole"),
        outputs=operands(outputs, "whole"),
        parameters=tuple(parameters.split()),
        cost=cost,
        body=body,
        moves=moves,
        chunks=chunks,
        arguments=arguments,
        state=state,
        function=function or name,
        per_set=per_set,
        parts=parts,
        work=work,
        check=check,
        factory=factory,
        loops=loops,
        scratch=scratch or bool(parts),
        failures=tuple(failures),
        onnx=_bodies(onnx),
    )


# --- Steps of usual kinds ---------------------------------------------------------------------------


def rounded(name: str, *unit: int, spills: tuple[str, ...] = ()) -> Steps:
    """The function of half precision serves all dtypes: results are rounded, with numbers that are 1 or -1."""
    form = StepForm(f"arithmetic.{name}", canonical=True)
    return Steps(form, StepForm(f"arithmetic.{name}", canonical=True, unit=unit), spills)


def rounded_to_odd(
    name: str,
    *unit: int,
    dtypes: tuple[str, ...] = HALVES,
    scarce: str = "",
    spills: tuple[str, ...] = ("v3",),
) -> Steps:
    """Results of half precision are rounded to odd first, by a function of their own."""
    half = StepForm(f"{name}_to_odd", unit=unit, dtypes=dtypes, scarce=scarce)
    return Steps(StepForm(f"arithmetic.{name}", canonical=True), half, spills)


def chosen(
    function: str, half: str = "same", blind: bool = False, spills: tuple[str, ...] = ()
) -> Steps:
    """Results are operands, or numbers of the node, in all dtypes."""
    form = StepForm(function, half=half, blind=blind)
    return Steps(form, form, spills)


def truth(name: str) -> Steps:
    """Results are truth values."""
    return Steps(StepForm(f"arithmetic.{name}", blind=True))
