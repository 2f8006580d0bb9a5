/* CANN's objects as structs: tensors, scalars, arrays and lists. Programs in C have pointers to them, classes in
 * Python hold one each; what makes, checks and changes them is here. */
#ifndef ACLNN_RUNTIME_OBJECTS_H
#define ACLNN_RUNTIME_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What an object is, in its first word: so that other pointers, and objects that were destroyed, are statuses in most
 * cases. */
enum {
    ACLNN_TENSOR = 0x41c1f001,
    ACLNN_SCALAR,
    ACLNN_INTS,
    ACLNN_FLOATS,
    ACLNN_BOOLS,
    ACLNN_TENSORS,
    ACLNN_SCALARS,
    ACLNN_EXECUTOR,
    ACLNN_DESTROYED = 0x41c1fdea
};

#define ACLNN_MOST_ELEMENTS ((int64_t)1 << 62) /* of a tensor, and what sizes, strides and offsets may be */
#define ACLNN_MOST_REACHED ((int64_t)1 << 58)  /* elements of any type that some memory may have */

/* A view of memory. Executors hold the tensors that phase one was given, so that it goes when the program has destroyed
 * it and the last of them is gone. */
struct aclTensor {
    unsigned magic;
    int references;
    int dtype, format;
    int ndim, storage_ndim;
    unsigned version;      /* counts descriptions: aclInitTensor */
    bool writable;
    int64_t offset;        /* elements */
    char *storage;         /* null: no data yet */
    void *block;           /* of the runtime's memory, held; null for memory of another kind, and where Python has an owner */
    int64_t *shape;        /* ndim sizes, ndim strides, then the storage's sizes */
    int64_t *strides;      /* elements */
    int64_t *storage_shape;
    int64_t own_numbers[]; /* where `shape` points to, until a longer description comes */
};

/* A number as stored, and in the forms that kernels take. */
struct aclScalar {
    unsigned magic;
    int dtype;
    bool is_real, is_whole;
    double exact, rounded; /* as it is, and rounded to float32 once; of complex numbers the real part */
    double imaginary;
    int64_t whole;         /* where it is whole */
    unsigned char bytes[16];
};

/* What arrays and lists begin with. */
struct aclnn_collection {
    unsigned magic;
    uint64_t size;
};

struct aclIntArray {
    unsigned magic;
    uint64_t size;
    int64_t values[];
};

struct aclFloatArray {
    unsigned magic;
    uint64_t size;
    float values[];
};

struct aclBoolArray {
    unsigned magic;
    uint64_t size;
    bool values[];
};

struct aclTensorList {
    unsigned magic;
    uint64_t size;
    struct aclTensor *items[];
};

struct aclScalarList {
    unsigned magic;
    uint64_t size;
    struct aclScalar *items[];
};

/* --- Descriptions ------------------------------------------------------------------------------------ */

static inline bool aclnn_is_size(int64_t value) { return value >= 0 && value <= ACLNN_MOST_ELEMENTS; }

static inline bool aclnn_are_sizes(const int64_t *values, uint64_t count) {
    for (uint64_t k = 0; k < count; k++)
        if (!aclnn_is_size(values[k])) return false;
    return true;
}

/* a * b and a + b, or more than any memory has. */
static inline int64_t aclnn_product(int64_t a, int64_t b) {
    int64_t found;
    return __builtin_mul_overflow(a, b, &found) || found > ACLNN_MOST_ELEMENTS ? ACLNN_MOST_ELEMENTS : found;
}
static inline int64_t aclnn_sum(int64_t a, int64_t b) {
    int64_t found;
    return __builtin_add_overflow(a, b, &found) || found > ACLNN_MOST_ELEMENTS ? ACLNN_MOST_ELEMENTS : found;
}

static inline void aclnn_row_major(const int64_t *shape, uint64_t ndim, int64_t *strides) {
    int64_t step = 1;
    for (uint64_t axis = ndim; axis-- > 0;) {
        strides[axis] = step;
        step = aclnn_product(step, shape[axis] > 1 ? shape[axis] : 1);
    }
}

static inline bool aclnn_has_none(const int64_t *shape, uint64_t ndim) {
    for (uint64_t axis = 0; axis < ndim; axis++)
        if (shape[axis] == 0) return true;
    return false;
}

/* Elements from the start of the storage to the last of the view; 0 for an empty one. */
static inline int64_t aclnn_elements_needed(const struct aclTensor *tensor) {
    int64_t last = tensor->offset;
    for (int axis = 0; axis < tensor->ndim; axis++) {
        if (tensor->shape[axis] == 0) return 0;
        last = aclnn_sum(last, aclnn_product(tensor->shape[axis] - 1, tensor->strides[axis]));
    }
    return aclnn_sum(last, 1);
}

/* Elements of the storage as it is declared. */
static inline int64_t aclnn_elements_declared(const struct aclTensor *tensor) {
    int64_t count = 1;
    if (aclnn_has_none(tensor->storage_shape, tensor->storage_ndim)) return 0;
    for (int axis = 0; axis < tensor->storage_ndim; axis++) count = aclnn_product(count, tensor->storage_shape[axis]);
    return count;
}

static inline bool aclnn_fits_storage(const struct aclTensor *tensor) {
    return aclnn_elements_needed(tensor) <= aclnn_elements_declared(tensor);
}

static inline bool aclnn_fits_memory(const struct aclTensor *tensor) {
    return aclnn_elements_needed(tensor) <= ACLNN_MOST_REACHED;
}

/* --- Tensors ----------------------------------------------------------------------------------------- */

/* A tensor without data, with room for a description of so many sizes; null where memory is short. */
static inline struct aclTensor *aclnn_new_tensor(size_t ndim, size_t storage_ndim) {
    struct aclTensor *made = (struct aclTensor *)malloc(sizeof *made + (2 * ndim + storage_ndim) * sizeof(int64_t));
    if (!made) return NULL;
    made->magic = ACLNN_TENSOR;
    made->references = 1;
    made->ndim = (int)ndim;
    made->storage_ndim = (int)storage_ndim;
    made->version = 0;
    made->writable = true;
    made->offset = 0;
    made->storage = NULL;
    made->block = NULL;
    made->shape = made->own_numbers;
    made->strides = made->shape + ndim;
    made->storage_shape = made->strides + ndim;
    return made;
}

static inline size_t aclnn_numbers(const struct aclTensor *tensor) {
    return 2 * (size_t)tensor->ndim + (size_t)tensor->storage_ndim;
}

/* The same view, of the same version, without data; null where memory is short. */
static inline struct aclTensor *aclnn_copy_tensor(const struct aclTensor *tensor) {
    struct aclTensor *made = aclnn_new_tensor((size_t)tensor->ndim, (size_t)tensor->storage_ndim);
    if (!made) return NULL;
    made->dtype = tensor->dtype;
    made->format = tensor->format;
    made->version = tensor->version;
    made->offset = tensor->offset;
    memcpy(made->shape, tensor->shape, aclnn_numbers(tensor) * sizeof(int64_t));
    return made;
}

static inline void aclnn_hold(struct aclTensor *tensor) {
    __atomic_fetch_add(&tensor->references, 1, __ATOMIC_RELAXED);
}

/* `drop` lets go of a block of the runtime's memory; null where it serves no more. */
static inline void aclnn_release(struct aclTensor *tensor, void (*drop)(void *block)) {
    if (__atomic_fetch_sub(&tensor->references, 1, __ATOMIC_ACQ_REL) != 1) return;
    if (tensor->block && drop) drop(tensor->block);
    if (tensor->shape != tensor->own_numbers) free(tensor->shape);
    tensor->magic = ACLNN_DESTROYED;
    free(tensor);
}

/* Takes another tensor's description and storage, as a new version; who calls sees to what keeps memory. -1 where
 * memory is short: nothing changes then. */
static inline int aclnn_describe_anew(struct aclTensor *tensor, const struct aclTensor *other) {
    size_t bytes = aclnn_numbers(other) * sizeof(int64_t);
    int64_t *numbers = (int64_t *)malloc(bytes ? bytes : 1);
    if (!numbers) return -1;
    memcpy(numbers, other->shape, bytes);
    if (tensor->shape != tensor->own_numbers) free(tensor->shape);
    tensor->version++; /* executors that planned for what it was find out */
    tensor->dtype = other->dtype;
    tensor->format = other->format;
    tensor->ndim = other->ndim;
    tensor->storage_ndim = other->storage_ndim;
    tensor->writable = other->writable;
    tensor->offset = other->offset;
    tensor->storage = other->storage;
    tensor->shape = numbers;
    tensor->strides = numbers + other->ndim;
    tensor->storage_shape = tensor->strides + other->ndim;
    return 0;
}

/* Gives a tensor that is still there the shape that a run has found: of elements without gaps, but that a dimension
 * which is the only one keeps its stride. No new description; -1 where memory is short. */
static inline int aclnn_reshape(struct aclTensor *tensor, const int64_t *shape, int ndim) {
    int64_t step = ndim == 1 && tensor->ndim == 1 ? tensor->strides[0] : 1, *numbers = tensor->shape;
    if (tensor->magic != ACLNN_TENSOR) return 0;
    if (ndim != tensor->ndim) {
        numbers = (int64_t *)malloc((2 * (size_t)ndim + (size_t)tensor->storage_ndim + 1) * sizeof(int64_t));
        if (!numbers) return -1;
        for (int k = 0; k < tensor->storage_ndim; k++) numbers[2 * ndim + k] = tensor->storage_shape[k];
        if (tensor->shape != tensor->own_numbers) free(tensor->shape);
        tensor->shape = numbers;
        tensor->strides = numbers + ndim;
        tensor->storage_shape = tensor->strides + ndim;
        tensor->ndim = ndim;
    }
    for (int axis = ndim; axis-- > 0;) {
        tensor->shape[axis] = shape[axis];
        tensor->strides[axis] = step;
        step *= shape[axis];
    }
    return 0;
}

/* --- Arrays and lists -------------------------------------------------------------------------------- */

/* A collection of so many items, which are still to come; null where memory is short. */
static inline void *aclnn_new_collection(unsigned magic, uint64_t size, size_t item) {
    struct aclnn_collection *made = NULL;
    if (size < (uint64_t)1 << 56) made = (struct aclnn_collection *)malloc(sizeof *made + size * item);
    if (!made) return NULL;
    made->magic = magic;
    made->size = size;
    return made;
}

static inline void aclnn_free_collection(void *collection) {
    ((struct aclnn_collection *)collection)->magic = ACLNN_DESTROYED;
    free(collection);
}

#endif
