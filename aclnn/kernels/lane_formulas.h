/* Operators by lanes, a header for each family, for float32 results and for halves: loaded, computed,
 * rounded and stored in one go by the loops of `lane_loops.h`.
 *
 * A loop tells whether some element is suspect: not finite, smaller than what its parts can be told
 * apart in, or outside the range of its formula. `..._suspect` tells which, from an element's
 * inputs and what the loop made of it. Suspect and doubtful elements are computed again in double. So
 * no lane branches, and unusual values cost nothing until they occur.
 */
#ifndef ACLNN_LANE_FORMULAS_H
#define ACLNN_LANE_FORMULAS_H

#include "lane_elu.h"
#include "lane_gelu.h"
#include "lane_hardshrink.h"
#include "lane_leaky_relu.h"
#include "lane_logit.h"

/* Prepares parameters from a node's numbers, which they hold already, for elements of a kind that all
 * operands have; SINGLE, if they differ. */
typedef void (*prepare_fn)(params_t *, kind_t);
typedef void (*mark_fn)(
    const unaligned_float *, const unaligned_float *, const unaligned_float *, uint16_t *, ptrdiff_t,
    const double *);

/* The form for registers of a formula of `formulas.pxd`: its loops, some of which may be NULL; the
 * function that prepares parameters for them or NULL; the one that marks elements, or NULL where it leaves
 * none; and the one that does so where results are singles, or NULL where that is the same one.
 * hardshrink, which needs no more than bits, has loops without registers too. */
typedef struct { const lane_loops_t *loops; prepare_fn prepare; mark_fn mark, mark_singles; } lane_form_t;

static const struct { const char *formula; lane_form_t form; } LANE_FORMS[] = {
    HARDSHRINK_FORMS
#ifdef LANES
    ELU_FORMS
    GELU_FORMS
    LEAKY_RELU_FORMS
    LOGIT_FORMS
#endif
    { NULL, { NULL, NULL, NULL, NULL } },
};

static inline lane_form_t lane_form_of(const char *formula) {
    ptrdiff_t k = 0;
    while (LANE_FORMS[k].formula && strcmp(LANE_FORMS[k].formula, formula) != 0) k++;
    return LANE_FORMS[k].form;
}

#endif
