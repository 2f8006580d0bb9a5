"""Operands as text, written and read back."""

import pytest

import aclnn
from aclnn.api import tensor_text


@pytest.mark.parametrize(
    "text",
    ["float32[2,3]", "bfloat16[4,5:strides=1,4]", "float16[]", "int32[0]", "float32[4:offset=3]",
     "float64[2,2:strides=-2,1:offset=1]"],
)  # fmt: skip
def test_descriptions_read_back(text):
    described = tensor_text.parse(text)
    assert str(described) == text
    assert tensor_text.parse(str(described)) == described
    array = described.array(-1, 1)
    assert array.shape == described.shape
    assert array.strides == tuple(s * array.itemsize for s in described.strides)


@pytest.mark.parametrize(
    "text", ["float32", "float32[", "float32[a]", "float32[-1]", "float32[2:strides=1,2]",
             "float32[2:gap=1]", "what[2]", "", "float32[2:strides=x]", "float32[1_0]",
             "float32[4:offset=1,2]", "float32[4:offset=-3]", "float32[4:strides=1:strides=2]"]
)  # fmt: skip
def test_descriptions_that_make_no_sense(text):
    with pytest.raises(aclnn.AclnnError, match="operand"):
        tensor_text.parse(text)
