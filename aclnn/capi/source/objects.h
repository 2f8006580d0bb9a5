/* Tensors, scalars, arrays and lists as structs in C, which need no interpreter. */
#ifndef ACLNN_OBJECTS_H
#define ACLNN_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* What an object is, in its first word: so that other pointers, and objects that were destroyed, are
   statuses in most cases. */
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

/* A view of memory. Executors hold the tensors that phase one was given, so that it goes when the
   program has destroyed it and the last of them is gone. */
struct aclTensor {
  unsigned magic;
  int references;
  int dtype, format;
  int ndim, storage_ndim;
  unsigned version;          /* counts descriptions: aclInitTensor */
  int64_t offset;            /* elements */
  char *storage;             /* null: no data yet */
  void *block;               /* of the runtime's memory, held; null for memory of another kind */
  int64_t *shape;            /* ndim sizes, ndim strides, then the storage's sizes */
  int64_t *strides;          /* elements */
  int64_t *storage_shape;
  int64_t own_numbers[];     /* where `shape` points to, until a longer description comes */
};

/* A number as stored, and in the forms that kernels take. */
struct aclScalar {
  unsigned magic;
  int dtype;
  bool is_real, is_whole;
  double exact, rounded;     /* as it is, and rounded to float32 once; of complex numbers the real part */
  double imaginary;
  int64_t whole;             /* where it is whole */
  unsigned char bytes[16];
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

/* Gives a tensor that is still there the shape that a run has found: of elements without gaps, but that a
   dimension which is the only one keeps its stride. No new description; -1 where memory is short. */
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

#endif
