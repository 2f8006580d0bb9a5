from aclnn.compiler._compiled_call cimport CompiledCall
from aclnn.execution._bindings cimport Bindings
from aclnn.execution._operand cimport Headers
from aclnn.graph.runtime.kernel_abi cimport kernel_number

cdef class aclOpExecutor(Bindings):
    cdef object run_with(self, Headers inputs, object out, object kind, Headers held, bytes numbers,
                         object workspace)
    cdef object run_given(self, tuple arrays, dict named, object out, object workspace)
    cdef bint runs_as_bound(self) noexcept
    cdef object run_bound(self)
    cdef object handed_back(self, list results, object out)
    cdef int run_spare(self, char **addresses, const kernel_number *numbers) except -1
    cdef int tell_written(self) except -1
    cdef aclOpExecutor snapshot(self)
    cdef CompiledCall plan_shown(self)
    cdef int show_next(self) except -1
    cdef CompiledCall plan_for(self, char **addresses)
    cdef CompiledCall plan_anew(self, char **addresses)
    cdef int run_in(self, char **addresses, object workspace, bytes numbers=*,
                    list held=*) except -1
    cdef int tell_shapes(self) except -1
    cdef int execute(self, char **addresses, char *workspace, bytes numbers=*,
                     list held=*) except -1
    cdef int pack_bound(self) except -1

cdef aclOpExecutor new_executor()
