"""The structures of DLPack: version 1 and its C exchange interface."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from *:
    """
    #include <stdint.h>
    typedef struct { int32_t device_type, device_id; } DLDevice;
    typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
    typedef struct {
        void *data; DLDevice device; int32_t ndim; DLDataType dtype;
        int64_t *shape; int64_t *strides; uint64_t byte_offset;
    } DLTensor;
    typedef struct DLManagedTensor {
        DLTensor dl_tensor; void *manager_ctx; void (*deleter)(struct DLManagedTensor *);
    } DLManagedTensor;
    typedef struct { uint32_t major, minor; } DLPackVersion;
    typedef struct DLManagedTensorVersioned {
        DLPackVersion version; void *manager_ctx;
        void (*deleter)(struct DLManagedTensorVersioned *);
        uint64_t flags; DLTensor dl_tensor;
    } DLManagedTensorVersioned;
    typedef struct DLPackExchangeAPI {
        DLPackVersion version;
        struct DLPackExchangeAPI *previous;
        int (*allocate)(DLTensor *prototype, DLManagedTensorVersioned **out, void *context,
                        void (*set_error)(void *context, const char *kind, const char *message));
        int (*managed_from_object)(void *object, DLManagedTensorVersioned **out);
        int (*object_from_managed)(DLManagedTensorVersioned *tensor, void **object);
        int (*tensor_from_object)(void *object, DLTensor *out);
        int (*current_stream)(int32_t device_type, int32_t device_id, void **stream);
    } DLPackExchangeAPI;
    """
    ctypedef struct DLDevice:
        int32_t device_type
        int32_t device_id
    ctypedef struct DLDataType:
        uint8_t code
        uint8_t bits
        uint16_t lanes
    ctypedef struct DLTensor:
        void *data
        DLDevice device
        int32_t ndim
        DLDataType dtype
        int64_t *shape
        int64_t *strides
        uint64_t byte_offset
    ctypedef struct DLManagedTensor:
        DLTensor dl_tensor
        void *manager_ctx
        void (*deleter)(DLManagedTensor *) noexcept nogil
    ctypedef struct DLPackVersion:
        uint32_t major
        uint32_t minor
    ctypedef struct DLManagedTensorVersioned:
        DLPackVersion version
        void *manager_ctx
        void (*deleter)(DLManagedTensorVersioned *) noexcept nogil
        uint64_t flags
        DLTensor dl_tensor
    ctypedef struct DLPackExchangeAPI:
        # What a type offers in `__dlpack_c_exchange_api__`. They need the GIL, and have set an
        # exception where they do not give 0.
        DLPackVersion version
        int (*managed_from_object)(void *, DLManagedTensorVersioned **) noexcept
        int (*object_from_managed)(DLManagedTensorVersioned *, void **) noexcept
        int (*tensor_from_object)(void *, DLTensor *) noexcept
