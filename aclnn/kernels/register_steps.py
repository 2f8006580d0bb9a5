"""Which formulas are steps of programs on registers; the build makes a function of each.

A row names the function over vectors that a step runs, for float32 and for results in half precision.
"""

import runpy
from pathlib import Path
from typing import NamedTuple


class Form(NamedTuple):
    """A function over vectors of floats, and what becomes of its result.

    Attributes
    ----------
    function : str
        In `aclnn/kernels/arithmetic.pxd`, or, without a module's name, in `simd/steps.pxd`.
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
    dtypes: tuple[str, ...] = ("float16", "bfloat16")
    half: str = "round"
    blind: bool = False
    at_once: str = ""


class Row(NamedTuple):
    inputs: int
    float32: Form
    half: Form | None = None


def _arithmetic(name: str, inputs: int, unit: tuple[int, ...] = ()) -> Row:
    """The same function for all dtypes."""
    form = Form(f"arithmetic.{name}", canonical=True)
    return Row(inputs, form, form._replace(unit=unit))


def _choice(name: str, inputs: int, module: str = "arithmetic.", half: str = "same") -> Row:
    form = Form(f"{module}{name}", half=half)
    return Row(inputs, form, form)


def _truth(name: str, inputs: int) -> Row:
    return Row(inputs, Form(name, blind=True))


_F16 = ("float16",)

ROWS = {
    "add": _arithmetic("add", 2, unit=(0,)),
    "sub": _arithmetic("sub", 2, unit=(0,)),
    "rsub": _arithmetic("rsub", 2, unit=(0,)),
    "add_relu": _arithmetic("add_relu", 2, unit=(0,)),
    "mul": _arithmetic("mul", 2),
    "square": _arithmetic("square", 1),
    "squared_relu": _arithmetic("squared_relu", 1),
    "prelu": _arithmetic("prelu", 2),
    "sqrt": _arithmetic("sqrt", 1),
    "div": Row(2, Form("arithmetic.div", True), Form("div_to_odd", dtypes=_F16)),
    "divs": Row(1, Form("arithmetic.divs", True), Form("divs_to_odd", dtypes=_F16)),
    "reciprocal": Row(
        1, Form("arithmetic.reciprocal", True), Form("reciprocal_to_odd", dtypes=_F16)
    ),
    "adds": Row(1, Form("arithmetic.adds", True), Form("adds_to_odd", unit=(1,))),
    "subs": Row(1, Form("arithmetic.subs", True), Form("subs_to_odd", unit=(1,))),
    "rsubs": Row(1, Form("arithmetic.rsubs", True), Form("rsubs_to_odd", unit=(1,))),
    "muls": Row(1, Form("arithmetic.muls", True), Form("muls_to_odd", scarce="scarce_of_all")),
    "leaky_relu": Row(
        1,
        Form("leaky_relu", True),
        Form("leaky_relu_to_odd", scarce="scarce_of_one", at_once="leaky_relu_near"),
    ),
    "leaky_relu_backward": Row(
        2,
        Form("leaky_relu_backward"),
        Form(
            "leaky_relu_backward_to_odd",
            scarce="scarce_of_two",
            half="keep",
            at_once="leaky_relu_backward_near",
        ),
    ),
    "hardshrink": Row(1, *[Form("hardshrink", blind=True, half="same")] * 2),
    "hardshrink_backward": _choice("hardshrink_backward", 2, ""),
    "softshrink": Row(1, Form("arithmetic.softshrink", True)),
    "softshrink_backward": _choice("softshrink_backward", 2),
    "shrink": Row(1, Form("arithmetic.shrink", True)),
    "hardsigmoid_backward": Row(2, Form("arithmetic.hardsigmoid_backward", True)),
    "prelu_backward": Row(3, *[Form("prelu_backward", half="keep")] * 2),
    "floor": _choice("floor", 1),
    "ceil": _choice("ceil", 1, ""),
    "neg": _choice("neg", 1, ""),
    "abs": _choice("abs", 1, ""),
    "maximum": _choice("maximum", 2),
    "minimum": _choice("minimum", 2),
    "clamp": _choice("clamp", 1, half="keep"),
    "relu": _choice("relu", 1),
    "relu_backward": _choice("relu_backward", 2),
    "threshold": _choice("threshold", 1, half="keep"),
    "threshold_backward": _choice("threshold_backward", 2),
    "hardtanh_backward": _choice("hardtanh_backward", 2),
    "heaviside": _choice("heaviside", 2, ""),
    "where": _choice("where", 3, ""),
    "fill": Row(0, Form("filled"), Form("filled")),
    "eq": _truth("eq", 2),
    "ne": _truth("ne", 2),
    "lt": _truth("lt", 2),
    "le": _truth("le", 2),
    "gt": _truth("gt", 2),
    "ge": _truth("ge", 2),
    "logical_and": _truth("logical_and", 2),
    "logical_or": _truth("logical_or", 2),
    "logical_xor": _truth("logical_xor", 2),
    "logical_not": _truth("logical_not", 1),
}

# Casts: floats as they are, or rounded.
CASTS = {
    "float32": Form("same"),
    "float16": Form("same", dtypes=_F16),
    "bfloat16": Form("same", dtypes=("bfloat16",)),
}

# Short formulas over pairs of vectors (`vector_forms.py`); their inputs.
FORMS = runpy.run_path(str(Path(__file__).with_name("vector_forms.py")))["FORMS"]
PAIRS = {name: (2 if "backward" in name else 1) for name, form in FORMS.items() if form.direct_f32}

REGISTERS = "abcdefgh"
SHORT = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}
SIGNATURE = (
    ", ".join(f"vecf {r}" for r in REGISTERS) + ", const step_t *step, frame_t *frame, ptrdiff_t i"
)
ARGUMENTS = ", ".join(REGISTERS) + ", step, frame, i"
AT_ONCE = {"to_bf16_raw": "to_bf16_at_once"}

RUNNERS = {0: "run_of_one", 1: "run_of_one", 2: "run_of_two", 3: "run_of_three"}


def _function(name: str, inputs: int, form: Form, finish: str) -> str:
    """A step in Cython."""
    run = RUNNERS[inputs]
    lines = [f"cdef void {name}({SIGNATURE}) noexcept nogil:"]
    if form.scarce and finish.startswith("to_bf16"):
        lines += [
            f"    if any_scarce({ARGUMENTS}):",
            f"        {form.scarce}({ARGUMENTS})",
            "        return",
        ]
    if form.at_once and finish.startswith("to_"):
        lines += [
            "    if is_at_once(step, frame):",
            f"        {run}({form.at_once}, {AT_ONCE.get(finish, finish)}, {ARGUMENTS})",
            "        return",
        ]
    lines.append(f"    {run}({form.function}, {finish}, {ARGUMENTS})")
    return "\n".join(lines)


class Step(NamedTuple):
    """One of the functions that are made.

    `dtype` is that of the result, `finish` what becomes of it, `raw` what becomes of it where nothing
    tells NaNs apart, or the same.
    """

    formula: str
    dtype: str
    inputs: int
    form: Form
    finish: str
    raw: str
    blind: bool


def steps() -> list[Step]:
    found = []
    for formula, row in ROWS.items():
        finish = "vf_canonical" if row.float32.canonical else "as_it_is"
        blind = row.float32.blind or row.float32.canonical
        found.append(Step(formula, "float32", row.inputs, row.float32, finish, "as_it_is", blind))
        if row.half is None:
            continue
        for dtype in row.half.dtypes:
            rounded = f"to_{SHORT[dtype]}"
            finish = {"round": rounded, "keep": f"{rounded}_raw", "same": "as_it_is"}[row.half.half]
            raw = finish if finish == "as_it_is" else f"{rounded}_raw"
            blind = row.half.blind or finish == rounded
            found.append(Step(formula, dtype, row.inputs, row.half, finish, raw, blind))
    for dtype, form in CASTS.items():
        finish = "as_it_is" if dtype == "float32" else f"to_{SHORT[dtype]}"
        found.append(Step("cast", dtype, 1, form, finish, finish, finish != "as_it_is"))
    return found


def _pair_step(formula: str, inputs: int) -> str:
    """A step that computes in pairs of vectors; what those leave open, the node's kernel decides."""
    second, given = (
        (", vecf b", "pair_exactly(a), pair_exactly(b)") if inputs == 2 else ("", "pair_exactly(a)")
    )
    zeros = "r.low" if FORMS[formula].has_zeros else "a"
    lines = [
        f"cdef inline vecf {formula}_pair(vecf a{second}, const double *p, track_t *track) noexcept nogil:",
        f"    cdef pair_t r = activations.{formula}[pair_t]({given}, p)",
        f"    return tracked(track, pair_rounded(r, vf_is_nonzero({zeros})))",
        "",
        "",
        f"cdef void {formula}_pair_step({SIGNATURE}) noexcept nogil:",
        "    cdef const double *p = numbers_of(step, frame)",
        "    cdef const step_t *next = step + 1",
        "    cdef track_t track = track_init(0)",
        "    cdef vecf last",
    ]
    if inputs == 2:
        lines.append("    cdef const char *y = operand_of(step, frame, i)")
    lines.append("    spread(a, b, c, d, e, f, g, h, frame.given)")
    for k, r in enumerate(REGISTERS):
        other = f", at(y, {k})" if inputs == 2 else ""
        lines.append(f"    {r} = vf_complete({formula}_pair({r}{other}, p, &track))")
        lines.append(
            "    track_finite(&track, last, track.last)" if k % 2 else "    last = track.last"
        )
    lines += [
        "    if is_range_exceptional(&track, FLOAT_DOMAIN):",
        f"        step.open({ARGUMENTS})",
        "        return",
        f"    next.run({', '.join(REGISTERS)}, next, frame, i)",
    ]
    return "\n".join(lines)


def source() -> str:
    """Cython's text of all steps, and the lines that enter them into the table."""
    text, table = [], []
    for formula, inputs in PAIRS.items():
        text.append(_pair_step(formula, inputs))
        table.append(f'add_pair_step("{formula}", {formula}_pair_step)')
    for step in steps():
        name = f"{step.formula}_{SHORT[step.dtype]}_step"
        text.append(_function(name, step.inputs, step.form, step.finish))
        raw = name
        if step.raw != step.finish:
            raw = f"{name}_raw"
            text.append(_function(raw, step.inputs, step.form, step.raw))
        prepared = bool(step.form.at_once) and step.dtype != "float32"
        facts = f"{step.form.unit!r}, {step.blind}, {prepared}, {step.finish.startswith('to_')}"
        table.append(f'add_step("{step.formula}", "{step.dtype}", {facts}, {name}, {raw})')
    return "\n\n\n".join([*text, "\n".join(table)]) + "\n"
