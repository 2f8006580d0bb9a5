"""Declarations of `runtime/objects.h`: CANN's objects as structs in C."""

from libc.stdint cimport int64_t, uint64_t

cdef extern from "objects.h" nogil:
    enum:
        ACLNN_TENSOR
        ACLNN_SCALAR
        ACLNN_INTS
        ACLNN_FLOATS
        ACLNN_BOOLS
        ACLNN_TENSORS
        ACLNN_SCALARS
        ACLNN_EXECUTOR
        ACLNN_DESTROYED
    const int64_t ACLNN_MOST_ELEMENTS
    ctypedef struct c_tensor "struct aclTensor":
        unsigned magic
        int dtype
        int format
        int ndim
        int storage_ndim
        unsigned version
        bint writable
        int64_t offset
        char *storage
        void *block
        int64_t *shape
        int64_t *strides
        int64_t *storage_shape
    ctypedef struct c_scalar "struct aclScalar":
        unsigned magic
        int dtype
        bint is_real
        bint is_whole
        double exact
        double rounded
        double imaginary
        int64_t whole
        unsigned char *bytes
    ctypedef struct c_collection "struct aclnn_collection":
        unsigned magic
        uint64_t size
    ctypedef struct c_ints "struct aclIntArray":
        unsigned magic
        uint64_t size
        int64_t *values
    ctypedef struct c_floats "struct aclFloatArray":
        unsigned magic
        uint64_t size
        float *values
    ctypedef struct c_bools "struct aclBoolArray":
        unsigned magic
        uint64_t size
        unsigned char *values
    ctypedef struct c_tensors "struct aclTensorList":
        unsigned magic
        uint64_t size
        c_tensor **items
    ctypedef struct c_scalars "struct aclScalarList":
        unsigned magic
        uint64_t size
        c_scalar **items
    void aclnn_row_major(const int64_t *shape, uint64_t ndim, int64_t *strides)
    int64_t aclnn_elements_needed(const c_tensor *tensor)
    int64_t aclnn_elements_declared(const c_tensor *tensor)
    bint aclnn_fits_memory(const c_tensor *tensor)
    bint aclnn_fits_storage(const c_tensor *tensor)
    c_tensor *aclnn_new_tensor(size_t ndim, size_t storage_ndim)
    c_tensor *aclnn_copy_tensor(const c_tensor *tensor)
    void aclnn_hold(c_tensor *tensor)
    void aclnn_release(c_tensor *tensor, void (*drop)(void *) noexcept nogil)
    int aclnn_describe_anew(c_tensor *tensor, const c_tensor *other)
    int aclnn_reshape(c_tensor *tensor, const int64_t *shape, int ndim)
    void *aclnn_new_collection(unsigned magic, uint64_t size, size_t item)
    void aclnn_free_collection(void *collection)
