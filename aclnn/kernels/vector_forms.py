"""What loops over vectors have to know of a formula in `activations.pxd`; `setup.py` reads it."""

from typing import NamedTuple

SWISH_SLOPE_ROOT = -1.2784645427610738
MISH_SLOPE_ROOT = -1.1924312145200903


class VectorForm(NamedTuple):
    """Facts of one formula; numbers are C expressions, in which `p` are the node's numbers.

    Attributes
    ----------
    rel_error : float
        Bound of the relative error of the form over vectors, for the rounding test; at most 9.5e-7.
    root : str
        Where results are so small, beside a root, that too few digits are left; of the last input.
    gap : str
        How far from there.
    has_zeros : bool
        Results of 0 are exact, whatever the inputs are; else only those of a first input of 0.
    """

    rel_error: float = 6e-7
    root: str = ""
    gap: str = "0.03"
    has_zeros: bool = False


FORMS = {
    "sigmoid_backward": VectorForm(has_zeros=True),
    "tanh_backward": VectorForm(has_zeros=True),
    "silu_backward": VectorForm(root=f"{SWISH_SLOPE_ROOT}"),
    "swish_backward": VectorForm(root=f"{SWISH_SLOPE_ROOT} / p[0]", gap="0.03 / p[0]"),
    "fast_gelu_backward": VectorForm(root=f"{SWISH_SLOPE_ROOT} / 1.702", gap="0.02"),
    "mish_backward": VectorForm(root=f"{MISH_SLOPE_ROOT}"),
    "hardsigmoid": VectorForm(has_zeros=True),
    "hardswish": VectorForm(has_zeros=True),
    "hardswish_backward": VectorForm(has_zeros=True),
    "hardswish_backward_v2": VectorForm(has_zeros=True),
    "softplus": VectorForm(root="p[1] / p[0]", gap="1e-6 * p[1] / p[0]"),
    "softplus_backward": VectorForm(root="p[1] / p[0]", gap="1e-6 * p[1] / p[0]"),
    "selu_backward": VectorForm(root="-1.7580993408473768786", gap="1e-5", has_zeros=True),
}
