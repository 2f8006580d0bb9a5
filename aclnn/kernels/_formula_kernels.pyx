"""The plain loops over the formulas of `kernels/formulas.pxd`, made from their records.

Functions that Python calls are compiled once, loops once per instruction set
(`kernels/instruction_sets.h`).
"""

from libc.stdint cimport int64_t, uint32_t  # no-cython-lint: what is included needs it

cimport aclnn.kernels.activations as activations  # no-cython-lint: as above
cimport aclnn.kernels.formulas as formulas  # no-cython-lint: as above
from aclnn.kernels.shared_formulas cimport canonical  # no-cython-lint: as above
from aclnn.kernels.formula_loops cimport MOST_FORMULAS, MOST_INPUTS, formula_loops_t, loop_fn
from aclnn.kernels.formulas cimport complex_t  # no-cython-lint: as above
from aclnn.kernels.instruction_sets cimport SETS, SETS_BUILT, set_in_use, take_set
from aclnn.graph.runtime.kernel_abi cimport kernel_number  # no-cython-lint: as above
from aclnn.kernels.unaligned cimport unaligned_double  # no-cython-lint: as above
from aclnn.kernels.unaligned cimport unaligned_float, unaligned_int64  # no-cython-lint

cdef extern from "vector_math.h" nogil:
    float f32_to_odd(double) noexcept  # no-cython-lint: as above
    uint32_t is_in_doubt(float) noexcept  # no-cython-lint: as above

cdef dict _numbers = {}
cdef formula_loops_t[SETS][MOST_FORMULAS] _loops
BUILT = SETS_BUILT  # a bit for each instruction set whose loops are here


def use(int number):
    """Use the loops of an instruction set, by its number, in this thread."""
    take_set(number)


cdef add(str formula, int n_inputs, bint exact, loop_fn in_float, loop_fn in_half,
         loop_fn in_double, loop_fn in_float64, loop_fn in_whole, loop_fn in_complex):
    cdef int number = _numbers.setdefault(formula, len(_numbers))
    if number == MOST_FORMULAS or not 0 <= n_inputs <= MOST_INPUTS:
        raise ValueError(f"{formula}: kernels have places for {MOST_FORMULAS} formulas of at most "
                         f"{MOST_INPUTS} inputs")
    _loops[set_in_use()][number] = formula_loops_t(n_inputs, exact, in_float, in_half,
                                                   in_double, in_float64, in_whole, in_complex)


def loops():
    """Addresses of a `formula_loops_t` for each formula, in the order of their records."""
    enter()
    return {formula: <size_t>&_loops[set_in_use()][<int>number]
            for formula, number in _numbers.items()}


include "formula_loops.pxi"
