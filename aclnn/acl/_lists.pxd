from aclnn.acl.objects cimport c_bools, c_collection, c_ints

# `head` and `items` are what calls read; `head` stays as it was made until the object is gone.
# `destroyed` says that callers may not use it any more.
cdef class Collection:
    cdef c_collection *head  # of the struct that programs in C have too
    cdef readonly bint destroyed
    cdef object __weakref__

    cdef int take(self, tuple found) except -1

cdef class aclIntArray(Collection):
    pass

cdef class aclFloatArray(Collection):
    pass

cdef class aclBoolArray(Collection):
    pass

cdef class aclTensorList(Collection):
    cdef readonly tuple items            # of aclTensor

cdef class aclScalarList(Collection):
    cdef readonly tuple items            # of aclScalar

cdef tuple ints_of(const c_ints *given)
cdef tuple bools_of(const c_bools *given)
cdef aclIntArray int_array_of(const c_ints *given)
cdef aclBoolArray bool_array_of(const c_bools *given)
cdef aclTensorList tensor_list_of(tuple items, bint is_alive)
