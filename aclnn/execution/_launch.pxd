from aclnn.compiler._plan_cache cimport OperatorHandle

cdef object run_phase_two(OperatorHandle handle, str name, object workspace,
                          object workspaceSize, object executor_or_none, object stream)
