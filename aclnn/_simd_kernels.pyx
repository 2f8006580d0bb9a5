"""Fast paths of formulas that people run most, over vectors.

Elements are loaded, converted, computed, rounded and stored vector by vector (`simd/loops.pxd`);
the formulas are inline functions on vectors, in a header for each family.  What a path cannot
round with certainty, and exceptional cases, it leaves to the plain loops in double.

This file is compiled once for each instruction set that has vectors of eight floats or more, each
time into a module of its own, where every `inline` function is inlined.
"""

from aclnn.kernels.simd.elu cimport (
    classify_elu,
    classify_elu_backward,
    elu_backward_bf16,
    elu_backward_f16,
    elu_backward_f32,
    elu_backward_to_bf16,
    elu_backward_to_f16,
    elu_bf16,
    elu_f16,
    elu_f32,
    elu_to_bf16,
    elu_to_f16,
    prepare_elu,
    prepare_elu_backward,
)
from aclnn.kernels.simd.gelu cimport (
    classify_gelu,
    classify_gelu_backward,
    classify_gelu_backward_tanh,
    classify_gelu_tanh,
    classify_times_gelu,
    gelu_backward_bf16,
    gelu_backward_f16,
    gelu_backward_f32,
    gelu_backward_tanh_bf16,
    gelu_backward_tanh_f16,
    gelu_backward_tanh_f32,
    gelu_backward_tanh_to_bf16,
    gelu_backward_tanh_to_f16,
    gelu_backward_to_bf16,
    gelu_backward_to_f16,
    gelu_bf16,
    gelu_f16,
    gelu_f32,
    gelu_tanh_bf16,
    gelu_tanh_f16,
    gelu_tanh_f32,
    gelu_tanh_to_bf16,
    gelu_tanh_to_f16,
    gelu_to_bf16,
    gelu_to_f16,
    times_gelu_bf16,
    times_gelu_f16,
    times_gelu_f32,
    times_gelu_to_bf16,
    times_gelu_to_f16,
)
from aclnn.kernels.simd.hardshrink cimport (
    hardshrink_bf16,
    hardshrink_f16,
    hardshrink_f32,
    hardshrink_to_bf16,
    hardshrink_to_f16,
    prepare_hardshrink,
    prepare_hardshrink_backward,
)
from aclnn.kernels.simd.leaky_relu cimport (
    classify_leaky_relu,
    classify_leaky_relu_f32,
    leaky_relu_bf16,
    leaky_relu_f16,
    leaky_relu_f32,
    leaky_relu_to_bf16,
    leaky_relu_to_f16,
    prepare_leaky_relu,
)
from aclnn.kernels.simd.logit cimport (
    classify_logit,
    classify_logit_backward,
    logit_backward_bf16,
    logit_backward_f16,
    logit_backward_f32,
    logit_backward_to_bf16,
    logit_backward_to_f16,
    logit_bf16,
    logit_f16,
    logit_f32,
    logit_to_bf16,
    logit_to_f16,
    prepare_logit,
)
from aclnn.kernels.simd.forms cimport form_loop
from aclnn.kernels.simd.loop_args cimport simd_path_t

cdef enum:
    MOST_PATHS = 128

cdef dict _numbers = {}
cdef simd_path_t[MOST_PATHS] _paths


cdef add(str formula, simd_path_t path):
    if len(_numbers) == MOST_PATHS:
        raise ValueError(f"{formula}: there are places for {MOST_PATHS} fast paths")
    _paths[len(_numbers)] = path
    _numbers[formula] = len(_numbers)


def paths():
    """Addresses of the fast paths, a `simd_path_t` for each formula that has one."""
    return {formula: <size_t>&_paths[<int>number] for formula, number in _numbers.items()}


cdef dict _forms = {}


cdef add_form(str formula, form_loop loop):
    _forms[formula] = <size_t>loop


def forms():
    """Addresses of loops over whole vectors of float32 (`form_loop`), of formulas that have one.

    Those with a root have none: beside it every few vectors leave a result open.
    """
    return dict(_forms)


add("elu", simd_path_t(
    elu_f32, elu_f16, elu_bf16, elu_to_f16, elu_to_bf16, prepare_elu, classify_elu, NULL))
add("elu_backward", simd_path_t(
    elu_backward_f32, elu_backward_f16, elu_backward_bf16, elu_backward_to_f16,
    elu_backward_to_bf16, prepare_elu_backward, classify_elu_backward, NULL))
add("gelu", simd_path_t(
    gelu_f32, gelu_f16, gelu_bf16, gelu_to_f16, gelu_to_bf16, NULL, classify_gelu, NULL))
add("times_gelu", simd_path_t(
    times_gelu_f32, times_gelu_f16, times_gelu_bf16, times_gelu_to_f16, times_gelu_to_bf16, NULL,
    classify_times_gelu, NULL))
add("gelu_tanh", simd_path_t(
    gelu_tanh_f32, gelu_tanh_f16, gelu_tanh_bf16, gelu_tanh_to_f16, gelu_tanh_to_bf16, NULL,
    classify_gelu_tanh, NULL))
add("gelu_backward", simd_path_t(
    gelu_backward_f32, gelu_backward_f16, gelu_backward_bf16, gelu_backward_to_f16,
    gelu_backward_to_bf16, NULL, classify_gelu_backward, NULL))
add("gelu_backward_tanh", simd_path_t(
    gelu_backward_tanh_f32, gelu_backward_tanh_f16, gelu_backward_tanh_bf16,
    gelu_backward_tanh_to_f16, gelu_backward_tanh_to_bf16, NULL, classify_gelu_backward_tanh,
    NULL))
add("hardshrink", simd_path_t(
    hardshrink_f32, hardshrink_f16, hardshrink_bf16, hardshrink_to_f16, hardshrink_to_bf16,
    prepare_hardshrink, NULL, NULL))
add("hardshrink_backward", simd_path_t(
    hardshrink_f32, hardshrink_f16, hardshrink_bf16, hardshrink_to_f16, hardshrink_to_bf16,
    prepare_hardshrink_backward, NULL, NULL))
for name in ("leaky_relu", "leaky_relu_backward"):
    add(name, simd_path_t(
        leaky_relu_f32, leaky_relu_f16, leaky_relu_bf16, leaky_relu_to_f16, leaky_relu_to_bf16,
        prepare_leaky_relu, classify_leaky_relu, classify_leaky_relu_f32))
add("logit", simd_path_t(
    logit_f32, logit_f16, logit_bf16, logit_to_f16, logit_to_bf16, prepare_logit, classify_logit,
    NULL))
add("logit_backward", simd_path_t(
    logit_backward_f32, logit_backward_f16, logit_backward_bf16, logit_backward_to_f16,
    logit_backward_to_bf16, prepare_logit, classify_logit_backward, NULL))


include "simd_forms.pxi"
