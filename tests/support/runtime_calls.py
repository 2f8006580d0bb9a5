"""The runtime's functions as programs in C call them, by pointers from the capsule, through ctypes."""

import ctypes

from aclnn.acl import _runtime, constants, prototypes

C = {
    "void": None, "char": ctypes.c_char, "bool": ctypes.c_bool, "float": ctypes.c_float, "int": ctypes.c_int,
    "size_t": ctypes.c_size_t, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "uint16_t": ctypes.c_uint16,
}  # fmt: skip
C |= {kind.__name__: ctypes.c_int for kind in constants.ENUMERATIONS}
FURTHER = (
    "enqueue",
    "is_redirected",
    "hold_memory",
    "memory_lives",
    "drop_memory",
    "fail",
    "set_message",
    "closed",
)


def ctype(kind):
    """The type of ctypes for a type of a prototype."""
    if kind == "const char *":
        return ctypes.c_char_p
    kind = kind.replace("const ", "").strip()
    if kind in prototypes.TYPES and kind not in C:
        return ctype(prototypes.TYPES[kind])
    if kind.endswith("*") or kind == "void (*)(void *)":
        return ctypes.c_void_p
    return C[kind]


def _table():
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(_runtime.table, b"aclnn.acl._runtime.table")


class Runtime:
    """Each function of the table as an attribute; with `locked`, calls keep the interpreter's lock."""

    def __init__(self, locked=False):
        make = ctypes.PYFUNCTYPE if locked else ctypes.CFUNCTYPE
        start = _table()
        self.version, self.size = (ctypes.c_uint32 * 2).from_address(start)
        pointers = (ctypes.c_void_p * (len(prototypes.RUNTIME) + len(FURTHER))).from_address(
            start + 8
        )
        kinds = [
            (ctype(one.returns), [ctype(parameter.type) for parameter in one.parameters])
            for one in prototypes.RUNTIME.values()
        ]
        i, p, s, t = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
        kinds += [
            (i, [p, t, p, p, p]), (i, [p, t]), (i, [t, t, p, s, p]), (i, [p]), (None, [p]), (i, [i, t]),
            (None, [t]), (i, [t]),
        ]  # fmt: skip
        names = [*prototypes.RUNTIME, *FURTHER]
        for name, pointer, (result, parameters) in zip(names, pointers, kinds, strict=True):
            setattr(self, name, make(result, *parameters)(pointer))

    def message(self):
        """The thread's message, or None."""
        text = self.aclGetRecentErrMsg()
        return None if text is None else text.decode()

    def made(self, name, *arguments):
        """The handle, address or number that a function makes, which is its first argument."""
        made = ctypes.c_void_p()
        status = getattr(self, name)(ctypes.byref(made), *arguments)
        assert status == 0, self.message()
        return made.value
