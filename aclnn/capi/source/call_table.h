/* What the library and the Cython module `aclnn.capi._call_table` know of each other. */
#ifndef ACLNN_CALL_TABLE_H
#define ACLNN_CALL_TABLE_H

#define ACLNN_HAVE_ACL_TYPES /* which runtime_table.h has, too */
#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "objects.h"
#include "runtime_table.h"

enum { ACLNN_CALL_TABLE_VERSION = 2 };

/* An argument of phase one; letters in `aclnn_pair.tags` say which member counts. */
typedef union aclnn_argument {
  const aclTensor *tensor;            /* T */
  const aclScalar *scalar;            /* S */
  const aclIntArray *ints;            /* I */
  const aclBoolArray *bools;          /* B */
  const aclTensorList *tensors;       /* L */
  int64_t whole;                      /* i, u, b: bool, d: aclDataType */
  double real;                        /* f */
  const char *text;                   /* s */
  const void *pointer;
} aclnn_argument;

typedef struct aclnn_pair {
  const char *name;
  const char *tags;
} aclnn_pair;

/* A tensor's description as aclCreateTensor takes it. */
typedef struct aclnn_description {
  const int64_t *shape;
  uint64_t ndim;
  int dtype;
  const int64_t *strides;
  int64_t offset;
  int format;
  const int64_t *storage_shape;
  uint64_t storage_ndim;
  void *data;
} aclnn_description;

/* What the library does for the module, as long as the process lives. */
typedef struct aclnn_services {
  const aclnn_pair *pairs;
  int n_pairs;
  /* The message of the calling thread's failure; gives the status. */
  int (*fail)(int status, const char *message);
  /* Whether the calling process was forked by Python, which leaves the interpreter in order. */
  void (*forked_by_python)(void);
  /* From now on functions answer statuses: the interpreter ends. */
  void (*close)(void);
  /* Both phases, for the library of further operators. */
  aclnnStatus (*plan)(int pair, const aclnn_argument *given, uint64_t *workspace_size,
                      aclOpExecutor **executor);
  aclnnStatus (*run)(int pair, void *workspace, uint64_t workspace_size, aclOpExecutor *executor,
                     aclrtStream stream);
} aclnn_services;

/* Functions that any thread may call without the interpreter's lock; they take it where they need it. */
typedef struct aclnn_call_table {
  int version;
  /* Takes the services, and prepares what the calls need; 0, or -1 with a message. */
  int (*start)(const aclnn_services *services);
  aclnnStatus (*plan)(int pair, const aclnn_argument *given, uint64_t *workspace_size,
                      aclOpExecutor **executor);
  aclnnStatus (*run)(int pair, void *workspace, uint64_t workspace_size, aclOpExecutor *executor,
                     aclrtStream stream);
  aclnnStatus (*set_repeatable)(aclOpExecutor *executor);
  aclnnStatus (*destroy)(aclOpExecutor *executor);
  /* Binds other memory to an operand; `place` has one index, or that of a list and one within. */
  aclnnStatus (*set_address)(const char *function, aclOpExecutor *executor, const size_t *place,
                             int n_place, void *given, void *address);
  /* Holds the block of the runtime's memory that a view lies in: null for memory of another kind. A
     status with a message where the view goes past its end, or the memory was freed. */
  int (*hold)(const char *function, const char *name, const aclTensor *tensor, const void *address,
              void **block);
  /* Statuses and messages for what the library found wrong. */
  aclnnStatus (*refuse_tensor)(const char *function, const aclnn_description *description);
  aclnnStatus (*refuse_scalar)(const void *value, int dtype);
  aclnnStatus (*weight_size)(const aclIntArray *shape, int dtype, uint64_t *size);
  /* The runtime's functions. */
  const aclnn_runtime_table *runtime;
  /* Records a call. */
  void (*note)(int function, const aclnn_argument *given, int64_t result, int is_before);
  /* At the end of the process: the report, if one is asked for. */
  void (*end)(void);
  /* What `start` was given. */
  const aclnn_services *services;
} aclnn_call_table;

#endif
