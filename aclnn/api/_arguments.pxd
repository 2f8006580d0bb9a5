"""Functions in C that belong to a handle: how they are made, and how they take their arguments."""

from cpython.object cimport PyObject

from aclnn.execution._fastcall cimport (
    METH_FASTCALL,
    METH_KEYWORDS,
    PyCFunction_NewEx,
    PyMethodDef,
    PyTuple_GET_ITEM,
    PyTuple_GET_SIZE,
)

cdef enum:
    MAX_PARAMETERS = 48


cdef struct signature_t:
    int n_positional            # so many may be given by position
    int n_required              # parameters that have to be given, the first ones
    int slots[MAX_PARAMETERS]   # where the argument of each parameter goes


cdef struct function_t:
    # What Python only points to, and the handle has to keep.
    PyMethodDef definition
    signature_t signature


cdef inline object new_function(function_t *function, object handle, str module, bytes name,
                                bytes doc, void *called):
    """A function of `handle`, which keeps `function` and both texts; it calls what `called` points
    to with the handle, the arguments, how many are positional, and the names of the others."""
    function.definition.ml_name, function.definition.ml_doc = name, doc
    function.definition.ml_meth = called
    function.definition.ml_flags = METH_FASTCALL | METH_KEYWORDS
    return PyCFunction_NewEx(&function.definition, handle, module)


cdef inline Py_ssize_t parameter_called(tuple parameters, PyObject *name):
    """The number of a parameter, -1 if there is none of that name."""
    cdef Py_ssize_t k
    for k in range(len(parameters)):
        # Names in a program's text are interned.
        if PyTuple_GET_ITEM(<PyObject *>parameters, k) == name:
            return k
    for k in range(len(parameters)):
        if parameters[k] == <object>name:
            return k
    return called_otherwise(parameters, <object>name)


cdef inline Py_ssize_t called_otherwise(tuple parameters, str name):
    """The number of a parameter that other libraries call `name`, -1 if there is none."""
    from aclnn.acl.arguments import parameter_meant

    meant = parameter_meant(name, parameters)
    return -1 if meant is None else parameters.index(meant)


cdef inline object wrong_arguments(str function, str problem):
    from aclnn.acl.errors import wrong_kind

    error = wrong_kind(f"{function}() {problem}")
    error.function = function
    return error


cdef inline object unknown_keyword(str function, tuple parameters, str name):
    from aclnn.acl.arguments import did_you_mean

    known = did_you_mean(name, parameters) or f"; it takes {', '.join(parameters)}"
    return wrong_arguments(function, f"got an unexpected keyword argument {name!r}{known}")


cdef inline int take_arguments(str function, tuple parameters, const signature_t *signature,
                               PyObject *const *values, Py_ssize_t n_values, PyObject *names,
                               PyObject **arguments) except -1:
    """Put `values`, given by position and then with `names`, into the slots of their parameters."""
    cdef Py_ssize_t k, parameter, n_names = 0 if names == NULL else PyTuple_GET_SIZE(names)
    if n_values > signature.n_positional:
        raise wrong_arguments(
            function, f"takes {signature.n_positional} positional "
            f"argument{'s' if signature.n_positional > 1 else ''} but {n_values} were given")
    for k in range(n_values):
        arguments[signature.slots[k]] = values[k]
    for k in range(n_names):
        parameter = parameter_called(parameters, PyTuple_GET_ITEM(names, k))
        if parameter < 0:
            raise unknown_keyword(function, parameters, <object>PyTuple_GET_ITEM(names, k))
        if arguments[signature.slots[parameter]] != NULL:
            raise wrong_arguments(
                function, f"got multiple values for argument {parameters[parameter]!r}")
        arguments[signature.slots[parameter]] = values[n_values + k]
    for k in range(signature.n_required):
        if arguments[signature.slots[k]] == NULL:
            raise wrong_arguments(function, f"missing required argument: {parameters[k]!r}")
    return 0
