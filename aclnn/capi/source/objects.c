/* Tensors, scalars, arrays and lists: made, asked and destroyed without an interpreter.

   What is right is found here; what is not goes to the functions in Python, which say what is wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "aclnn/opdev/op_errno.h"
#include "library.h"
#include "members.h"

/* Functions of programs are made of these, which are called as they are but for `own_`. */
#define NAME (__func__ + sizeof "own_" - 1)

#define MOST_ELEMENTS ((int64_t)1 << 62)
#define MOST_BYTES ((int64_t)1 << 58)

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

static int is_size(int64_t value) { return value >= 0 && value <= MOST_ELEMENTS; }

static int are_sizes(const int64_t *values, uint64_t count) {
  for (uint64_t k = 0; k < count; k++)
    if (!is_size(values[k])) return 0;
  return 1;
}

/* a * b, or more than any memory has. */
static int64_t product(int64_t a, int64_t b) {
  int64_t found;
  if (__builtin_mul_overflow(a, b, &found) || found > MOST_ELEMENTS) return MOST_ELEMENTS;
  return found;
}

static int64_t sum(int64_t a, int64_t b) {
  int64_t found;
  if (__builtin_add_overflow(a, b, &found) || found > MOST_ELEMENTS) return MOST_ELEMENTS;
  return found;
}

static void row_major(const int64_t *shape, uint64_t ndim, int64_t *strides) {
  int64_t step = 1;
  for (uint64_t axis = ndim; axis-- > 0;) {
    strides[axis] = step;
    step = product(step, shape[axis] > 1 ? shape[axis] : 1);
  }
}

/* Elements from the start of the storage to the last of a view. */
static int64_t elements_needed(const int64_t *shape, const int64_t *strides, uint64_t ndim,
                               int64_t offset) {
  int64_t last = offset;
  for (uint64_t axis = 0; axis < ndim; axis++) {
    if (shape[axis] == 0) return 0;
    last = sum(last, product(shape[axis] - 1, strides[axis]));
  }
  return sum(last, 1);
}

static int has_no_elements(const aclnn_description *given) {
  for (uint64_t axis = 0; axis < given->ndim; axis++)
    if (given->shape[axis] == 0) return 1;
  return 0;
}

static int fits_storage(const aclnn_description *given, const int64_t *strides) {
  int64_t room = 1;
  if (has_no_elements(given)) return 1;
  for (uint64_t axis = 0; axis < given->storage_ndim; axis++) {
    if (given->storage_shape[axis] == 0) room = 0;
    room = product(room, given->storage_shape[axis]);
  }
  return elements_needed(given->shape, strides, given->ndim, given->offset) <= room;
}

static int is_plausible(const aclnn_description *given) {
  return (given->shape || given->ndim == 0) && (given->storage_shape || given->storage_ndim == 0) &&
         given->ndim < (1u << 24) && given->storage_ndim < (1u << 24) &&
         aclnn_is_dtype(given->dtype) && aclnn_is_format(given->format) && is_size(given->offset) &&
         are_sizes(given->shape, given->ndim) &&
         (!given->strides || are_sizes(given->strides, given->ndim)) &&
         (are_sizes(given->storage_shape, given->storage_ndim) || has_no_elements(given));
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
  size_t ndim = given->ndim, storage_ndim = given->storage_ndim;
  aclTensor *made;
  if (!is_plausible(given)) return 0;
  made = malloc(sizeof *made + (2 * ndim + storage_ndim) * sizeof(int64_t));
  if (!made) return 0;
  made->shape = made->own_numbers;
  made->strides = made->shape + ndim;
  made->storage_shape = made->strides + ndim;
  if (ndim) memcpy(made->shape, given->shape, ndim * sizeof(int64_t));
  if (given->strides && ndim)
    memcpy(made->strides, given->strides, ndim * sizeof(int64_t));
  else
    row_major(made->shape, ndim, made->strides);
  if (storage_ndim)
    memcpy(made->storage_shape, given->storage_shape, storage_ndim * sizeof(int64_t));
  /* Programs count the storage of a view from its last element: of none, they come to a negative size. */
  for (size_t axis = 0; axis < storage_ndim; axis++)
    if (made->storage_shape[axis] < 0) made->storage_shape[axis] = 0;
  made->magic = ACLNN_TENSOR;
  made->references = 1;
  made->dtype = given->dtype;
  made->format = given->format;
  made->ndim = (int)ndim;
  made->storage_ndim = (int)storage_ndim;
  made->version = 0;
  made->offset = given->offset;
  made->storage = 0;
  made->block = 0;
  if (elements_needed(made->shape, made->strides, ndim, made->offset) < MOST_BYTES &&
      (given->data || fits_storage(given, made->strides)))
    return made;
  free(made);
  return 0;
}

/* Programs declare storage as long as the view and leave the offset out: an allocation alone bounds views of
   it, and the declared storage bounds those of a program's own memory. */
static int is_bounded(const aclTensor *made, const aclnn_description *given) {
  return !made->storage || made->block || fits_storage(given, made->strides);
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
  if (is_bounded(made, &given)) return made;
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
  int64_t *numbers;
  size_t bytes;
  REFUSE_UNLESS(tensor, ACLNN_TENSOR);
  made = new_tensor(&given);
  if (!made) return refuse(NAME, &given);
  if (take_memory(NAME, "tensorDataAddr", made, tensorDataAddr)) {
    free(made);
    return ACLNN_ERR_PARAM_INVALID;
  }
  if (!is_bounded(made, &given)) {
    free(made);
    return refuse(NAME, &given);
  }
  bytes = (2 * (size_t)made->ndim + (size_t)made->storage_ndim) * sizeof(int64_t);
  numbers = malloc(bytes ? bytes : 1);
  if (!numbers) {
    free(made);
    return aclnn_fail(ACLNN_ERR_INNER, "%s: memory is short", NAME);
  }
  memcpy(numbers, made->shape, bytes);
  if (tensor->shape != tensor->own_numbers) free(tensor->shape);
  tensor->version++; /* executors that planned for what it was find out */
  tensor->dtype = made->dtype;
  tensor->format = made->format;
  tensor->ndim = made->ndim;
  tensor->storage_ndim = made->storage_ndim;
  tensor->offset = made->offset;
  if (tensor->block && drop_now()) drop_now()(tensor->block);
  tensor->block = made->block;
  tensor->storage = made->storage;
  tensor->shape = numbers;
  tensor->strides = numbers + made->ndim;
  tensor->storage_shape = tensor->strides + made->ndim;
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

static double of_float_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static double of_float16(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double value;
  if (exponent == 31)
    value = fraction ? NAN : INFINITY;
  else if (exponent)
    value = ldexp(1024 + fraction, exponent - 25);
  else
    value = ldexp(fraction, -24);
  return bits >> 15 ? -value : value;
}

static void take_real(aclScalar *scalar, double value) {
  scalar->is_real = true;
  scalar->exact = value;
  scalar->rounded = (float)value;
}

static void take_whole(aclScalar *scalar, int64_t value) {
  scalar->is_real = scalar->is_whole = true;
  scalar->exact = (double)value;
  scalar->rounded = (float)value;
  scalar->whole = value;
}

static void take_unsigned(aclScalar *scalar, uint64_t value) {
  if (value <= INT64_MAX) {
    take_whole(scalar, (int64_t)value);
    return;
  }
  scalar->is_real = true;
  scalar->exact = (double)value;
  scalar->rounded = (float)value;
}

#define READ(type)                              \
  type found;                                   \
  memcpy(&found, value, sizeof found);          \
  memcpy(scalar->bytes, value, sizeof found)

/* Reads one element of a dtype that scalars can have; 0 for others. */
static int read_scalar(aclScalar *scalar, const void *value) {
  switch (scalar->dtype) {
    case ACL_FLOAT: { READ(float); take_real(scalar, found); return 1; }
    case ACL_DOUBLE: { READ(double); take_real(scalar, found); return 1; }
    case ACL_FLOAT16: { READ(uint16_t); take_real(scalar, of_float16(found)); return 1; }
    case ACL_BF16: { READ(uint16_t); take_real(scalar, of_float_bits((uint32_t)found << 16)); return 1; }
    case ACL_INT8: { READ(int8_t); take_whole(scalar, found); return 1; }
    case ACL_INT16: { READ(int16_t); take_whole(scalar, found); return 1; }
    case ACL_INT32: { READ(int32_t); take_whole(scalar, found); return 1; }
    case ACL_INT64: { READ(int64_t); take_whole(scalar, found); return 1; }
    case ACL_UINT8: { READ(uint8_t); take_whole(scalar, found); return 1; }
    case ACL_UINT16: { READ(uint16_t); take_whole(scalar, found); return 1; }
    case ACL_UINT32: { READ(uint32_t); take_whole(scalar, found); return 1; }
    case ACL_UINT64: { READ(uint64_t); take_unsigned(scalar, found); return 1; }
    case ACL_BOOL: { READ(uint8_t); take_whole(scalar, found != 0); return 1; }
    case ACL_COMPLEX64: {
      READ(struct { float real; float imaginary; });
      scalar->exact = found.real;
      scalar->imaginary = found.imaginary;
      return 1;
    }
    case ACL_COMPLEX128: {
      READ(struct { double real; double imaginary; });
      scalar->exact = found.real;
      scalar->imaginary = found.imaginary;
      return 1;
    }
    default:
      return 0;
  }
}

aclScalar *own_aclCreateScalar(void *value, aclDataType dataType) {
  aclScalar *made = value ? calloc(1, sizeof *made) : 0;
  if (made) {
    made->magic = ACLNN_SCALAR;
    made->dtype = dataType;
    if (read_scalar(made, value)) return made;
    free(made);
  }
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
    made = size < (uint64_t)1 << 56 ? malloc(sizeof *made + size * sizeof(element)) : 0;          \
    if (!made) {                                                                                  \
      aclnn_fail(ACLNN_ERR_INNER, "%s: memory is short for %llu elements", NAME,              \
                 (unsigned long long)size);                                                       \
      return 0;                                                                                   \
    }                                                                                             \
    made->magic = kind;                                                                           \
    made->size = size;                                                                            \
    if (size) memcpy(made->values, value, size * sizeof(element));                                \
    return made;                                                                                  \
  }                                                                                               \
                                                                                                  \
  aclnnStatus own_aclDestroy##Array(const acl##Array *array) {                                        \
    if (!array) return ACLNN_SUCCESS;                                                             \
    REFUSE_UNLESS(array, kind);                                                                   \
    ((acl##Array *)array)->magic = ACLNN_DESTROYED;                                               \
    free((acl##Array *)array);                                                                    \
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
    made = size < (uint64_t)1 << 56 ? malloc(sizeof *made + size * sizeof(void *)) : 0;           \
    if (!made) {                                                                                  \
      aclnn_fail(ACLNN_ERR_INNER, "%s: memory is short for %llu elements", NAME,              \
                 (unsigned long long)size);                                                       \
      return 0;                                                                                   \
    }                                                                                             \
    made->magic = kind;                                                                           \
    made->size = size;                                                                            \
    for (uint64_t k = 0; k < size; k++) made->items[k] = (acl##item *)value[k];                   \
    return made;                                                                                  \
  }                                                                                               \
                                                                                                  \
  aclnnStatus own_aclDestroy##List(const acl##List *array) {                                          \
    if (!array) return ACLNN_SUCCESS;                                                             \
    REFUSE_UNLESS(array, kind);                                                                   \
    for (uint64_t k = 0; k < array->size; k++)                                                    \
      if (IS(array->items[k], item_kind)) destroy(array->items[k]);                               \
    ((acl##List *)array)->magic = ACLNN_DESTROYED;                                                \
    free((acl##List *)array);                                                                     \
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
