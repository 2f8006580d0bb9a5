from aclnn.compiler._compiled_call cimport CompiledCall

cdef int refuse_shared(CompiledCall plan, tuple names, char **addresses, char *workspace) except -1

cdef class WorkspaceHold:
    cdef char *address
    cdef Py_buffer view
    cdef bint exported
    cdef object owner
    cdef int release(self) except -1

cdef class OwnWorkspace:
    cdef char *address
    cdef size_t mapped  # bytes of pages of its own; 0: of malloc's
