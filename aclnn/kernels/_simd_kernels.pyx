"""Fast paths of formulas that people run most, over vectors.

Elements are loaded, converted, computed, rounded and stored vector by vector (`simd/loops.pxd`);
the formulas are inline functions on vectors, written once for all numbers (`activations.pxd` and
`arithmetic.pxd` in `kernels/`) or by hand, in a header for each family.  What a path cannot round
with certainty, and exceptional cases, it leaves to the plain loops in double.

Functions that Python calls are compiled once, loops for each instruction set that has vectors of
eight floats or more (`kernels/instruction_sets.h`); there, every `inline` function is inlined.
"""

from libc.stdint cimport uint16_t

from aclnn.kernels.instruction_sets cimport SETS, SETS_BUILT, set_in_use, take_set
from aclnn.kernels.simd.exact cimport exact_is_exceptional, scaled_is_exceptional
from aclnn.kernels.simd.variants cimport (
    form_loop,
    run_form_bf16,
    run_form_f16,
    run_form_f32,
    run_form_to_bf16,
    run_form_to_f16,
)
from aclnn.kernels.simd.loop_args cimport loop_args, simd_path_t
from aclnn.kernels.simd.loops cimport classify
from aclnn.kernels.unaligned cimport unaligned_float

cdef enum:
    MOST_PATHS = 128

cdef dict _numbers = {}
cdef simd_path_t[SETS][MOST_PATHS] _paths
BUILT = SETS_BUILT  # a bit for each instruction set whose loops are here


def use(int number):
    """Use the loops of an instruction set, by its number, in this thread."""
    take_set(number)


cdef add(str formula, simd_path_t path):
    cdef int number = _numbers.setdefault(formula, len(_numbers))
    if number == MOST_PATHS:
        raise ValueError(f"{formula}: there are places for {MOST_PATHS} fast paths")
    _paths[set_in_use()][number] = path


def paths():
    """Addresses of the fast paths, a `simd_path_t` for each formula that has one."""
    enter()
    return {formula: <size_t>&_paths[set_in_use()][<int>number]
            for formula, number in _numbers.items()}


# The drivers, once each: a call for every chunk of elements costs nothing.
cdef int f32_by_form(form_loop form, const loop_args *args) noexcept nogil:
    return run_form_f32(form, args)


cdef int f16_by_form(form_loop form, float rel_error, const loop_args *args) noexcept nogil:
    return run_form_f16(form, rel_error, args)


cdef int bf16_by_form(form_loop form, float rel_error, const loop_args *args) noexcept nogil:
    return run_form_bf16(form, rel_error, args)


cdef int to_f16_by_form(form_loop form, float rel_error, const loop_args *args) noexcept nogil:
    return run_form_to_f16(form, rel_error, args)


cdef int to_bf16_by_form(form_loop form, float rel_error, const loop_args *args) noexcept nogil:
    return run_form_to_bf16(form, rel_error, args)


cdef void classify_exact(const unaligned_float *a, const unaligned_float *b,
                         const unaligned_float *r, uint16_t *exceptional, ptrdiff_t n,
                         const double *p) noexcept nogil:
    classify(exact_is_exceptional, a, b, r, exceptional, n, p)


cdef void classify_scaled(const unaligned_float *a, const unaligned_float *b,
                          const unaligned_float *r, uint16_t *exceptional, ptrdiff_t n,
                          const double *p) noexcept nogil:
    classify(scaled_is_exceptional, a, b, r, exceptional, n, p)


# The loops over forms, and the table of fast paths, those by hand too: made of the records.
include "simd_forms.pxi"
