/* Tensors, scalars, arrays and lists: made, asked and destroyed without an interpreter.

   What is right is found here; what is not goes to the functions in Python, which say what is wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "aclnn/opdev/op_errno.h"
#include "library.h"
#include "members.h"
#include "scalars.h"

/* Functions of programs are made of these, which are called as they are but for `own_`. */
#define NAME (__func__ + sizeof "own_" - 1)

/* Whether a pointer is what it has to be: null or another object is the status of most functions. */
#define IS(object, kind) ((object) != 0 && (object)->magic == (kind))

static aclnnStatus null_argument(const char *function, const char *name, int is_null) {
  return aclnn_fail(ACLNN_ERR_PARAM_NULLPTR, "%s: %s is %s", function, name,
                    is_null ? "null" : "destroyed, or of another type");
}

#define REFUSE_UNLESS(object, kind) \
  if (!IS(object, kind)) return null_argument(NAME, #object, (object) == 0)
#define REFUSE_NULL(pointer) \
  if ((pointer) == 0) return null_argument(NAME, #pointer, 1)

/* --- Tensors ----------------------------------------------------------------------------------- */

/* Programs count the storage of a view from its last element: of none, they come to a negative size. */
static int is_plausible(const aclnn_description *given) {
  return (given->shape || given->ndim == 0) && (given->storage_shape || given->storage_ndim == 0) &&
         given->ndim < (1u << 24) && given->storage_ndim < (1u << 24) &&
         aclnn_is_dtype(given->dtype) && aclnn_is_format(given->format) && aclnn_is_size(given->offset) &&
         aclnn_are_sizes(given->shape, given->ndim) &&
         (!given->strides || aclnn_are_sizes(given->strides, given->ndim)) &&
         (aclnn_are_sizes(given->storage_shape, given->storage_ndim) ||
          aclnn_has_none(given->shape, given->ndim));
}

static void (*drop_now(void))(void *) {
  const aclnn_call_table *table = __atomic_load_n(&aclnn_calls, __ATOMIC_ACQUIRE);
  return table ? table->runtime->drop_memory : 0;
}

/* Takes memory for a view; a status with a message where it does not fit. Without an interpreter there is
   no memory of the runtime's. */
static int take_memory(const char *function, const char *name, aclTensor *tensor, void *address) {
  const aclnn_call_table *table = __atomic_load_n(&aclnn_calls, __ATOMIC_ACQUIRE);
  void *block = 0;
  int status;
  if (address && table && (status = table->hold(function, name, tensor, address, &block))) return status;
  if (tensor->block && table) table->runtime->drop_memory(tensor->block);
  tensor->block = block;
  tensor->storage = address;
  return ACLNN_SUCCESS;
}

/* A tensor of a description without data, or null where it is not right. */
static aclTensor *new_tensor(const aclnn_description *given) {
  aclTensor *made;
  if (!is_plausible(given)) return 0;
  made = aclnn_new_tensor(given->ndim, given->storage_ndim);
  if (!made) return 0;
  made->dtype = given->dtype;
  made->format = given->format;
  made->offset = given->offset;
  if (given->ndim) memcpy(made->shape, given->shape, given->ndim * sizeof(int64_t));
  if (given->strides && given->ndim)
    memcpy(made->strides, given->strides, given->ndim * sizeof(int64_t));
  else
    aclnn_row_major(made->shape, given->ndim, made->strides);
  for (uint64_t axis = 0; axis < given->storage_ndim; axis++)
    made->storage_shape[axis] = given->storage_shape[axis] > 0 ? given->storage_shape[axis] : 0;
  if (aclnn_fits_memory(made) && (given->data || aclnn_fits_storage(made))) return made;
  free(made);
  return 0;
}

/* Programs declare storage as long as the view and leave the offset out: an allocation alone bounds views of
   it, and the declared storage bounds those of a program's own memory. */
static int is_bounded(const aclTensor *made) {
  return !made->storage || made->block || aclnn_fits_storage(made);
}

static aclnnStatus refuse(const char *function, const aclnn_description *given) {
  const aclnn_call_table *table = aclnn_table();
  if (!table) return ACLNN_ERR_INNER;
  return table->refuse_tensor(function, given);
}

aclTensor *own_aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t *stride, int64_t offset, aclFormat format,
                           const int64_t *storageDims, uint64_t storageDimsNum, void *tensorData) {
  const aclnn_description given = {viewDims, viewDimsNum, dataType,       stride,    offset,
                                   format,   storageDims, storageDimsNum, tensorData};
  aclTensor *made = new_tensor(&given);
  if (!made) {
    refuse(NAME, &given);
    return 0;
  }
  if (tensorData && take_memory(NAME, "tensorData", made, tensorData)) {
    free(made);
    return 0;
  }
  if (is_bounded(made)) return made;
  free(made);
  refuse(NAME, &given);
  return 0;
}

aclnnStatus own_aclInitTensor(aclTensor *tensor, const int64_t *viewDims, uint64_t viewDimsNum,
                          aclDataType dataType, const int64_t *stride, int64_t offset, aclFormat format,
                          const int64_t *storageDims, uint64_t storageDimsNum, void *tensorDataAddr) {
  const aclnn_description given = {viewDims, viewDimsNum, dataType,       stride,        offset,
                                   format,   storageDims, storageDimsNum, tensorDataAddr};
  aclTensor *made;
  REFUSE_UNLESS(tensor, ACLNN_TENSOR);
  made = new_tensor(&given);
  if (!made) return refuse(NAME, &given);
  if (take_memory(NAME, "tensorDataAddr", made, tensorDataAddr)) {
    free(made);
    return ACLNN_ERR_PARAM_INVALID;
  }
  if (!is_bounded(made)) {
    free(made);
    return refuse(NAME, &given);
  }
  if (aclnn_describe_anew(tensor, made)) {
    aclnn_release(made, drop_now());
    return aclnn_fail(ACLNN_ERR_INNER, "%s: memory is short", NAME);
  }
  if (tensor->block && drop_now()) drop_now()(tensor->block);
  tensor->block = made->block;
  free(made);
  return ACLNN_SUCCESS;
}

/* What executors hold stays until they are gone, though the program's pointer is no tensor any more. */
static void destroy_tensor(aclTensor *tensor) {
  tensor->magic = ACLNN_DESTROYED;
  aclnn_release(tensor, drop_now());
}

aclnnStatus own_aclDestroyTensor(const aclTensor *tensor) {
  if (!tensor) return ACLNN_SUCCESS;
  REFUSE_UNLESS(tensor, ACLNN_TENSOR);
  destroy_tensor((aclTensor *)tensor);
  return ACLNN_SUCCESS;
}

aclnnStatus own_aclSetRawTensorAddr(aclTensor *tensor, void *addr) {
  REFUSE_UNLESS(tensor, ACLNN_TENSOR);
  return take_memory(NAME, "addr", tensor, addr) ? ACLNN_ERR_PARAM_INVALID : ACLNN_SUCCESS;
}

aclnnStatus own_aclGetRawTensorAddr(const aclTensor *tensor, void **addr) {
  REFUSE_UNLESS(tensor, ACLNN_TENSOR);
  REFUSE_NULL(addr);
  *addr = tensor->storage;
  return ACLNN_SUCCESS;
}

/* Memory that programs in C++ free by `delete[]`: of their operator new[], where there is one. */
static void *new_array(size_t bytes) {
  static void *(*volatile allocate)(size_t);
  if (!allocate) {
    void *found = dlsym(RTLD_DEFAULT, sizeof(size_t) == 8 ? "_Znam" : "_Znaj");
    if (!found) return malloc(bytes);
    allocate = (void *(*)(size_t))found;
  }
  return allocate(bytes);
}

static aclnnStatus copy_numbers(const int64_t *numbers, int count, int64_t **result,
                                uint64_t *result_count) {
  int64_t *copy = new_array((count ? (size_t)count : 1) * sizeof(int64_t));
  if (!copy) return aclnn_fail(ACLNN_ERR_INNER, "memory is short");
  if (count) memcpy(copy, numbers, (size_t)count * sizeof(int64_t));
  *result = copy;
  *result_count = (uint64_t)count;
  return ACLNN_SUCCESS;
}

aclnnStatus own_aclGetViewShape(const aclTensor *tensor, int64_t **viewDims, uint64_t *viewDimsNum) {
  REFUSE_UNLESS(tensor, ACLNN_TENSOR);
  REFUSE_NULL(viewDims);
  REFUSE_NULL(viewDimsNum);
  return copy_numbers(tensor->shape, tensor->ndim, viewDims, viewDimsNum);
}

aclnnStatus own_aclGetStorageShape(const aclTensor *tensor, int64_t **storageDims,
                               uint64_t *storageDimsNum) {
  REFUSE_UNLESS(tensor, ACLNN_TENSOR);
  REFUSE_NULL(storageDims);
  REFUSE_NULL(storageDimsNum);
  return copy_numbers(tensor->storage_shape, tensor->storage_ndim, storageDims, storageDimsNum);
}

aclnnStatus own_aclGetViewStrides(const aclTensor *tensor, int64_t **stridesValue, uint64_t *stridesNum) {
  REFUSE_UNLESS(tensor, ACLNN_TENSOR);
  REFUSE_NULL(stridesValue);
  REFUSE_NULL(stridesNum);
  return copy_numbers(tensor->strides, tensor->ndim, stridesValue, stridesNum);
}

aclnnStatus own_aclGetViewOffset(const aclTensor *tensor, int64_t *offset) {
  REFUSE_UNLESS(tensor, ACLNN_TENSOR);
  REFUSE_NULL(offset);
  *offset = tensor->offset;
  return ACLNN_SUCCESS;
}

aclnnStatus own_aclGetFormat(const aclTensor *tensor, aclFormat *format) {
  REFUSE_UNLESS(tensor, ACLNN_TENSOR);
  REFUSE_NULL(format);
  *format = (aclFormat)tensor->format;
  return ACLNN_SUCCESS;
}

aclnnStatus own_aclGetDataType(const aclTensor *tensor, aclDataType *dataType) {
  REFUSE_UNLESS(tensor, ACLNN_TENSOR);
  REFUSE_NULL(dataType);
  *dataType = (aclDataType)tensor->dtype;
  return ACLNN_SUCCESS;
}

/* --- Scalars ----------------------------------------------------------------------------------- */

aclScalar *own_aclCreateScalar(void *value, aclDataType dataType) {
  aclScalar *made = value ? malloc(sizeof *made) : 0;
  if (made && aclnn_read_scalar(made, dataType, value)) return made;
  free(made);
  const aclnn_call_table *table = aclnn_table();
  if (table) table->refuse_scalar(value, dataType);
  return 0;
}

static void destroy_scalar(aclScalar *scalar) {
  scalar->magic = ACLNN_DESTROYED;
  free(scalar);
}

aclnnStatus own_aclDestroyScalar(const aclScalar *scalar) {
  if (!scalar) return ACLNN_SUCCESS;
  REFUSE_UNLESS(scalar, ACLNN_SCALAR);
  destroy_scalar((aclScalar *)scalar);
  return ACLNN_SUCCESS;
}

/* --- Arrays ------------------------------------------------------------------------------------ */

#define ARRAY_FUNCTIONS(Array, kind, element)                                                     \
  acl##Array *own_aclCreate##Array(const element *value, uint64_t size) {                             \
    acl##Array *made;                                                                             \
    if (!value && size) {                                                                         \
      aclnn_fail(ACLNN_ERR_PARAM_NULLPTR, "%s: value is null, but size is %llu", NAME,        \
                 (unsigned long long)size);                                                       \
      return 0;                                                                                   \
    }                                                                                             \
    made = aclnn_new_collection(kind, size, sizeof(element));                                     \
    if (!made) {                                                                                  \
      aclnn_fail(ACLNN_ERR_INNER, "%s: memory is short for %llu elements", NAME,              \
                 (unsigned long long)size);                                                       \
      return 0;                                                                                   \
    }                                                                                             \
    if (size) memcpy(made->values, value, size * sizeof(element));                                \
    return made;                                                                                  \
  }                                                                                               \
                                                                                                  \
  aclnnStatus own_aclDestroy##Array(const acl##Array *array) {                                        \
    if (!array) return ACLNN_SUCCESS;                                                             \
    REFUSE_UNLESS(array, kind);                                                                   \
    aclnn_free_collection((acl##Array *)array);                                                   \
    return ACLNN_SUCCESS;                                                                         \
  }                                                                                               \
                                                                                                  \
  aclnnStatus own_aclGet##Array##Size(const acl##Array *array, uint64_t *size) {                      \
    REFUSE_UNLESS(array, kind);                                                                   \
    REFUSE_NULL(size);                                                                            \
    *size = array->size;                                                                          \
    return ACLNN_SUCCESS;                                                                         \
  }

ARRAY_FUNCTIONS(IntArray, ACLNN_INTS, int64_t)
ARRAY_FUNCTIONS(FloatArray, ACLNN_FLOATS, float)
ARRAY_FUNCTIONS(BoolArray, ACLNN_BOOLS, bool)

/* --- Lists, which own their elements ------------------------------------------------------------- */

#define LIST_FUNCTIONS(List, kind, item, item_kind, name, destroy)                                \
  acl##List *own_aclCreate##List(const acl##item *const *value, uint64_t size) {                      \
    acl##List *made;                                                                              \
    if (!value && size) {                                                                         \
      aclnn_fail(ACLNN_ERR_PARAM_NULLPTR, "%s: value is null, but size is %llu", NAME,        \
                 (unsigned long long)size);                                                       \
      return 0;                                                                                   \
    }                                                                                             \
    for (uint64_t k = 0; k < size; k++) {                                                         \
      if (IS(value[k], item_kind)) continue;                                                      \
      aclnn_fail(ACLNN_ERR_PARAM_NULLPTR, "%s: value[%llu] is %s", NAME, (unsigned long long)k, \
                 value[k] ? "destroyed, or of another type" : "null");                            \
      return 0;                                                                                   \
    }                                                                                             \
    made = aclnn_new_collection(kind, size, sizeof(void *));                                      \
    if (!made) {                                                                                  \
      aclnn_fail(ACLNN_ERR_INNER, "%s: memory is short for %llu elements", NAME,              \
                 (unsigned long long)size);                                                       \
      return 0;                                                                                   \
    }                                                                                             \
    for (uint64_t k = 0; k < size; k++) made->items[k] = (acl##item *)value[k];                   \
    return made;                                                                                  \
  }                                                                                               \
                                                                                                  \
  aclnnStatus own_aclDestroy##List(const acl##List *array) {                                          \
    if (!array) return ACLNN_SUCCESS;                                                             \
    REFUSE_UNLESS(array, kind);                                                                   \
    for (uint64_t k = 0; k < array->size; k++)                                                    \
      if (IS(array->items[k], item_kind)) destroy(array->items[k]);                               \
    aclnn_free_collection((acl##List *)array);                                                    \
    return ACLNN_SUCCESS;                                                                         \
  }                                                                                               \
                                                                                                  \
  aclnnStatus own_aclGet##List##Size(const acl##List *name, uint64_t *size) {                         \
    REFUSE_UNLESS(name, kind);                                                                    \
    REFUSE_NULL(size);                                                                            \
    *size = name->size;                                                                           \
    return ACLNN_SUCCESS;                                                                         \
  }

LIST_FUNCTIONS(TensorList, ACLNN_TENSORS, Tensor, ACLNN_TENSOR, tensorList, destroy_tensor)
LIST_FUNCTIONS(ScalarList, ACLNN_SCALARS, Scalar, ACLNN_SCALAR, scalarList, destroy_scalar)
