from aclnn.compiler._compiled_call cimport OperatorHandle

cdef object run_phase_two(OperatorHandle handle, str name, object workspace,
                          object workspaceSize, object executor_or_none, object stream)
