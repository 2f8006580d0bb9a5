"""Shared parts of the declarations of activations and their gradients."""

from collections.abc import Mapping
from typing import Any

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import FLOATING, Call, Rule, broadcast_shapes, when
from aclnn.operators.declaration import REQUIRED, Attribute, Entry, Operator, argument, entry
from aclnn.operators.lowering import Lowering, graph_dtype, number_form
from aclnn.operators.words import require

GRADIENT = ("grad_output", "self")
GRADIENT_ALIKE = (
    *require("grad_output: FLOATING; self, out: dtype of grad_output"),
    *require("grad_output, self, out: at most 8 dims; self, out: shape of grad_output"),
)


def both_entries(name: str, numbers: str = "", role: str = "input") -> tuple[Entry, Entry]:
    """The pairs out of place and in place, whose numbers stand between input and output.

    >>> [pair.name for pair in both_entries("Relu")]
    ['aclnnRelu', 'aclnnInplaceRelu']
    """
    return (
        entry(f"aclnn{name}", f"self={role} {numbers} out:out"),
        entry(f"aclnnInplace{name}", f"selfRef={role}:inout {numbers}"),
    )


def number(role: str, default: object, doc: str, *facts: str) -> Attribute:
    """A number that the functional form takes by position."""
    return argument(role, default, "scalar", doc, facts=facts)


def unless_on(soc: str, rule: Rule) -> Rule:
    """A rule that one product does not have."""
    return when(lambda call: call.soc != soc, rule, f"{{}}, except on {soc}")


def only_on(soc: str, rule: Rule) -> Rule:
    """A rule that no other product has."""
    return when(lambda call: call.soc == soc, rule, f"on {soc}: {{}}")


def infer_first(role: str) -> Any:
    """The result is like one input, whatever the others are."""
    return lambda call: {"out": (call.dtype(role), call.shape(role))}


def infer_broadcast(*roles: str) -> Any:
    """The result has the dtype of the first input, and the shape of all."""

    def infer(call: Call) -> Mapping[str, tuple[aclDataType, tuple[int, ...]]]:
        shape = broadcast_shapes(*(call.shape(role) for role in roles))
        assert shape is not None, "a rule sees to it that the inputs broadcast"
        return {"out": (call.dtype(roles[0]), shape)}

    return infer


def in_float32(formula: str, *roles: str, numbers: tuple[str, ...] = ()) -> Any:
    """Lowering of what is computed as float32 unless all is of one floating dtype."""

    def lower(lowering: Lowering) -> Mapping[str, int]:
        dtype, shape = lowering.results["out"]
        uniform = {lowering.call.dtype(role) for role in roles} == {dtype}
        within = dtype if uniform and dtype in FLOATING else aclDataType.ACL_FLOAT
        operands = [lowering.dense(role, within, shape) for role in roles]
        params = tuple([lowering.number(role, number_form(within)) for role in numbers])
        made = lowering.point(formula, operands, within, shape, params=params)
        return {"out": lowering.builder.cast(made, graph_dtype(dtype))}

    return lower


def activation(
    name: str,
    *,
    example: tuple[str, str],
    in_place: bool = False,
    attributes: tuple[Attribute, ...] = (),
    **parts: Any,
) -> Operator:
    """A function of one tensor, whose formula, C-shaped pair and gradient go by its name.

    Parameters
    ----------
    name : str
        Its functional form; the gradient is `<name>_backward`, of the same options.
    example : (str, str)
        Arguments of a call, and the elements of its result as they are printed.
    in_place : bool
        Whether it has forms in place.
    attributes : tuple of Attribute
        Numbers, which C-shaped functions take by the same names.
    parts
        Other parts of the declaration, or these, where they are different.
    """
    cann, numbers = camel(name), _numbers(attributes)
    role = parts.setdefault("inputs", ("input",))[0]
    out_of_place = entry(f"aclnn{cann}", f"self={role} {numbers} out:out")
    usual = {
        "entries": both_entries(cann, numbers, role) if in_place else (out_of_place,),
        "seealso": (f"{name}_backward",),
        "gradient": {role: _call(f"{name}_backward", ("grad", role), attributes)},
    }
    return _declared(
        name, example, usual | parts, attributes, in_place=f"{name}_" if in_place else None
    )


def backward(
    of: str,
    *,
    example: tuple[str, str],
    slope: str | None = None,
    attributes: tuple[Attribute, ...] = (),
    **parts: Any,
) -> Operator:
    """The gradient of an activation, of the result's gradient and another tensor.

    Parameters
    ----------
    of : str
        The activation.
    example : (str, str)
        Arguments of a call, and the elements of its result as they are printed.
    slope : str, optional
        The gradient of the second tensor, of `grad`; none: it cannot be differentiated again.
    attributes : tuple of Attribute
        Numbers, which C-shaped functions take by the same names.
    parts
        Other parts of the declaration, or these, where they are different.
    """
    name, inputs = f"{of}_backward", parts.setdefault("inputs", GRADIENT)
    signature = f"gradOutput {inputs[1]} {_numbers(attributes)} gradInput:out"
    usual: dict[str, Any] = {
        "entries": (entry(f"aclnn{camel(name)}", signature),),
        "seealso": (of,),
    }
    if slope is not None:
        again = _call(name, ("grad", inputs[1]), attributes)
        usual["gradient"] = {inputs[0]: again, inputs[1]: slope}
    return _declared(name, example, usual | parts, attributes)


BOTH = ("input", "other")
OTHER = Attribute("other", REQUIRED, keyword_only=False, doc="A number.", facts=("dtype",))


def with_number(
    name: str,
    cann: tuple[str, str],
    number: str,
    *,
    examples: tuple[tuple[str, str], tuple[str, str]],
    options: str = "",
    in_place: bool = True,
    of_tensors: Mapping[str, Any],
    of_number: Mapping[str, Any],
    **both: Any,
) -> tuple[Operator, Operator]:
    """A function of two tensors, and that of a tensor and a number, which takes over its calls.

    Parameters
    ----------
    name, number : str
        What they are called.
    cann : (str, str)
        CANN's names of their C-shaped pairs, and of those in place.
    examples : ((str, str), (str, str))
        A call of each, after its name, and what it prints.
    options : str
        Further parameters of C-shaped functions.
    in_place : bool
        Whether they have forms in place.
    of_tensors, of_number
        Other parts of one declaration.
    both
        Other parts of both.
    """
    entries = [
        tuple(
            [
                entry(f"aclnn{cann[index]}", f"self=input {other} {options} out:out"),
                entry(f"aclnnInplace{cann[index]}", f"selfRef=input:inout {other} {options}"),
            ][: 2 if in_place else 1]
        )
        for index, other in enumerate(("other", "other:scalar"))
    ]
    attributes = both.pop("attributes", ())
    two = {
        "in_place": f"{name}_" if in_place else None,
        "inputs": BOTH,
        "number_form": ("other", number),
        "numbers": ("other",),  # complex ones: the other form takes what is real
        "entries": entries[0],
        "attributes": attributes,
        "example": (f"{name}{examples[0][0]}", examples[0][1]),
    }
    one = {
        "functional": False,
        "inputs": ("input",),
        "entries": entries[1],
        "attributes": (OTHER, *attributes),
        "example": (f"{number}{examples[1][0]}", examples[1][1]),
        "seealso": (name,),
    }
    return (
        Operator(name=name, **{**two, **both, **of_tensors}),
        Operator(name=number, **{**one, **both, **of_number}),
    )


def camel(name: str) -> str:
    """CANN's spelling of a name.

    >>> camel("fast_gelu_backward")
    'FastGeluBackward'
    """
    return "".join([word.capitalize() for word in name.split("_")])


def _numbers(attributes: tuple[Attribute, ...]) -> str:
    """Options in a C-shaped signature.

    >>> _numbers((number("negative_slope", 0.01, "A factor."),))
    'negativeSlope:scalar'
    """
    names = [camel(a.role) for a in attributes]
    named = zip(names, attributes, strict=True)
    return " ".join([f"{name[0].lower()}{name[1:]}:{a.kind}" for name, a in named])


def _call(name: str, operands: tuple[str, ...], attributes: tuple[Attribute, ...]) -> str:
    options = [a.role if not a.keyword_only else f"{a.role}={a.role}" for a in attributes]
    return f"{name}({', '.join([*operands, *options])})"


def _declared(
    name: str,
    example: tuple[str, str],
    parts: Mapping[str, Any],
    attributes: tuple[Attribute, ...],
    **more: Any,
) -> Operator:
    value, printed = example
    formula = {} if "lower" in parts else {"formula": name}
    return Operator(
        name=name,
        example=(f"{name}({value})", f"array([{printed}], dtype=float32)"),
        attributes=attributes,
        **{**formula, **parts, **more},
    )
