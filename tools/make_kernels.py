"""Make loops, steps and tables of kernels from their records (`aclnn/kernels/`).

    python tools/make_kernels.py build/cython

The build runs it before it translates the kernel modules, each of which includes one of the files.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent.parent / "aclnn" / "kernels"
# What a formula computes in, and the types of the loops over it.
LOOPS_IN = {
    "num": ("double",),
    "number": ("float", "double", "int64_t"),
    "real": ("float", "double"),
    "double": ("double",),
}
MOST_INPUTS = 4
NAMES = "abcd"  # of a formula's inputs
# The elements that opaque kernels read and write, by what they compute in.
SINGLE = ("float32", "float16", "bfloat16")
WHOLE = ("int8", "uint8", "int16", "int32", "int64", "bool")
READ_AS = {"float32": SINGLE, "float64": (*SINGLE, "float64"), "int64": WHOLE}
WRITTEN_AS = READ_AS | {"float64": (*SINGLE, "float64", *WHOLE[:-1])}
# In modules with loops for each instruction set.
READ_BY_SETS = {"float32": (*SINGLE, "int8", "int32"), "float64": (*SINGLE, "float64")}
WRITTEN_BY_SETS = {"float32": SINGLE, "float64": (*SINGLE, "float64")}
TAB = "    "
ENTRY = "add("  # the call that enters a fast path into the table


def load_records(folder: Path = FOLDER) -> Mapping[str, Any]:
    """The records, without the package around them, which may not have been built."""
    spec = importlib.util.spec_from_file_location(
        "kernels", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["kernels"] = package
    spec.loader.exec_module(package)
    return package.records()  # type: ignore[no-any-return]


def indented(lines: Iterable[str], by: int = 1) -> list[str]:
    return [TAB * by + line for line in lines]


def function(heading: str, body: Iterable[str]) -> str:
    """A function in Cython, without its colon, and the two lines behind it."""
    return "\n".join([f"{heading} noexcept nogil:", *indented(body)]) + "\n\n\n"


# --- Plain loops ----------------------------------------------------------------------------------


class Loop(NamedTuple):
    """A loop over one form of a formula, in one type."""

    function: str  # of `formulas` or `activations`
    type: str
    generic: bool = False  # the function is written for several types
    canonical: bool = False  # its NaNs become the one NaN
    numbers: str = "double"  # the type of `p`
    settled_by: str = ""  # the formula in double that decides where this one is in doubt

    @property
    def name(self) -> str:
        return f"{self.function}_in_{self.type}"


def own_loops(record: Any) -> dict[str, Loop]:
    """Those of the formula itself, by type."""
    types = LOOPS_IN[record.computed_in]
    over_num = record.computed_in == "num"
    numbers = "kernel_number" if record.computed_in == "number" else "double"
    return {
        one: Loop(record.name, one, len(types) > 1 or over_num, over_num, numbers) for one in types
    }


def further_loops(record: Any, endings: Mapping[str, str]) -> dict[str, Loop]:
    """Those of further forms, by their endings."""
    return {
        ending: Loop(
            f"{record.name}_{ending}",
            endings[ending],
            numbers="kernel_number" if ending == "whole" else "double",
            settled_by=record.name
            if record.computed_in == "double" and endings[ending] == "float"
            else "",
        )
        for ending in record.forms
    }


def plain_loop(record: Any, loop: Loop) -> str:
    type = loop.type if loop.type == "complex_t" else f"unaligned_{loop.type.removesuffix('_t')}"
    inputs = NAMES[: len(record.inputs)]
    used = len(record.parameters) * (2 if loop.type == "complex_t" else 1)
    body = [
        *(f"cdef const {type} *{x} = <const {type} *>inputs[{k}]" for k, x in enumerate(inputs)),
        f"cdef {type} *out = <{type} *>results",
        f"cdef const {loop.numbers} *p = <const {loop.numbers} *>params",
        "cdef ptrdiff_t i",
        *own_numbers(used, "p", loop.numbers),
    ]
    module = "activations" if record.computed_in == "num" else "formulas"
    specialised = f"[{loop.type}]" if loop.generic else ""
    given = "".join(f"<{loop.type}>{x}[i], " for x in inputs) + ("own" if used else "p")
    call = f"{module}.{loop.function}{specialised}({given})"
    if loop.canonical:
        call = f"canonical[double]({call})"
    body += settled_loop(loop, call, inputs) if loop.settled_by else [
        "for i in range(n):", f"    out[i] = {call}",
    ]  # fmt: skip
    parameters = "const void *const *inputs, void *results, ptrdiff_t n, const void *params"
    return function(f"cdef void {loop.name}({parameters})", body)


def own_numbers(count: int, source: str, type: str = "double") -> list[str]:
    """A copy of the node's numbers, which no result lies over."""
    if not count:
        return []
    return [f"cdef {type} own[{count}]", f"for i in range({count}):", f"    own[i] = {source}[i]"]


def settled_loop(loop: Loop, call: str, inputs: str) -> list[str]:
    given = "".join(f"<double>{x}[i], " for x in inputs)
    rounded = "f32_to_odd" if loop.function.endswith("_half") else "<float>"
    settled = f"{rounded}(formulas.{loop.settled_by}({given}p))"
    return [
        "cdef uint32_t doubts",
        "cdef ptrdiff_t begin = 0, end",
        "while begin < n:",
        "    end, doubts = min(begin + 256, n), 0",
        "    for i in range(begin, end):",
        f"        out[i] = {call}",
        "        doubts |= is_in_doubt(<float>out[i])",
        "    if doubts:",
        "        for i in range(begin, end):",
        "            if is_in_doubt(<float>out[i]):",
        f"                out[i] = {settled}",
        "    begin = end",
    ]


def table_line(record: Any, own: Mapping[str, Loop], further: Mapping[str, Loop]) -> str:
    """The call that enters a formula into the table: loops by what they serve, or NULL."""

    def name(*loops: Loop | None) -> str:
        return next((loop.name for loop in loops if loop), "NULL")

    exact = record.computed_in == "number"
    loops = (
        name(own.get("float"), further.get("f32")),
        name(own["float"] if exact else further.get("half")),
        name(own["double"]),
        name(further.get("f64"), own["double"]),
        name(own.get("int64_t"), further.get("whole")),
        name(further.get("complex")),
    )
    return f'add("{record.name}", {len(record.inputs)}, {exact}, {", ".join(loops)})'


def plain_loops() -> list[Loop]:
    """Those of all formulas."""
    records = [one for one in load_records().values() if one.domain == "point"]
    endings = sys.modules["kernels.record"].ENDINGS
    found = [(own_loops(one), further_loops(one, endings)) for one in records]
    return [loop for pair in found for loops in pair for loop in loops.values()]


def entered(table: Iterable[str]) -> str:
    """A function that enters the loops of the instruction set in use into the module's table."""
    lines = "".join(f"{TAB}{line}\n" for line in table)
    return f"\n\ncdef int enter() except -1:\n{lines}{TAB}return 0\n"


def formula_loops(records: Iterable[Any], endings: Mapping[str, str]) -> str:
    text, table = [], []
    for record in records:
        own, further = own_loops(record), further_loops(record, endings)
        text += [plain_loop(record, loop) for loop in (*own.values(), *further.values())]
        table.append(table_line(record, own, further))
    return "".join(text) + entered(table)


# --- Loops over vectors ---------------------------------------------------------------------------

SIMD_IMPORTS = """\
cimport aclnn.kernels.activations as activations
cimport aclnn.kernels.arithmetic as arithmetic
from aclnn.kernels.numbers cimport pair_t
from aclnn.kernels.simd.convert cimport store_f32
from aclnn.kernels.simd.exact cimport (
    CHOICE_DOMAIN, EXACT_DOMAIN, FLOAT_DOMAIN, ONCE_ROUNDED_DOMAIN, half_domain, in_range_domain,
    is_short, tracked, tracked_where,
)
from aclnn.kernels.simd.variants cimport (
    lanes_beyond, lanes_within, pair_exactly, pair_rounded, prefetch_from, unusual_lanes,
    vf_is_nonzero,
)
from aclnn.kernels.simd.loop_args cimport BF16, F16, F32, params_t
from aclnn.kernels.simd.loops cimport run, run_lines, run_vectors
from aclnn.kernels.simd.track cimport track_half_max, track_t
from aclnn.kernels.simd.vector cimport LANES, mask_t, vecf, veci, vf_canonical, vf_load, vi_load

"""
FORM_PARAMETERS = (
    "const char *a, const char *b, char *out, ptrdiff_t vectors, const double *p, uint16_t *hard, "
    "bint stream, ptrdiff_t ahead"
)
VECTOR_PARAMETERS = "const params_t *params, vecf a, vecf b, track_t *track"
LOOPS = ("f32", "f16", "bf16", "to_f16", "to_bf16")
SHORT = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
DTYPES = {"f16": "float16", "to_f16": "float16", "bf16": "bfloat16", "to_bf16": "bfloat16"}


def as_pairs(record: Any, x: str, y: str) -> str:
    return f"pair_exactly({x})" + (f", pair_exactly({y})" if len(record.inputs) == 2 else "")


def pair_body(record: Any, numbers: str) -> list[str]:
    """A result in a pair of vectors, rounded and tracked: also one of 0 that may have vanished."""
    some, tracked = "a", "tracked_where(track, pair_rounded(r, some), some)"
    if record.vectors.has_zeros:
        some, tracked = "r.low", "tracked(track, pair_rounded(r, some))"
    given = as_pairs(record, "a", "b")
    return [
        f"cdef pair_t r = activations.{record.name}[pair_t]({given}, {numbers})",
        f"cdef mask_t some = vf_is_nonzero({some})",
        f"return {tracked}",
    ]


def open_lanes(form: Any, last: str) -> str:
    """The lanes of a vector whose results are computed as doubles."""
    found = ["unusual_lanes(r, some)"]
    if form.root:
        found.append(f"lanes_within({last}, root, gap)")
    if form.decay:
        found.append(f"lanes_beyond({last}, rate)")
    return " | ".join(found)


def form_loop(record: Any, number: str) -> str:
    """A loop over whole vectors of floats, in vectors or in pairs of them."""
    form, two, used = record.vectors, len(record.inputs) == 2, len(record.parameters)
    body = ["cdef ptrdiff_t i", "cdef vecf x, r"]
    body += ["cdef pair_t pair"] if number == "pair_t" else []
    body += ["cdef vecf y"] if two else []
    body += [*own_numbers(used, "p"), "p = own"] if used else []
    body.append("cdef mask_t some")
    if form.root:
        body.append(f"cdef float root = <float>({form.root}), gap = <float>({form.gap})")
    if form.decay:
        body.append(f"cdef float rate = <float>({form.decay})")
    loop = ["if ahead:", "    prefetch_from(a + i * LANES * 4, ahead)"]
    loop += ["    prefetch_from(b + i * LANES * 4, ahead)"] if two else []
    loop.append("x = vf_load(a + i * LANES * 4)")
    loop += ["y = vf_load(b + i * LANES * 4)"] if two else []
    loop += [] if form.has_zeros else ["some = vf_is_nonzero(x)"]
    if number == "vecf":
        loop.append(f"r = activations.{record.name}[vecf](x, {'y, ' if two else ''}p)")
    else:
        some = "vf_is_nonzero(pair.low)" if form.has_zeros else "some"
        loop.append(f"pair = activations.{record.name}[pair_t]({as_pairs(record, 'x', 'y')}, p)")
        loop.append(f"r = pair_rounded(pair, {some})")
    loop += ["some = vf_is_nonzero(r)"] if form.has_zeros else []
    loop.append(f"hard[i] = <uint16_t>({open_lanes(form, 'y' if two else 'x')})")
    loop.append("store_f32(out + i * LANES * 4, r, stream)")
    heading = f"cdef void {record.name}_in_{number}({FORM_PARAMETERS})"
    return function(heading, [*body, "for i in range(vectors):", *indented(loop)])


def path_loop(name: str, body: Iterable[str]) -> str:
    return function(f"cdef int {name}(const loop_args *args)", body)


def with_own_numbers(record: Any, body: Iterable[str]) -> list[str]:
    """Statements with a copy of the arguments, `local`, and of the numbers, `own`."""
    used = range(len(record.parameters))
    return [
        "cdef loop_args local = args[0]",
        "cdef params_t own  # which no result lies over",
        *(f"own.p[{k}] = args.params.p[{k}]" for k in used),
        "local.params = &own",
        *body,
    ]


def float32_path(record: Any) -> str:
    form, name = record.vectors, record.name
    if not form.direct_f32:
        return path_loop(f"{name}_form_f32", [f"return f32_by_form({name}_in_pair_t, args)"])
    pair = function(
        f"cdef inline vecf {name}_pair({VECTOR_PARAMETERS})", pair_body(record, "params.p")
    )
    run = f"return run_vectors({name}_pair, F32, F32, FLOAT_DOMAIN, local)"
    return pair + path_loop(f"{name}_form_f32", with_own_numbers(record, [run]))


def direct_paths(record: Any) -> Iterator[str]:
    """Half precision vector by vector."""
    form, name = record.vectors, record.name
    second = "b, " if len(record.inputs) == 2 else ""
    yield function(
        f"cdef inline vecf {name}_vec({VECTOR_PARAMETERS})",
        [f"return activations.{name}[vecf](a, {second}params.p)"],
    )
    yield function(
        f"cdef inline vecf {name}_vec_tracked({VECTOR_PARAMETERS})",
        [f"return tracked(track, {name}_vec(params, a, b, track))"],
    )
    for type in ("f16", "bf16"):
        vec, domain = f"{name}_vec", "in_range_domain"
        if type == "bf16" or form.decay:
            vec, domain = f"{name}_vec_tracked", "half_domain"
        kind = type.upper()
        run = f"return run({vec}, {kind}, {kind}, {domain}({form.bound(DTYPES[type])}), &local)"
        yield path_loop(f"{name}_form_{type}", with_own_numbers(record, [run]))


def exact_paths(record: Any) -> Iterator[str]:
    """Half precision that floats round as they should."""
    form, name = record.halves, record.name
    given = f"a, {'b, ' if len(record.inputs) == 2 else ''}params.p"
    call = f"arithmetic.{name}({given})"
    # Products and quotients of float16 are never too small for floats; with numbers of the node they may be.
    scant = {"bf16": form.scant, "f16": form.scant and bool(record.parameters)}
    vectors = {
        f"{name}_exact_vec": call,
        f"{name}_scant_vec": f"tracked(track, {call})",
        f"{name}_float_vec": f"vf_canonical({call})" if record.computed_in == "real" else call,
    }
    for vec, result in vectors.items():
        yield function(f"cdef inline vecf {vec}({VECTOR_PARAMETERS})", [f"return {result}"])
    if form.float32:
        run = f"return run_vectors({name}_float_vec, F32, F32, CHOICE_DOMAIN, local)"
        yield path_loop(f"{name}_exact_f32", with_own_numbers(record, [run]))
    for type in ("f16", "bf16"):
        kind = type.upper()
        vec = f"{name}_{'scant' if scant[type] else 'exact'}_vec"
        run = f"return run({vec}, {kind}, {kind}, {{}}, &local)"
        body = (
            [f"if {form.inexact}:", TAB + run.format("ONCE_ROUNDED_DOMAIN")] if form.inexact else []
        )
        body.append(run.format("EXACT_DOMAIN"))
        yield path_loop(f"{name}_exact_{type}", with_own_numbers(record, body))


def bit_paths(record: Any) -> Iterator[str]:
    """Half precision by its bits."""
    name = record.name
    yield function(
        f"cdef inline veci {name}_line(const void *own, const char *a, const char *b, track_t *track)",
        [
            f"cdef veci r = arithmetic.{name}(vi_load(a), NULL)",
            "track_half_max(track, r)",
            "return r",
        ],
    )
    for type in ("f16", "bf16"):
        body = [f"return run_lines({name}_line, {type.upper()}, args[0], NULL)"]
        yield path_loop(f"{name}_exact_{type}", body)


def path(name: str, loops: Iterable[str], prepare: str, classify: str, classify_f32: str) -> str:
    """The call that enters a fast path into the table."""
    given = [*loops, *(one or "NULL" for one in (prepare, classify, classify_f32))]
    return f'{ENTRY}"{name}", simd_path_t({", ".join(given)}))'


def vector_paths(record: Any) -> Iterator[str]:
    """The fast path of a record that has forms over vectors."""
    name, form, exact = record.name, record.vectors, record.halves
    if exact:
        yield from bit_paths(record) if exact.over == "veci" else exact_paths(record)
    loops = dict.fromkeys(LOOPS, "NULL") | {
        type: f"{name}_exact_{type}"
        for type in ("f16", "bf16", "f32")
        if exact and (type != "f32" or exact.float32)
    }
    if form:
        half_in = "pair_t" if form.in_pairs else "vecf"
        for number in dict.fromkeys(("pair_t", half_in)):
            yield form_loop(record, number)
        yield float32_path(record)
        loops["f32"] = f"{name}_form_f32"
        if form.direct and not exact:
            yield from direct_paths(record)
        chunked = [] if form.direct or exact else ["f16", "bf16"]
        for type in (*chunked, "to_f16", "to_bf16"):
            call = f"{type}_by_form({name}_in_{half_in}, {form.bound(DTYPES[type])}, args)"
            yield path_loop(f"{name}_form_{type}", [f"return {call}"])
        loops |= {type: f"{name}_form_{type}" for type in LOOPS if loops[type] == "NULL"}
    scaled = form and form.direct_f32 and not form.has_zeros
    yield path(name, loops.values(), "", "classify_exact", "classify_scaled" if scaled else "")


def paths_by_hand(records: Iterable[Any]) -> Iterator[str]:
    """Imports of fast paths that are written by hand, and the calls that enter them."""
    found = [(record.name, record.by_hand) for record in records if record.by_hand]
    for family in dict.fromkeys(hand.family for _, hand in found):
        names = {
            name
            for _, hand in found
            for name in hand_names(hand)
            if hand.family == family
        }  # fmt: skip
        yield f"from aclnn.kernels.simd.{family} cimport {', '.join(sorted(names))}\n"
    for name, hand in found:
        loops = [f"{hand.loops}_{type}" for type in LOOPS]
        yield path(name, loops, hand.prepare, hand.classify, hand.classify_f32)


def hand_names(hand: Any) -> list[str]:
    loops = [f"{hand.loops}_{type}" for type in LOOPS]
    return [*loops, *filter(None, (hand.prepare, hand.classify, hand.classify_f32))]


def simd_forms(records: Iterable[Any]) -> str:
    records = list(records)
    made = [record for record in records if record.vectors or record.halves]
    parts = [*paths_by_hand(records), *(part for one in made for part in vector_paths(one))]
    table = [part for part in parts if part.startswith(ENTRY)]
    return "".join([SIMD_IMPORTS, *(part for part in parts if part not in table)]) + entered(table)


# --- Facts for the engine -------------------------------------------------------------------------


def formula_facts(records: Iterable[Any]) -> str:
    """What the engine knows of each formula, and fast paths where there are no vectors."""
    text, imports = ["FACTS = {\n"], set()
    for record in records:
        truth = record.outputs[0].role == "truth"
        facts = record.cost, record.masks, record.keeps_bits, record.commutes, truth
        text.append(f'    "{record.name}": FormulaFacts{facts!r},\n')
    text.append("}\n\n\ncdef simd_path_t path_without_vectors(str formula):\n")
    for record in records:
        if (hand := record.by_hand) and hand.scalar:
            loops = [f"{hand.scalar}_f16_scalar", f"{hand.scalar}_bf16_scalar"]
            imports |= {*loops, hand.prepare}
            given = ["NULL", *loops, "NULL", "NULL", hand.prepare, "NULL", "NULL"]
            text.append(f'    if formula == "{record.name}":\n')
            text.append(f"        return simd_path_t({', '.join(given)})\n")
    text.append(f"    return simd_path_t({', '.join(['NULL'] * 8)})\n")
    lead = f"from aclnn.kernels.simd.scalar cimport {', '.join(sorted(imports))}\n\n"
    return lead + "".join(text)


# --- Steps of programs on registers ---------------------------------------------------------------

REGISTERS = "abcdefgh"
SIGNATURE = (
    ", ".join(f"vecf {r}" for r in REGISTERS) + ", const step_t *step, frame_t *frame, ptrdiff_t i"
)
ARGUMENTS = ", ".join(REGISTERS) + ", step, frame, i"
AT_ONCE = {"to_bf16_raw": "to_bf16_at_once"}
RUNNERS = {0: "run_of_one", 1: "run_of_one", 2: "run_of_two", 3: "run_of_three"}


def step_function(name: str, inputs: int, form: Any, finish: str) -> str:
    run, body = RUNNERS[inputs], []
    if form.scarce and finish.startswith("to_bf16"):
        body += [f"if any_scarce({ARGUMENTS}):", f"    {form.scarce}({ARGUMENTS})", "    return"]
    if form.at_once and finish.startswith("to_"):
        body += [
            "if is_at_once(step, frame):",
            f"    {run}({form.at_once}, {AT_ONCE.get(finish, finish)}, {ARGUMENTS})",
            "    return",
        ]
    body.append(f"{run}({form.function}, {finish}, {ARGUMENTS})")
    return function(f"cdef void {name}({SIGNATURE})", body)


class Step(NamedTuple):
    """One of the functions that are made.

    `dtype` is that of the result, `finish` what becomes of it, `raw` what becomes of it where nothing
    tells NaNs apart, or the same.
    """

    formula: str
    dtype: str
    inputs: int
    form: Any
    finish: str
    raw: str
    blind: bool


def steps_of(record: Any) -> Iterator[Step]:
    form, inputs = record.steps.float32, len(record.inputs)
    finish = "vf_canonical" if form.canonical else "as_it_is"
    blind = form.blind or form.canonical
    yield Step(record.name, "float32", inputs, form, finish, "as_it_is", blind)
    form = record.steps.half
    for dtype in form.dtypes if form else ():
        rounded = f"to_{SHORT[dtype]}"
        finish = {"round": rounded, "keep": f"{rounded}_raw", "same": "as_it_is"}[form.half]
        raw = finish if finish == "as_it_is" else f"{rounded}_raw"
        blind = form.blind or finish == rounded
        yield Step(record.name, dtype, inputs, form, finish, raw, blind)


def casts(step_form: Any) -> Iterator[Step]:
    """Floats as they are, or rounded."""
    for dtype in SHORT:
        finish = "as_it_is" if dtype == "float32" else f"to_{SHORT[dtype]}"
        yield Step("cast", dtype, 1, step_form("same"), finish, finish, finish != "as_it_is")


def pair_step(record: Any) -> str:
    """A step that computes in pairs of vectors; exceptional results are left to the node's own kernel."""
    name, two = record.name, len(record.inputs) == 2
    pair = function(
        f"cdef inline vecf {name}_pair(vecf a{', vecf b' if two else ''}, const double *p, track_t *track)",
        pair_body(record, "p"),
    )
    body = [
        "cdef const double *p = numbers_of(step, frame)",
        "cdef const step_t *next = step + 1",
        "cdef track_t track = track_init(0)",
        "cdef vecf last",
        *(["cdef const char *y = operand_of(step, frame, i)"] if two else []),
        "spread(a, b, c, d, e, f, g, h, frame.given)",
    ]
    for k, r in enumerate(REGISTERS):
        other = f", at(y, {k})" if two else ""
        body.append(f"{r} = vf_complete({name}_pair({r}{other}, p, &track))")
        body.append("track_finite(&track, last, track.last)" if k % 2 else "last = track.last")
    body += [
        "if is_range_exceptional(&track, FLOAT_DOMAIN):",
        "    step.instead(step, frame, i)",
        "    return",
        f"next.run({', '.join(REGISTERS)}, next, frame, i)",
    ]
    return pair + function(f"cdef void {name}_pair_step({SIGNATURE})", body)


def register_steps(records: Iterable[Any], step_form: Any) -> str:
    """All steps, and the lines that enter them into the table."""
    text, table, steps = [], [], []
    for record in records:
        if record.vectors and record.vectors.direct_f32 and record.vectors.in_steps:
            text.append(pair_step(record))
            table.append(f'add_pair_step("{record.name}", {record.name}_pair_step)')
        if record.steps:
            steps += steps_of(record)
    for step in (*steps, *casts(step_form)):
        raw = name = f"{step.formula}_{SHORT[step.dtype]}_step"
        text.append(step_function(name, step.inputs, step.form, step.finish))
        if step.raw != step.finish:
            raw = f"{name}_raw"
            text.append(step_function(raw, step.inputs, step.form, step.raw))
        prepared = bool(step.form.at_once) and step.dtype != "float32"
        facts = f"{step.form.unit!r}, {step.blind}, {prepared}, {step.finish.startswith('to_')}"
        table.append(f'add_step("{step.formula}", "{step.dtype}", {facts}, {name}, {raw})')
    return "".join(text) + entered(table)


# --- Row-wise and opaque kernels ------------------------------------------------------------------


def row_tables(records: Iterable[Any]) -> str:
    """The table of row-wise kernels, and functions that choose the passes of one."""
    records = list(records)
    passes = {
        "set_passes": records,
        "set_widened": [one for one in records if one.widened],
    }
    text = []
    for body in dict.fromkeys(one.body for one in records):
        names = ", ".join(f"{one.name}_passes" for one in records if one.body == body)
        text.append(f"from aclnn.kernels.{body} cimport {names}\n")
    text.append("\nKERNELS = {\n")
    for one in records:
        sides = [row_operands(side) for side in (one.inputs, one.outputs)]
        facts = f"{one.cost}, {one.sums_integers}, {one.widened}"
        text.append(f'    "{one.name}": RowFacts({", ".join(sides)}, {facts}),\n')
    text.append("}\n\n\n")
    for function_name, chosen in passes.items():
        text.append(
            f"cdef int {function_name}(row_state *state, str name, bint all_digits, "
            "const elem_t *like) except -1:\n"
        )
        for one in chosen:
            text.append(f'    if name == "{one.name}":\n')
            text.append(f"        return {one.name}_passes(state, all_digits, like)\n")
        text.append("    raise ValueError(name)\n\n\n")
    return "".join(text)


# What the module of row-wise kernels knows of an operand.
OF_ROWS = ("name", "role", "slot", "optional", "statistic", "needed_by")


def row_operands(side: Iterable[Any]) -> str:
    return (
        "(" + "".join(f"Operand{tuple(getattr(one, f) for f in OF_ROWS)!r}, " for one in side) + ")"
    )


def opaque_facts(records: Iterable[Any]) -> str:
    """Tables of opaque kernels: facts of those with the common state, and what makes each of a node."""
    records = list(records)
    own = [one for one in records if one.body.startswith("opaque.")]
    text = [
        f"from aclnn.kernels.{body} cimport {', '.join(one.name for one in own if one.body == body)}\n"
        for body in dict.fromkeys(one.body for one in own)
    ]
    text += [conversion("reader", READ_AS, "-1"), conversion("writer", WRITTEN_AS, "-1")]
    calls = library_calls(records)
    text += [f"def {name}{NODE}:\n{lines}\n\n\n" for lines, name in calls.items()]
    text.append("FACTS = {\n")
    for one in own:
        index = next((k for k, operand in enumerate(one.inputs) if operand.role == "index"), -1)
        facts = one.cost, one.moves, index, one.chunks, one.loops, one.failures
        address = f"<size_t><call_kernel>{one.name}"
        text.append(f'    "{one.name}": OpaqueFacts({address}, {", ".join(map(repr, facts))}),\n')
    text.append("}\n")
    lines = [f'    "{one.name}": "{maker_of(one, calls)}",\n' for one in records]
    return "".join([*text, "MAKERS = {\n", *lines, "}\n"])


def maker_of(record: Any, calls: Mapping[str, str]) -> str:
    """The function that makes a kernel of a node, as ``module:function``."""
    if record.state:
        return f"_{record.body}_kernels:{record.name}_kernel"
    function = calls[library_call(record)] if record.factory else "opaque_kernel"
    return f"_opaque_kernels:{function}"


def conversion(name: str, pairs: Mapping[str, Iterable[str]], isa: str = "set_in_use()") -> str:
    """The function that gives what converts elements, by their dtype and the one that is computed in.

    It takes that from `_kernels`, for the instruction set that it passes: the one in use, or -1 where a module has
    no loops for each.
    """
    kind = "load" if name == "reader" else "store"
    known = {(dtype, wide) for wide, some in pairs.items() for dtype in some}
    lines = [
        f"from aclnn._kernels cimport {kind}_of",
        f"from aclnn.kernels.element cimport {kind}_fn",
    ]
    if isa == "set_in_use()":
        lines.append("from aclnn.kernels.instruction_sets cimport set_in_use")
    verb = "reads {dtype} as" if kind == "load" else "writes {dtype} from"
    lines += [
        "\n",
        f"cdef {kind}_fn {name}(str dtype, str computed) except NULL:",
        f"    if (dtype, computed) not in {{{', '.join(map(repr, sorted(known)))}}}:",
        f'        raise ValueError(f"no kernel {verb} {{computed}}")',
        f"    return {kind}_of({isa}, dtype, computed)\n\n\n",
    ]
    return "\n".join(lines)


# --- Nodes of opaque kernels ------------------------------------------------------------------------


class Argument(NamedTuple):
    """What is read of a node: a name and the expression of its value."""

    name: str
    value: str
    reads: frozenset[str]  # names in the expression


def arguments_of(record: Any) -> list[Argument]:
    """The statements of a record; a name alone is the attribute of that name."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for one in ast.parse(inspect.cleandoc(record.arguments)).body:
        if isinstance(one, ast.Expr):
            names = one.value.elts if isinstance(one.value, ast.Tuple) else [one.value]
            pairs += [(name, attribute(name)) for name in names]
        elif isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Tuple):
            pairs += zip(one.targets[0].elts, one.value.elts, strict=True)
        else:
            pairs.append((one.targets[0], one.value))
    return [Argument(name.id, ast.unparse(value), names_in(value)) for name, value in pairs]


def attribute(name: ast.expr) -> ast.expr:
    return ast.parse(f"attr({ast.unparse(name)!r})", mode="eval").body


def names_in(tree: ast.AST) -> frozenset[str]:
    return frozenset([one.id for one in ast.walk(tree) if isinstance(one, ast.Name)])


def shapes_read(record: Any, read: Iterable[str]) -> list[str]:
    """Shapes of operands, by their names, that expressions read."""
    places = {one.name: f"len(inputs) + {k}" for k, one in enumerate(record.outputs)}
    places |= {one.name: str(k) for k, one in enumerate(record.inputs)}
    return [f"{name} = views[{place}].shape" for name, place in places.items() if name in read]


STATE_IMPORTS = """\
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from aclnn.kernels.element cimport load_fn, store_fn
from aclnn.kernels.scratch cimport part_of
from aclnn.kernels.sorts cimport COUNTS_BYTES


"""
NODE_IMPORTS = """\
from libc.string cimport memset

from aclnn.kernels._kernel_reference cimport checked_by, refer_to
from aclnn.kernels._opaque_kernels cimport {names}

from aclnn.acl.dtypes import ITEM_SIZES


"""
NODE = "(attr, tuple inputs not None, tuple outputs not None, tuple views not None, steps)"


def library_call(record: Any) -> str:
    """A function's lines that make a node's kernel with the module of the instruction set in use."""
    arguments = arguments_of(record)
    family, _, factory = record.factory.partition(":")
    read = {name for one in arguments for name in one.reads}
    lines = shapes_read(record, read)
    read -= {"views", "steps"}  # what is given
    lines += [f"{one.name} = {one.value}" for one in arguments if one.name in read]
    given = "".join(
        f", {one.name}={one.name if one.name in read else one.value}" for one in arguments
    )
    lines.append(f"return isa.{family}().{factory}(inputs=inputs, outputs=outputs{given})")
    return "\n".join(indented(lines))


def library_calls(records: Iterable[Any]) -> dict[str, str]:
    """Functions that make kernels of nodes: their names by their lines, which kernels may share."""
    found: dict[str, str] = {}
    for one in records:
        if one.factory:
            found.setdefault(library_call(one), f"{one.name}_kernel")
    return found


def fields_of(state: Any) -> list[str]:
    """Names of the fields of a struct."""
    lines = [line.partition("#")[0] for line in inspect.cleandoc(state.fields).splitlines()]
    return [name for line in lines for name in re.findall(r"(\w+)\s*(?:,|$)", line.strip())]


class Part(NamedTuple):
    """What a kernel keeps in scratch."""

    type: str
    name: str
    count: str
    comment: str

    @property
    def names(self) -> list[str]:
        """Fields of the state and arguments that the count is made of, in order."""
        tree = ast.parse(self.count, mode="eval")
        called = {one.func for one in ast.walk(tree) if isinstance(one, ast.Call)}
        found = [one for one in ast.walk(tree) if isinstance(one, ast.Name) and one not in called]
        found.sort(key=lambda one: one.col_offset)
        return [one.id for one in found if one.id[0].islower()]

    def counted(self, fields: Iterable[str]) -> str:
        """The count as an expression of the state."""
        tree = ast.parse(self.count, mode="eval")
        own = {*self.names} & {*fields}
        for one in ast.walk(tree):
            if isinstance(one, ast.Name) and one.id in own:
                one.id = f"state.{one.id}"
        text = ast.unparse(tree)
        operator = getattr(tree.body, "op", ast.Mult())  # a factor of the bytes
        is_factor = isinstance(operator, (ast.Mult, ast.FloorDiv))
        return text if is_factor and not isinstance(tree.body, ast.IfExp) else f"({text})"


def parts_of(record: Any) -> list[Part]:
    lines = inspect.cleandoc(record.parts).splitlines()
    pattern = r"(\w+) (\w+)\[(.*?)\]\s*(# .*)?"
    return [
        Part(*found.groups(default="")) for line in lines if (found := re.fullmatch(pattern, line))
    ]


def sizes_of(record: Any) -> list[str]:
    """Arguments that counts of parts are made of, besides fields of the state."""
    names = [name for one in parts_of(record) for name in one.names]
    return [name for name in dict.fromkeys(names) if name not in fields_of(record.state)]


def states(records: Iterable[Any]) -> str:
    """Structs of a family's kernels, and functions that divide their scratch."""
    records = list(records)
    text = [STATE_IMPORTS]
    for state in dict.fromkeys(one.state for one in records):
        fields = inspect.cleandoc(state.fields).splitlines()
        text.append("\n".join([f"cdef struct {state.name}:", *indented(fields)]) + "\n\n\n")
    # Kernels that share a function share what divides its scratch.
    text += dict.fromkeys(division(one) for one in records if one.parts)
    return "".join(text)


def division(record: Any) -> str:
    """What a kernel keeps in scratch: the struct, and the function that divides the memory."""
    parts, fields = parts_of(record), fields_of(record.state)
    lines = [f"{one.type} *{one.name}  {one.comment}".rstrip() for one in parts]
    struct = "\n".join([f"cdef struct {record.function}_parts:", *indented(lines)])
    body = ["cdef size_t used = 0"]
    for one in parts:
        nbytes = f"{one.counted(fields)} * sizeof({one.type})"
        body.append(f"parts.{one.name} = <{one.type} *>part_of(scratch, {nbytes}, &used)")
    sizes = "".join(f"ptrdiff_t {name}, " for name in sizes_of(record))
    heading = (
        f"cdef inline size_t divide_{record.function}(const {record.state.name} *state, {sizes}"
        f"void *scratch, {record.function}_parts *parts)"
    )
    return f"{struct}\n\n\n" + function(heading, [*body, "return used"])


def in_state(name: str, fields: Iterable[str]) -> str:
    return f"state.{name}" if name in fields else name


def nodes(records: Iterable[Any]) -> str:
    """Functions that make kernels of nodes, for a family whose states the build packs."""
    records = list(records)
    names, own = ["lines_of", "places_of", "size_of"], ""
    if not any(one.per_set for one in records):
        names += ["reader", "writer"]
    else:
        own = conversions(records)
    makers = "".join([node_kernel(one) for one in records])
    return NODE_IMPORTS.format(names=", ".join(names)) + own + makers


def conversions(records: Sequence[Any]) -> str:
    """What reads and writes elements in a module with loops for each instruction set: what arguments name."""
    text = ""
    for name, pairs in ("reader", READ_BY_SETS), ("writer", WRITTEN_BY_SETS):
        calls = [call for one in records for call in calls_of(name, one.arguments)]
        named = [one for call in calls for one in ast.walk(call.args[1])]
        computed = {one.value for one in named if isinstance(one, ast.Constant)}
        if computed:
            text += conversion(name, {wide: pairs[wide] for wide in sorted(computed)})
    return text


def calls_of(function: str, text: str) -> Iterator[ast.Call]:
    """Calls of a function in statements."""
    for one in ast.walk(ast.parse(inspect.cleandoc(text))):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == function:
            yield one


def node_kernel(record: Any) -> str:
    """The function that makes a kernel of a node: it packs the state, and counts work, chunks and scratch."""
    lines = [f"cdef {record.state.name} state"]
    if record.parts:
        lines.append(f"cdef {record.function}_parts parts")
    lines += ["memset(&state, 0, sizeof(state))", *shapes_read(record, names_read(record))]
    lines += [*places_set(record), *arguments_set(record), "failures = {"]
    lines += [f"    {code}: {failure(text)}," for code, text in record.failures]
    lines += ["}", "made = refer_to("]
    state = f"{record.function}, &state, sizeof(state)"
    lines.append(f'    "{record.name}", inputs, outputs, {state}, {record.work},')
    lines += [f"    {record.chunks or 1}, {scratch_of(record)}, failures,", ")"]
    made = f"checked_by(made, {', '.join(record.check)})" if record.check else "made"
    body = indented([*lines, f"return {made}"])
    return "\n".join([f"def {record.name}_kernel{NODE}:", *body]) + "\n\n\n"


def names_read(record: Any) -> set[str]:
    """All names in expressions of a record."""
    texts = [record.work, record.chunks or "1", *record.check]
    texts += [one for _, text in record.failures for one in re.findall("{(.*?)}", text)]
    arguments = [one.reads for one in arguments_of(record)]
    return {name for one in (*arguments, *map(names_in, map(ast.parse, texts))) for name in one}


def places_set(record: Any) -> list[str]:
    """Statements that set fields with the names of operands to their places."""
    every = (*record.inputs, *record.outputs)
    fields = {*fields_of(record.state)} - {one.name for one in arguments_of(record)}
    wanted = [one.name for one in every if one.name in fields]
    if not wanted:
        return []
    words = tuple([f"{one.name}{'?' * one.optional}{'*' * one.several}" for one in every])
    found = f'places = places_of({words}, attr("present", ()), len(inputs) + len(outputs))'
    return [found, *(f'state.{name} = places.get("{name}", -1)' for name in wanted)]


def arguments_set(record: Any) -> list[str]:
    fields = fields_of(record.state)
    return [f"{in_state(one.name, fields)} = {one.value}" for one in arguments_of(record)]


def scratch_of(record: Any) -> str:
    """The expression of the bytes of a kernel's scratch."""
    sizes = "".join(f"{name}, " for name in sizes_of(record))
    return f"divide_{record.function}(&state, {sizes}NULL, &parts)" if record.parts else "0"


def failure(text: str) -> str:
    """The text of a failure as an expression; a kernel's detail is put in when it fails."""
    if re.findall("{(.*?)}", text) in ([], ["detail"]):
        return repr(text)
    return "f" + repr(text.replace("{detail}", "{{detail}}"))


# --- Files ----------------------------------------------------------------------------------------


def refuse_wrong(records: Iterable[Any]) -> None:
    """Refuse what no loop could be made of."""
    for record in records:
        if record.computed_in not in LOOPS_IN:
            sys.exit(f"{record.name}: {record.computed_in!r} is none of {', '.join(LOOPS_IN)}")
        if len(record.inputs) > MOST_INPUTS:
            sys.exit(f"{record.name}: a formula takes at most {MOST_INPUTS} elements")
        if (record.vectors or record.halves) and not 1 <= len(record.inputs) <= 2:
            sys.exit(f"{record.name}: forms over vectors take one or two elements")


def refuse_unused(records: Iterable[Any]) -> None:
    """Refuse an argument that nothing reads, and a field that no kernel has a value for."""
    filled: dict[Any, set[str]] = {}
    for record in records:
        names = {one.name for one in arguments_of(record)}
        used = {*fields_of(record.state), *names_read(record), *sizes_of(record)}
        if unused := sorted(names - used):
            sys.exit(f"{record.name}: nothing reads {', '.join(unused)}")
        operands = {one.name for one in (*record.inputs, *record.outputs)}
        filled.setdefault(record.state, set()).update(names, operands)
    for state, names in filled.items():
        if empty := [one for one in fields_of(state) if one not in names]:
            sys.exit(f"{state.name}: no kernel gives {', '.join(empty)} a value")


def sources(folder: Path = FOLDER) -> dict[str, str]:
    """The files by their names."""
    every = load_records(folder).values()
    domains = ("point", "row", "opaque")
    point, rows, opaque = ([one for one in every if one.domain == name] for name in domains)
    record_module = sys.modules["kernels.record"]
    refuse_wrong(point)
    refuse_unused([one for one in opaque if one.state])
    packed = {
        one.body: [same for same in opaque if same.body == one.body] for one in opaque if one.state
    }
    return {
        "formula_loops.pxi": formula_loops(point, record_module.ENDINGS),
        "simd_forms.pxi": simd_forms(point),
        "formula_facts.pxi": formula_facts(point),
        "register_steps.pxi": register_steps(point, record_module.StepForm),
        "row_tables.pxi": row_tables(rows),
        "opaque_facts.pxi": opaque_facts(opaque),
        **{f"{body}_states.pxi": states(family) for body, family in packed.items()},
        **{f"{body}_nodes.pxi": nodes(family) for body, family in packed.items()},
    }


def write(target: Path) -> None:
    """Write the files that changed: one that is written is newer than what was made of it."""
    target.mkdir(parents=True, exist_ok=True)
    for name, text in sources().items():
        path = target / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the files go")
    write(parser.parse_args().folder)
