"""Whose loops a module's functions name: the instruction set that a thread uses."""

cdef extern from "instruction_sets.h" nogil:
    enum:
        SET_GENERIC
        SETS
    const int SETS_BUILT
    int set_in_use() noexcept
    void use_set(int) noexcept


cdef inline int take_set(int number) except -1:
    """Use the loops of an instruction set in this thread, unless there are none."""
    if not 0 <= number < SETS or not SETS_BUILT >> number & 1:
        raise ValueError(f"number: {number}, loops of no such instruction set were built")
    use_set(number)
    return 0
