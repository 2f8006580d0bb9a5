"""Declarations that do not fit together are refused where they are made, by name."""

from dataclasses import replace

import pytest

from aclnn import operators
from aclnn.operators import REGISTRY, checks, entry

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


@pytest.mark.parametrize(
    "rule",
    [
        checks.dtype_among("slef"),
        checks.same_dtype("out", "slef"),
        checks.promotes(("self", "slef")),
        checks.dtype_is_promoted("out", ("slef",)),
        checks.castable(("slef",)),
        checks.convertible_scalars("slef"),
        checks.same_shape("out", "slef"),
        checks.at_most_8_dims("self", "slef"),
        checks.done_if_empty("slef"),
        checks.broadcasts("self", "slef"),
        checks.broadcast_shape("out", ("self", "slef")),
        checks.not_negative_when("slef", "approximate"),
        checks.switch_among("slef", ("none",)),
    ],
    ids=lambda rule: rule.text,
)
def test_roles_in_rules_that_the_operator_lacks(rule):
    """They would show when the rule is checked, for the first call that comes to it."""
    with pytest.raises(ValueError, match=r"^gelu: the rule .* takes slef, but there are only "):
        replace(GELU, rules=(*GELU.rules, rule))


def test_operands_that_are_no_inputs():
    with pytest.raises(ValueError, match=r"^gelu: operands grad_output are no inputs$"):
        replace(GELU, operands=("self", "grad_output"))


def test_no_name_is_declared_twice():
    with pytest.raises(ValueError, match=r"^gelu is declared twice$"):
        operators._by_name([("gelu", GELU), ("elu", REGISTRY["elu"]), ("gelu", replace(GELU))])
