"""What loops over vectors have to know of a formula in `activations.pxd`; `setup.py` reads it."""

from typing import NamedTuple

SWISH_SLOPE_ROOT = -1.2784645427610738
MISH_SLOPE_ROOT = -1.1924312145200903


class VectorForm(NamedTuple):
    """Facts of one formula; numbers are C expressions, in which `p` are the node's numbers.

    Attributes
    ----------
    rel_error : float
        Bound of the relative error of half precision before it is rounded, for the rounding test; at
        most 9.5e-7.
    root : str
        Where results are so small, beside a root, that too few digits are left; of the last input.
        Half precision is computed in pairs then.
    gap : str
        How far from there.
    decay : str
        The rate at which results of a large gradient decay exponentially with the last input, where
        that is negative; the exponential may be less than a normal number before the result is.
    half_in_pairs : bool, optional
        Half precision takes more digits than vectors have; by default if there is a root.
    has_zeros : bool
        Results of 0 are exact, whatever the inputs are; else only those of a first input of 0.
    inexact : str
        Of formulas over half precision alone: when a float does not give the result, but rounds it.
    direct : bool
        Half precision is converted, computed and rounded vector by vector: for formulas so short that
        chunks in between would take longer than they do.
    direct_f32 : bool
        Float32 is loaded, computed and stored vector by vector: for short ones, which take no number
        of the node.
    scant : bool
        Of formulas over half precision alone: a float may have fewer digits than it takes, because results are too small.
    """

    rel_error: float = 6e-7
    root: str = ""
    gap: str = "0.006"
    decay: str = ""
    half_in_pairs: bool | None = None
    has_zeros: bool = False
    inexact: str = ""
    direct: bool = False
    direct_f32: bool = False
    scant: bool = False


FORMS = {
    "sigmoid": VectorForm(direct_f32=True),
    "silu": VectorForm(direct_f32=True),
    "add": VectorForm(inexact="own.p[0] != 1"),
    "sub": VectorForm(inexact="own.p[0] != 1"),
    "mul": VectorForm(scant=True),
    "rsub": VectorForm(inexact="own.p[0] != 1"),
    "adds": VectorForm(inexact="own.p[1] != 1 or not is_short(own.p[0])"),
    "subs": VectorForm(inexact="own.p[1] != 1 or not is_short(own.p[0])"),
    "rsubs": VectorForm(inexact="own.p[1] != 1 or not is_short(own.p[0])"),
    "muls": VectorForm(inexact="not is_short(own.p[0])", scant=True),
    "divs": VectorForm(inexact="not is_short(own.p[0])", scant=True),
    "square": VectorForm(scant=True),
    "div": VectorForm(scant=True),
    "reciprocal": VectorForm(scant=True),
    "softshrink": VectorForm(inexact="not is_short(own.p[0])"),
    "shrink": VectorForm(inexact="not is_short(own.p[1])"),
    "add_relu": VectorForm(inexact="own.p[0] != 1"),
    "squared_relu": VectorForm(scant=True),
    "prelu": VectorForm(scant=True),
    "rrelu_with_noise": VectorForm(
        inexact="not is_short(0.5 * own.p[0] + 0.5 * own.p[1])", scant=True
    ),
    "hardsigmoid_backward": VectorForm(scant=True),
    "sigmoid_backward": VectorForm(2.38e-7, has_zeros=True, direct=True, direct_f32=True),
    "tanh_backward": VectorForm(2.38e-7, has_zeros=True, direct=True, direct_f32=True),
    "silu_backward": VectorForm(
        7e-7, root=f"{SWISH_SLOPE_ROOT}", decay="1", half_in_pairs=False, direct=True
    ),
    "swish_backward": VectorForm(
        root=f"{SWISH_SLOPE_ROOT} / p[0]", gap="0.006 / p[0]", decay="p[0]"
    ),
    "fast_gelu_backward": VectorForm(root=f"{SWISH_SLOPE_ROOT} / 1.702", decay="1.702"),
    "softplus_backward": VectorForm(decay="p[0]"),
    "log_sigmoid_backward": VectorForm(decay="-1"),
    "glu": VectorForm(decay="1"),
    "times_silu": VectorForm(decay="1"),
    # From -9.4 on e^(2w) is less than e^-75. Before that 2w is so large that rounding it shows.
    "times_gelu_tanh": VectorForm(decay="75.0 / 9.4", half_in_pairs=True),
    # The sum with the bias may cancel.
    "clipped_swiglu": VectorForm(decay="p[0]", half_in_pairs=True, has_zeros=True),
    "mish": VectorForm(rel_error=9e-7),
    "mish_backward": VectorForm(root=f"{MISH_SLOPE_ROOT}", decay="1"),
    "hardsigmoid": VectorForm(2.38e-7, has_zeros=True, direct=True, direct_f32=True),
    "hardswish": VectorForm(3e-7, has_zeros=True, direct=True, direct_f32=True),
    "hardswish_backward": VectorForm(3e-7, has_zeros=True, direct=True, direct_f32=True),
    "hardswish_backward_v2": VectorForm(3e-7, has_zeros=True, direct=True),
    "expm1": VectorForm(direct=True),
    "exp": VectorForm(direct=True),
    "exp2": VectorForm(direct=True),
    "log": VectorForm(rel_error=9e-7, has_zeros=True, direct=True),
    "log2": VectorForm(rel_error=9e-7, has_zeros=True, direct=True),
    "log10": VectorForm(rel_error=9e-7, has_zeros=True, direct=True),
    "log1p": VectorForm(rel_error=9e-7, direct=True),
    "rsqrt": VectorForm(direct=True),
    "sin": VectorForm(rel_error=3.5e-7, direct=True),
    "cos": VectorForm(rel_error=3.5e-7, direct=True),
    "erf": VectorForm(rel_error=3.5e-7, direct=True),
    "selu_backward": VectorForm(3e-7, has_zeros=True, direct=True, direct_f32=True),
}
