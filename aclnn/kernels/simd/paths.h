/* Operators by lanes, a header for each family, for float32 results and for halves: loaded, computed,
 * rounded and stored in one go by the loops of `simd/loops.h`.
 *
 * A loop tells whether some element is suspect: not finite, smaller than what its parts can be told
 * apart in, or outside the range of its formula. `..._is_exceptional` tells which, from an element's
 * inputs and what the loop made of it. Suspect and doubtful elements are computed again in double. So
 * no lane branches, and unusual values cost nothing until they occur.
 */
#ifndef ACLNN_SIMD_PATHS_H
#define ACLNN_SIMD_PATHS_H

#include "simd/elu.h"
#include "simd/gelu.h"
#include "simd/hardshrink.h"
#include "simd/leaky_relu.h"
#include "simd/logit.h"

/* Prepares parameters from a node's numbers, which they hold already, for elements of a kind that all
 * operands have; SINGLE, if they differ. */
typedef void (*prepare_fn)(params_t *, elem_type);
typedef void (*classify_fn)(
    const unaligned_float *, const unaligned_float *, const unaligned_float *, uint16_t *, ptrdiff_t,
    const double *);

/* The form for registers of a formula of `formulas.pxd`: its loops, some of which may be NULL; the
 * function that prepares parameters for them or NULL; the one that marks elements, or NULL where it leaves
 * none; and the one that does so where results are singles, or NULL where that is the same one.
 * hardshrink, which needs no more than bits, has loops without registers too. */
typedef struct { const simd_loops_t *loops; prepare_fn prepare; classify_fn classify, classify_f32; } simd_path_t;

static const struct { const char *formula; simd_path_t form; } SIMD_PATHS[] = {
    HARDSHRINK_PATHS
#ifdef LANES
    ELU_PATHS
    GELU_PATHS
    LEAKY_RELU_PATHS
    LOGIT_PATHS
#endif
    { NULL, { NULL, NULL, NULL, NULL } },
};

static inline simd_path_t simd_path_of(const char *formula) {
    ptrdiff_t k = 0;
    while (SIMD_PATHS[k].formula && strcmp(SIMD_PATHS[k].formula, formula) != 0) k++;
    return SIMD_PATHS[k].form;
}

#endif
