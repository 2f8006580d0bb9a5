/* The library of further operators: their functions, run by the library that has the runtime. */
#ifndef ACLNN_FURTHER_OPERATORS_H
#define ACLNN_FURTHER_OPERATORS_H

#include "call_table.h"

/* Its pairs have the numbers from `aclnn_first_pair` on among those of both libraries. */
extern const int aclnn_first_pair, aclnn_n_own_pairs;
extern const aclnn_pair aclnn_own_pairs[];

aclnnStatus aclnn_plan(int pair, const aclnn_argument *given, uint64_t *workspace_size,
                       aclOpExecutor **executor);
aclnnStatus aclnn_run(int pair, void *workspace, uint64_t workspace_size, aclOpExecutor *executor,
                      aclrtStream stream);

#endif
