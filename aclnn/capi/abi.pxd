"""Declarations of `call_table.h`."""

from libc.stdint cimport int64_t, uint64_t

from aclnn.acl.objects cimport c_bools, c_ints, c_scalar, c_tensor, c_tensors

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
