"""Declarations of `objects.h` and `call_table.h`."""

from libc.stdint cimport int64_t, uint64_t

cdef extern from "objects.h" nogil:
    enum:
        ACLNN_TENSOR
        ACLNN_SCALAR
        ACLNN_INTS
        ACLNN_BOOLS
        ACLNN_TENSORS
        ACLNN_EXECUTOR
        ACLNN_DESTROYED
    ctypedef struct c_tensor "struct aclTensor":
        unsigned magic
        int dtype
        int format
        int ndim
        int storage_ndim
        unsigned version
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
    ctypedef struct c_ints "struct aclIntArray":
        unsigned magic
        uint64_t size
        int64_t *values
    ctypedef struct c_bools "struct aclBoolArray":
        unsigned magic
        uint64_t size
        unsigned char *values
    ctypedef struct c_tensors "struct aclTensorList":
        unsigned magic
        uint64_t size
        c_tensor **items
    void aclnn_hold(c_tensor *tensor)
    void aclnn_release(c_tensor *tensor, void (*drop)(void *) noexcept nogil)
    int aclnn_reshape(c_tensor *tensor, const int64_t *shape, int ndim)

cdef extern from "call_table.h" nogil:
    enum:
        ACLNN_CALL_TABLE_VERSION
        ACLNN_RUNTIME_TABLE_VERSION
    const char *ACLNN_RUNTIME_TABLE_NAME
    ctypedef union argument_t "aclnn_argument":
        const c_tensor *tensor
        const c_scalar *scalar
        const c_ints *ints
        const c_bools *bools
        const c_tensors *tensors
        int64_t whole
        double real
        const char *text
        const void *pointer
    ctypedef struct pair_of_functions "aclnn_pair":
        const char *name
        const char *tags
    ctypedef struct description_t "aclnn_description":
        const int64_t *shape
        uint64_t ndim
        int dtype
        const int64_t *strides
        int64_t offset
        int format
        const int64_t *storage_shape
        uint64_t storage_ndim
        void *data
    ctypedef struct services_t "aclnn_services":
        const pair_of_functions *pairs
        int n_pairs
        int (*fail)(int status, const char *message)
        void (*forked_by_python)()
        void (*close)()
    ctypedef struct c_executor "aclOpExecutor":
        pass
    ctypedef struct runtime_t "aclnn_runtime_table":
        unsigned version
        unsigned size
        int (*enqueue)(void *stream, const char *function, int (*run)(void *) noexcept nogil,
                       void *argument, void (*drop)(void *) noexcept nogil) noexcept nogil
        int (*is_redirected)(void *stream, const char *function) noexcept nogil
        int (*hold_memory)(const char *function, const char *name, const void *address,
                           size_t nbytes, void **block) noexcept nogil
        int (*memory_lives)(void *block) noexcept nogil
        void (*drop_memory)(void *block) noexcept nogil
        int (*fail)(int status, const char *message) noexcept nogil
        void *(*object_of)(void *handle) noexcept
        void (*use_memory)(void *block) noexcept nogil
        int (*memory_serves)(void *block) noexcept nogil
        void (*end_use_of_memory)(void *block) noexcept nogil
    ctypedef struct call_table_t "aclnn_call_table":
        int version
        int (*start)(const services_t *services) noexcept nogil
        int (*plan)(int pair, const argument_t *given, uint64_t *size,
                    c_executor **executor) noexcept nogil
        int (*run)(int pair, void *workspace, uint64_t size, c_executor *executor,
                   void *stream) noexcept nogil
        int (*set_repeatable)(c_executor *executor) noexcept nogil
        int (*destroy)(c_executor *executor) noexcept nogil
        int (*set_address)(const char *function, c_executor *executor, const size_t *place,
                           int n_place, void *given, void *address) noexcept nogil
        int (*hold)(const char *function, const char *name, const c_tensor *tensor,
                    const void *address, void **block) noexcept nogil
        int (*refuse_tensor)(const char *function, const description_t *given) noexcept nogil
        int (*refuse_scalar)(const void *value, int dtype) noexcept nogil
        int (*weight_size)(const c_ints *shape, int dtype, uint64_t *size) noexcept nogil
        const runtime_t *runtime
        void (*note)(int function, const argument_t *given, int64_t result,
                     int is_before) noexcept nogil
        void (*end)() noexcept nogil
        const services_t *services
