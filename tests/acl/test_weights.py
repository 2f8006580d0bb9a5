"""Weights of matrix products: their sizes, and that preparing one changes nothing."""

import re

import ml_dtypes
import numpy as np
import pytest

import aclnn

OK, NULLPTR, INVALID = 0, 161001, 161002
SIZES = aclnn.aclCreateIntArray([3, 510, 270])


def test_sizes_are_bytes_of_the_plain_layout():
    for dtype, kind in (
        (aclnn.ACL_INT8, np.int8),
        (aclnn.ACL_FLOAT16, np.float16),
        (aclnn.ACL_BF16, ml_dtypes.bfloat16),
        (aclnn.ACL_DOUBLE, np.float64),
    ):
        wanted = np.empty((3, 510, 270), kind).nbytes
        assert aclnn.aclnnCalculateMatmulWeightSizeV2(SIZES, dtype) == (wanted, OK)
    halves = aclnn.aclnnCalculateMatmulWeightSizeV2(SIZES, aclnn.ACL_FLOAT16)
    assert aclnn.aclnnCalculateMatmulWeightSize(SIZES) == halves


@pytest.mark.parametrize(
    ("shape", "dtype", "status", "words"),
    [
        (None, 1, NULLPTR, "tensorShape is null"),
        ([3, 4], 1, INVALID, "tensorShape is list, must be an aclIntArray"),
        ((3,), 1, INVALID, "tensorShape has 1 sizes, must have 2 to 6"),
        ((1,) * 7, 1, INVALID, "tensorShape has 7 sizes"),
        ((3, 0), 1, INVALID, r"tensorShape\[1\] is 0, must be at least 1"),
        ((-3, -4), 1, INVALID, r"tensorShape\[0\] is -3"),
        ((2**31, 2**32), 1, INVALID, "2\\^63 - 1 bytes"),
        ((3, 4), aclnn.ACL_INT4, INVALID, "smaller than a byte"),
        ((3, 4), 1000, INVALID, "no member of aclDataType"),
    ],
)
def test_refused_sizes(shape, dtype, status, words):
    given = aclnn.aclCreateIntArray(shape) if isinstance(shape, tuple) else shape
    name = "aclnnCalculateMatmulWeightSizeV2"
    assert getattr(aclnn, name)(given, dtype) == (0, status)
    assert re.match(f"{name}: .*{words}", aclnn.aclGetRecentErrMsg())


def test_a_prepared_weight_is_what_it_was():
    bits = np.arange(2**16, dtype=np.uint16).reshape(256, 256)  # every half, NaNs too
    weight = bits.copy().view(np.float16)
    for _ in range(2):
        tensor = aclnn.tensor(weight)
        size, executor, status = aclnn.aclnnTransMatmulWeightGetWorkspaceSize(tensor)
        assert (size, status) == (0, OK)
        assert aclnn.aclnnTransMatmulWeight(None, size, executor, None) == OK
        np.testing.assert_array_equal(weight.view(np.uint16), bits)
        assert aclnn.aclGetFormat(tensor)[0] == aclnn.ACL_FORMAT_ND


def test_refused_weights():
    private = aclnn.aclCreateTensor(
        (2, 2), 1, None, 0, aclnn.ACL_FORMAT_FRACTAL_NZ, (2, 2), np.zeros((2, 2), np.float16)
    )
    for given in (np.zeros((2, 2), np.float64), np.zeros(3, np.float16), private):
        tensor = given if given is private else aclnn.tensor(given)
        assert aclnn.aclnnTransMatmulWeightGetWorkspaceSize(tensor)[2] == INVALID
