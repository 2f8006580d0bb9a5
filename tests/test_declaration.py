"""Declarations that do not fit together are refused where they are made, by name."""

from dataclasses import replace

import pytest

from aclnn import operators
from aclnn.operators import REGISTRY, entry

GELU = REGISTRY["gelu"]


def test_an_unknown_kind():
    with pytest.raises(ValueError, match=r"^aclnnMine: slope is of kind 'scaler', must be one of "):
        entry("aclnnMine", "self slope:scaler out:out")


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("self slope:scalar out:out", r"^gelu: aclnnMine takes slope, but there are only .*self"),
        ("out:out", r"^gelu: aclnnMine does not take self$"),
    ],
)
def test_roles_that_the_operator_lacks_or_the_function(signature, message):
    with pytest.raises(ValueError, match=message):
        replace(GELU, entries=(entry("aclnnMine", signature),))


def test_operands_that_are_no_inputs():
    with pytest.raises(ValueError, match=r"^gelu: operands grad_output are no inputs$"):
        replace(GELU, operands=("self", "grad_output"))


def test_no_name_is_declared_twice():
    with pytest.raises(ValueError, match=r"^gelu is declared twice$"):
        operators._by_name([("gelu", GELU), ("elu", REGISTRY["elu"]), ("gelu", replace(GELU))])
