"""Rules that phase one checks: a sentence for people and a test on calls.

Operators list rules in CANN's order; the first one that a call violates determines status and message.
The test of a rule takes a `Call` and returns `None` if the rule holds, otherwise a message that names
argument, value and rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import CO_VARARGS
from typing import Any, Concatenate, ParamSpec

from aclnn.acl import dtypes, socs
from aclnn.acl._tensor_spec import TensorSpec as TensorSpec
from aclnn.acl.arguments import did_you_mean, shown
from aclnn.acl.constants import ACLNN_ERR_PARAM_INVALID, aclDataType, aclFormat
from aclnn.graph.strides import contiguous_strides

P = ParamSpec("P")

FLOATING = (aclDataType.ACL_FLOAT, aclDataType.ACL_FLOAT16, aclDataType.ACL_BF16)
FLOATING_AND_DOUBLE = (*FLOATING, aclDataType.ACL_DOUBLE)
INTEGERS = (
    aclDataType.ACL_INT8,
    aclDataType.ACL_INT16,
    aclDataType.ACL_INT32,
    aclDataType.ACL_INT64,
    aclDataType.ACL_UINT8,
)
COMPLEX = (aclDataType.ACL_COMPLEX64, aclDataType.ACL_COMPLEX128)
REAL = (*FLOATING_AND_DOUBLE, *INTEGERS, aclDataType.ACL_BOOL)
NUMERIC = (*REAL, *COMPLEX)
PLAIN_FORMATS = frozenset(
    aclFormat[f"ACL_FORMAT_{name}"]
    for name in ("UNDEFINED", "ND", "NCHW", "NHWC", "HWCN", "NDHWC", "NCDHW", "NC", "NCL")
)
MAX_DIMS = 8

NOTHING_TO_DO = "nothing to do"
"""Given by a rule whose call succeeds here and now, without looking at the rules after it."""


@dataclass(frozen=True, slots=True)
class ScalarSpec:
    """Facts about a number for rules: whether it converts, is below zero, or was not given.

    Plans are shared by calls whose scalars differ, so what may be asked depends on it: `zero`, `one`,
    `nan`, `whole`, `below` (the number before it), `dtype` and `value` hold for all of them only where
    the attribute's `facts` list them.
    """

    convertible: bool = True
    negative: bool = False
    text: str = ""
    dtype: aclDataType = aclDataType.ACL_FLOAT
    zero: bool = False
    one: bool = False
    nan: bool = False
    whole: bool = False
    absent: bool = False
    below: bool = False
    value: float | int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operator, as rules see it."""

    tensors: Mapping[str, TensorSpec]
    scalars: Mapping[str, ScalarSpec]
    switches: Mapping[str, object]
    names: Mapping[str, str]
    soc: str
    lists: Mapping[str, tuple[TensorSpec, ...]] = field(default_factory=dict)
    makes_absent: bool = True  # whether outputs that are absent are made, or not wanted
    c_shaped: bool = False  # whether CANN's function is called, not a functional form
    dtype_name: Callable[[aclDataType], str] = dtypes.cann_name  # as the caller knows dtypes

    def dtype(self, role: str) -> aclDataType:
        return self._tensor(role).dtype

    def shape(self, role: str) -> tuple[int, ...]:
        return self._tensor(role).shape

    def _tensor(self, role: str) -> TensorSpec:
        try:
            return self.tensors[role]
        except KeyError:
            raise KeyError(
                f"the call has no {role} (results may still have to be made, optional inputs be absent); "
                "rules ask given() first"
            ) from None

    def is_contiguous(self, role: str) -> bool:
        """Whether elements lie one after the other, in order."""
        spec = self.tensors[role]
        requested = contiguous_strides(spec.shape)
        axes = zip(spec.shape, spec.strides, requested, strict=True)
        return spec.size == 0 or all(size == 1 or had == step for size, had, step in axes)

    def word(self, dtype: aclDataType | None) -> str:
        """A dtype in the caller's words."""
        return "none" if dtype is None else self.dtype_name(dtype)

    def words(self, allowed: Sequence[aclDataType]) -> str:
        """Dtypes of which one is wanted, in the caller's words."""
        return _either([self.dtype_name(dtype) for dtype in allowed])

    def typed(self, role: str) -> str:
        return f"{self.names[role]} has dtype {self.word(self.dtype(role))}"

    def shaped(self, role: str) -> str:
        return f"{self.names[role]} has shape {self.shape(role)}"

    def ranked(self, role: str) -> str:
        return f"{self.names[role]} has {len(self.shape(role))} dimensions"

    def chosen(self, role: str) -> str:
        return f"{self.names[role]} is {shown(self.switches[role])}"

    def given(self, roles: tuple[str, ...]) -> list[str]:
        """The roles that the call has: `out` may still have to be made."""
        return [role for role in roles if role in self.tensors]


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence for documentation, a test for calls, and the roles that the test looks at.

    A call that breaks it gets `status`. `gives`: the dtype or shape that it says a tensor has.
    """

    text: str
    test: Callable[[Call], str | None]
    roles: tuple[str, ...] = ()
    status: int = ACLNN_ERR_PARAM_INVALID
    gives: Mapping[tuple[str, str], Callable[[Call], Any]] = field(default_factory=dict)


def rule(
    text: str,
    *roles: str,
    status: int = ACLNN_ERR_PARAM_INVALID,
    **gives: Callable[..., Any],
) -> Callable[[Callable[Concatenate[Call, P], str | None]], Callable[P, Rule]]:
    """Make a function that gives rules of a test.

    Parameters of the test after the call are parameters of the function; `text` and `roles` have them
    in braces, or, of `roles`, all of a tuple as "*name". Roles that are not named are those in the
    text between backticks; an empty one says that there are none. `gives`: functions of the call and
    the parameters for the `dtype` or `shape` that the rule says the first role has.

    >>> @rule("`{role}` has at least {least} elements")
    ... def has_elements(call: Call, role: str, least: int = 1) -> str | None:
    ...     return None if call.tensors[role].size >= least else f"{role} has too few elements"
    >>> has_elements("input", 3).text, has_elements("input").roles
    ('`input` has at least 3 elements', ('input',))
    """

    def decorate(test: Callable[Concatenate[Call, P], str | None]) -> Callable[P, Rule]:
        code, defaults = test.__code__, test.__defaults__ or ()
        fields = roles or tuple(dict.fromkeys(text.split("`")[1::2]))
        names = code.co_varnames[1 : code.co_argcount]
        rest = code.co_varnames[code.co_argcount] if code.co_flags & CO_VARARGS else ""

        def make(*args: P.args, **more: P.kwargs) -> Rule:
            known: dict[str, Any] = dict(zip(names[::-1], defaults[::-1], strict=False))
            known |= {**dict(zip(names, args, strict=False)), **more}
            if rest:
                known[rest] = args[len(names) :]
            words = {k: _both(v) if isinstance(v, tuple) else v for k, v in known.items()}
            listed = [
                known[one[1:]] if one[0] == "*" else (one.format(**known),) for one in fields if one
            ]
            found = tuple([role for some in listed for role in some if role])
            if not known:
                return Rule(text, test, found, status)
            said = {
                (found[0], kind): lambda call, give=give: give(call, *args, **more)
                for kind, give in gives.items()
            }
            return Rule(
                text.format(**words), lambda call: test(call, *args, **more), found, status, said
            )

        return make

    return decorate


Infer = Callable[[Call], Mapping[str, tuple[Any, tuple[int, ...]]]]


def promoted(call: Call, roles: tuple[str, ...]) -> aclDataType | None:
    """The dtype all of `roles` promote to, or `None`."""
    result: aclDataType | None = call.dtype(roles[0])
    for role in roles[1:]:
        result = dtypes.promote(result, call.dtype(role)) if result is not None else None
    return result


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """NumPy's rule, right-aligned; `None` where the shapes do not fit.

    >>> broadcast_shapes((5, 1), (4,)), broadcast_shapes((0,), (1,)), broadcast_shapes((2,), (3,))
    ((5, 4), (0,), None)
    """
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, start=rank - len(shape)):
            if size == 1 or size == result[axis]:
                continue
            if result[axis] != 1:
                return None
            result[axis] = size
    return tuple(result)


def answering(status: int, *rules: Rule) -> tuple[Rule, ...]:
    """The same rules with another status for calls that break them."""
    return tuple([replace(rule, status=status) for rule in rules])


def inferred(rules: Sequence[Rule], outputs: Sequence[str]) -> Infer | None:
    """The function of a call that gives the dtype and shape of outputs, where rules say all of them."""
    known = {what: give for rule in reversed(rules) for what, give in rule.gives.items()}
    requested = [(role, known.get((role, "dtype")), known.get((role, "shape"))) for role in outputs]
    found = [(role, dtype, shape) for role, dtype, shape in requested if dtype and shape]
    if len(found) < len(requested):
        return None
    return lambda call: {role: (dtype(call), shape(call)) for role, dtype, shape in found}


def when(holds: Callable[[Call], object], rule: Rule, text: str = "{}") -> Rule:
    """A rule that counts only in calls of which `holds` is true; `text` has its sentence in braces."""

    def test(call: Call) -> str | None:
        return rule.test(call) if holds(call) else None

    return replace(rule, text=text.format(rule.text), test=test, gives={})


def in_place(rule: Rule, role: str = "input") -> Rule:
    """A rule that counts only where the result takes the place of an input.

    What functions in place check first is, but for its place, among the rules of all forms.
    """

    found = when(lambda call: call.names.get("out") == call.names[role], rule, "in place, {}")
    return replace(found, roles=(role, *rule.roles))


def of_cann(rule: Rule) -> Rule:
    """A rule of CANN's function that its functional form, which NumPy and PyTorch have too, lacks."""
    return when(lambda call: call.c_shaped, rule, "in C-shaped calls, {}")


def exists_on(families: tuple[str, ...]) -> Rule:
    def test(call: Call) -> str | None:
        if call.soc in families:
            return None
        return f"the operator does not exist on {call.soc}; it does on {', '.join(families)}"

    return Rule(f"the product is one of {', '.join(families)}", test)


def dtype_among(role: str, allowed: tuple[aclDataType, ...] = FLOATING) -> Rule:
    def test(call: Call) -> str | None:
        if role not in call.tensors:
            return None
        return _refuse_dtype(call, call.names[role], call.dtype(role), allowed)

    only = {(role, "dtype"): lambda call: allowed[0]} if len(allowed) == 1 else {}
    return Rule(f"`{role}` is {_names_on_socs(allowed)}", test, (role,), gives=only)


def option_dtype_among(switch: str, allowed: tuple[aclDataType, ...]) -> Rule:
    def test(call: Call) -> str | None:
        dtype = call.switches[switch]
        if not isinstance(dtype, aclDataType):
            return f"{call.names[switch]} is {shown(dtype)}, must be a dtype"
        if message := _refuse_dtype(call, call.names[switch], dtype, allowed):
            return message.replace(" has dtype ", " is ")
        return None

    return Rule(f"`{switch}` is {_names_on_socs(allowed)}", test, (switch,))


def list_dtype_among(role: str, allowed: tuple[aclDataType, ...]) -> Rule:
    def test(call: Call) -> str | None:
        for index, one in enumerate(call.lists[role]):
            if message := _refuse_dtype(call, f"{call.names[role]}[{index}]", one.dtype, allowed):
                return message
        return None

    return Rule(f"`{role}` are {_names_on_socs(allowed)}", test, (role,))


def scalar_dtype_among(role: str, allowed: tuple[aclDataType, ...]) -> Rule:
    def test(call: Call) -> str | None:
        number = call.scalars[role]
        if number.dtype in allowed:
            return None
        return f"{call.names[role]} is {number.text} of dtype {call.word(number.dtype)}, must be {call.words(allowed)}"

    return Rule(f"`{role}` is a number of dtype {_names(allowed)}", test, (role,))


@rule("`{role}` has the dtype of `{like}`", dtype=lambda call, role, like: call.dtype(like))
def same_dtype(call: Call, role: str, like: str) -> str | None:
    if len(call.given((role, like))) < 2 or call.dtype(role) == call.dtype(like):
        return None
    return (
        f"{call.typed(role)}, but must have that of "
        f"{call.names[like]}, {call.word(call.dtype(like))}"
    )


def dtype_like_or(role: str, like: str, other: aclDataType = aclDataType.ACL_FLOAT) -> Rule:
    def test(call: Call) -> str | None:
        if role not in call.tensors or call.dtype(role) in (other, call.dtype(like)):
            return None
        return (
            f"{call.typed(role)}, must be {call.word(other)} or "
            f"that of {call.names[like]}, {call.word(call.dtype(like))}"
        )

    return Rule(f"`{role}` is {_name(other)} or has the dtype of `{like}`", test, (role, like))


def promotes(roles: tuple[str, ...], allowed: tuple[aclDataType, ...] = FLOATING) -> Rule:
    def test(call: Call) -> str | None:
        pair = ", ".join(f"{call.names[r]} {call.word(call.dtype(r))}" for r in roles)
        result = promoted(call, roles)
        if result is None:
            return f"dtypes do not promote: {pair}"
        if result not in allowed:
            return f"dtypes promote to {call.word(result)}, must be {call.words(allowed)}: {pair}"
        for role in call.given((*roles, "out")):
            if message := _refuse_bfloat16(call, call.names[role], call.dtype(role)):
                return message
        return None

    names = " and ".join(f"`{r}`" for r in roles)
    return Rule(
        f"the dtypes of {names} promote to {_names_on_socs(allowed)}",
        test,
        roles,
    )


@rule(
    "`{role}` has the promoted dtype of the inputs",
    *("{role}", "*roles"),
    dtype=lambda call, role, roles: promoted(call, roles),
)
def dtype_is_promoted(call: Call, role: str, roles: tuple[str, ...]) -> str | None:
    if role not in call.tensors or call.dtype(role) == promoted(call, roles):
        return None
    return (
        f"{call.typed(role)}, but must have the promoted "
        f"dtype of the inputs, {call.word(promoted(call, roles))}"
    )


@rule(
    "the result's dtype can be cast to that of `{role}`",
    *("{role}", "*sources"),
    dtype=lambda call, sources, role="out": promoted(call, sources),
)
def castable(call: Call, sources: tuple[str, ...], role: str = "out") -> str | None:
    source = promoted(call, sources)
    if role not in call.tensors:
        return None
    if dtypes.can_cast(source, call.dtype(role)):
        return _refuse_bfloat16(call, call.names[role], call.dtype(role))
    return f"{call.typed(role)}, to which the result's dtype {call.word(source)} cannot be cast"


@rule(
    "the result's dtype can be cast to that of `{role}`",
    dtype=lambda call, result, role="out": result(call),
)
def result_castable(
    call: Call, result: Callable[[Call], aclDataType | None], role: str = "out"
) -> str | None:
    """As `castable`, of a result whose dtype is not just what tensors promote to."""
    if role not in call.tensors:
        return None
    source = result(call)
    if dtypes.can_cast(source, call.dtype(role)):
        return _refuse_bfloat16(call, call.names[role], call.dtype(role))
    return f"{call.typed(role)}, to which the result's dtype {call.word(source)} cannot be cast"


def promoted_with_number(call: Call, role: str, scalar: str) -> aclDataType | None:
    """The dtype of a tensor together with a number, or None.

    A floating tensor keeps its dtype, as an integer one does with an integer; else both promote.
    An Ascend950 knows numbers by their kind only: a floating one makes float32 of integers.
    """
    own, other = call.dtype(role), call.scalars[scalar].dtype
    both = dtypes.promote(own, other)
    if own in COMPLEX or other in COMPLEX:
        return both
    if own in FLOATING_AND_DOUBLE:
        return own
    if other in FLOATING_AND_DOUBLE:
        single = "out" in call.tensors and call.dtype("out") == aclDataType.ACL_FLOAT
        if call.soc == "Ascend950" or (other == aclDataType.ACL_DOUBLE and single):
            return aclDataType.ACL_FLOAT
        return both
    return both if own == aclDataType.ACL_BOOL else own


@rule("the dtypes of `{role}` and `{scalar}` promote")
def promotes_with_number(call: Call, role: str, scalar: str) -> str | None:
    number = call.scalars[scalar]
    if promoted_with_number(call, role, scalar) is not None:
        return None
    return (
        f"dtypes do not promote: {call.names[role]} {call.word(call.dtype(role))}, "
        f"{call.names[scalar]} {call.word(number.dtype)}"
    )


@rule("`{scalar}` can be cast to the result's dtype")
def number_castable(
    call: Call, scalar: str, result: Callable[[Call], aclDataType | None]
) -> str | None:
    """Bools take integers as factors."""
    source, target = call.scalars[scalar].dtype, result(call)
    if target == aclDataType.ACL_BOOL:
        target = aclDataType.ACL_INT64
    if target is not None and dtypes.can_cast(source, target):
        return None
    return (
        f"{call.names[scalar]} has dtype {call.word(source)}, which cannot be cast to the result's "
        f"dtype {call.word(result(call))}"
    )


@rule("`{role}` has the format of `{like}`, which is not private")
def plain_format(call: Call, role: str, like: str) -> str | None:
    if role not in call.tensors:
        return None
    for one in (like, role):
        if call.tensors[one].format not in PLAIN_FORMATS:
            name = aclFormat(call.tensors[one].format).name
            return f"{call.names[one]} has the private format {name}, which is not supported"
    if call.tensors[role].format == call.tensors[like].format:
        return None
    pair = [aclFormat(call.tensors[one].format).name for one in (role, like)]
    return (
        f"{call.names[role]} has format {pair[0]}, but must have that of {call.names[like]}, "
        f"{pair[1]}"
    )


def _formats(call: Call, roles: tuple[str, ...]) -> dict[str, int]:
    """The storage format of each tensor, those of lists included, by the caller's name."""
    found: dict[str, int] = {}
    for role in roles:
        if role in call.lists:
            name, listed = call.names[role], enumerate(call.lists[role])
            found |= {f"{name}[{index}]": one.format for index, one in listed}
        elif role in call.tensors:
            found[call.names[role]] = call.tensors[role].format
    return found


@rule("the formats of {roles} are not private", "*roles")
def no_private_format(call: Call, *roles: str) -> str | None:
    for name, format in _formats(call, roles).items():
        if format not in PLAIN_FORMATS:
            return f"{name} has the private format {aclFormat(format).name}, which is not supported"
    return None


@rule("{roles} have one format", "*roles")
def same_format(call: Call, *roles: str) -> str | None:
    found = _formats(call, roles)
    first = next(iter(found), "")
    for name, format in found.items():
        if format != found[first]:
            pair = aclFormat(format).name, aclFormat(found[first]).name
            return f"{name} has format {pair[0]}, but must have that of {first}, {pair[1]}"
    return None


@rule("`{role}` has as many dimensions as `{like}`")
def same_rank(call: Call, role: str, like: str) -> str | None:
    if role not in call.tensors or len(call.shape(role)) == len(call.shape(like)):
        return None
    return (
        f"{call.ranked(role)}, but must have as many as {call.names[like]}, {len(call.shape(like))}"
    )


@rule("`{role}` broadcasts to the shape of `{like}`")
def broadcasts_to(call: Call, role: str, like: str) -> str | None:
    shape = call.shape(like)
    if broadcast_shapes(call.shape(role), shape) == shape:
        return None
    return f"{call.shaped(role)}, which does not broadcast to that of {call.names[like]}, {shape}"


def axis_of(call: Call, role: str, switch: str = "dim") -> int:
    """A dimension of an input, counted from the first; a rule saw to it that there is one."""
    dim, rank = call.switches[switch], len(call.shape(role))
    assert isinstance(dim, int)
    return dim % rank


@rule("`{role}` has at least one dimension")
def has_dims(call: Call, role: str) -> str | None:
    return None if call.shape(role) else f"{call.names[role]} has no dimensions"


@rule("`{switch}` is one of the dimensions of `{role}`")
def dim_in_range(call: Call, role: str, switch: str = "dim") -> str | None:
    dim, rank = call.switches[switch], len(call.shape(role))
    if isinstance(dim, int) and -rank <= dim < rank:
        return None
    return f"{call.names[switch]} is {shown(dim)}, must be from {-rank} to {rank - 1}"


@rule("`{role}` has an even size along `{switch}`")
def even_along(call: Call, role: str, switch: str = "dim") -> str | None:
    size = call.shape(role)[axis_of(call, role, switch)]
    if size % 2 == 0:
        return None
    return (
        f"{call.names[role]} has the odd size {size} along {call.names[switch]} "
        f"{call.switches[switch]}, must have an even one"
    )


@rule("`{role}` has {words}", "{role}", shape=lambda call, role, requested, words: requested(call))
def has_shape(
    call: Call, role: str, requested: Callable[[Call], tuple[int, ...]], words: str
) -> str | None:
    """`requested` gives the shape, `words` what it is, with roles in backticks."""
    if role not in call.tensors or call.shape(role) == requested(call):
        return None
    return f"{call.shaped(role)}, but must have {requested(call)}"


def convertible_scalars(*roles: str) -> Rule:
    def test(call: Call) -> str | None:
        for role in roles:
            scalar = call.scalars[role]
            if not scalar.convertible:
                return f"{call.names[role]} is {scalar.text}, which cannot be converted to {call.word(aclDataType.ACL_FLOAT)}"
        return None

    names = ", ".join(f"`{r}`" for r in roles)
    return Rule(f"{names} can be converted to FLOAT", test, roles)


@rule("`{role}` has the shape of `{like}`", shape=lambda call, role, like: call.shape(like))
def same_shape(call: Call, role: str, like: str) -> str | None:
    if role not in call.tensors or call.shape(role) == call.shape(like):
        return None
    return f"{call.shaped(role)}, but must have that of {call.names[like]}, {call.shape(like)}"


@rule("at most {most} dimensions", "*roles")
def at_most_dims(call: Call, most: int, *roles: str) -> str | None:
    for role in call.given(roles):
        if len(call.shape(role)) > most:
            return f"{call.ranked(role)}, at most {most} are supported"
    return None


def at_most_8_dims(*roles: str) -> Rule:
    return at_most_dims(MAX_DIMS, *roles)


def at_most_8_dims_unless_contiguous(counted: tuple[str, ...], tensors: tuple[str, ...]) -> Rule:
    """The dimensions of `counted` count only where one of all `tensors` is not contiguous."""
    few = at_most_8_dims(*counted)

    def test(call: Call) -> str | None:
        return None if all(map(call.is_contiguous, call.given(tensors))) else few.test(call)

    return Rule(f"{few.text}, unless all tensors are contiguous", test, tensors)


def done_if_empty(*roles: str, except_on: tuple[str, ...] = ()) -> Rule:
    def test(call: Call) -> str | None:
        empty = any(call.tensors[role].size == 0 for role in roles)
        return NOTHING_TO_DO if empty and call.soc not in except_on else None

    names = " or ".join(f"`{r}`" for r in roles)
    unless = f", except on {', '.join(except_on)}" if except_on else ""
    return Rule(
        f"if {names} is empty there is nothing to do, and nothing more is checked{unless}",
        test,
        roles,
    )


def ends_if_empty(*roles: str, except_on: tuple[str, ...] = ()) -> Rule:
    """As `done_if_empty`, but only of calls that bring their outputs: what makes its results needs
    shapes for them, and checks all rules."""
    found = done_if_empty(*roles, except_on=except_on)
    return when(
        lambda call: call.c_shaped and not call.makes_absent, found, "in C-shaped calls, {}"
    )


@rule("`{option}` is a dimension of `{role}`")
def axis_within(call: Call, option: str, role: str) -> str | None:
    """A tensor without dimensions counts as one with a single one."""
    axis, rank = call.switches[option], max(1, len(call.shape(role)))
    assert isinstance(axis, int)
    if -rank <= axis < rank:
        return None
    return (
        f"{call.names[option]} is {axis}, must be from {-rank} to {rank - 1} for "
        f"{call.names[role]} of shape {call.shape(role)}"
    )


def broadcasts(*roles: str) -> Rule:
    def test(call: Call) -> str | None:
        if broadcast_shapes(*(call.shape(role) for role in roles)) is not None:
            return None
        pair = ", ".join(f"{call.names[r]} {call.shape(r)}" for r in roles)
        return f"shapes do not broadcast: {pair}"

    return Rule(f"{' and '.join(f'`{r}`' for r in roles)} broadcast", test, roles)


@rule(
    "`{role}` has the broadcast shape of the inputs",
    *("{role}", "*roles"),
    shape=lambda call, role, roles: broadcast_shapes(*(call.shape(one) for one in roles)),
)
def broadcast_shape(call: Call, role: str, roles: tuple[str, ...]) -> str | None:
    shape = broadcast_shapes(*(call.shape(r) for r in roles))
    if role not in call.tensors or call.shape(role) == shape:
        return None
    return f"{call.shaped(role)}, but must have the broadcast shape {shape}"


@rule("`{scalar}` is not negative when `{switch}` is true")
def not_negative_when(call: Call, scalar: str, switch: str) -> str | None:
    if not (call.switches[switch] and call.scalars[scalar].negative):
        return None
    return (
        f"{call.names[scalar]} is {call.scalars[scalar].text}, must not be negative when "
        f"{call.names[switch]} is true: the result no longer tells the sign of the input"
    )


def if_given(switch: str, rule: Rule) -> Rule:
    """A rule about an option that may be null, which stands for its default."""
    return when(lambda call: call.switches[switch] is not None, rule)


def switch_among(switch: str, allowed: tuple[str, ...]) -> Rule:
    def test(call: Call) -> str | None:
        value = call.switches[switch]
        if isinstance(value, str) and value in allowed:
            return None
        # A number that stands for none of them was left as it was.
        choices = allowed if isinstance(value, str) else range(len(allowed))
        rule = f"must be {' or '.join(map(repr, choices))}{did_you_mean(value, allowed)}"
        return f"{call.names[switch]} is {shown(value)}, {rule}"

    return Rule(f"`{switch}` is {' or '.join(map(repr, allowed))}", test, (switch,))


def _refuse_dtype(
    call: Call, name: str, dtype: aclDataType, allowed: tuple[aclDataType, ...]
) -> str | None:
    if dtype not in allowed:
        return f"{name} has dtype {call.word(dtype)}, must be {call.words(allowed)}"
    return _refuse_bfloat16(call, name, dtype)


def _refuse_bfloat16(call: Call, name: str, dtype: aclDataType) -> str | None:
    if dtype != aclDataType.ACL_BF16 or socs.supports_bfloat16(call.soc):
        return None
    return f"{name} has dtype {call.word(dtype)}, which {call.soc} does not support"


def _names_on_socs(allowed: tuple[aclDataType, ...]) -> str:
    limited = " (BF16 on SoCs that have it)" if aclDataType.ACL_BF16 in allowed else ""
    return f"{_names(allowed)}{limited}"


def _both(roles: tuple[str, ...]) -> str:
    return " and ".join([f"`{role}`" for role in roles])


def _name(dtype: aclDataType) -> str:
    return dtypes.cann_name(dtype)


def _names(allowed: tuple[aclDataType, ...]) -> str:
    return _either(list(map(_name, allowed)))


def _either(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
