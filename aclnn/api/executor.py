"""Executors by operator name: operands and options of a call, planned and bound to memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from aclnn.acl._frames import boundary
from aclnn.acl.arguments import as_int, as_truth, did_you_mean, parameter_meant, shown
from aclnn.acl.errors import AclnnError, invalid, wrong_kind
from aclnn.api._functional import FunctionalHandle
from aclnn.api.functional import HANDLES_BY_NAME, handle_for
from aclnn.compiler.settings import strategy_number
from aclnn.errors import refusals
from aclnn.execution import arrays
from aclnn.execution._executor import aclOpExecutor, unbind
from aclnn.operators import ENTRIES, REGISTRY, Operator, functional_owner, unknown_operator
from aclnn.operators.declaration import REQUIRED, Entry


@boundary
def executor(
    name: str | Callable[..., Any],
    *operands: Any,
    out: Any = None,
    materialize: bool | None = None,
    strategy: str | None = None,
    **options: Any,
) -> aclOpExecutor:
    """Plan a call for these arrays, to run it often.

    Parameters
    ----------
    name : str or callable
        An operator's functional name, such as ``"gelu_backward"``, or its function; or the name of a
        C-shaped function, such as ``"aclnnGeluBackward"``. Operands and options then have CANN's names, in messages and in
        what the executor shows; runs take them by either name.
    *operands : array
        Its inputs, in the order of the functional form; those of a C-shaped function in CANN's order,
        its options and outputs among them.
    out : array, optional
        Where the result goes; allocated if not given.
    materialize : bool, optional
        Whether to store every intermediate whole in the workspace, for inspection, instead of in
        cache-sized tiles. Results are bitwise identical. Default: the environment variable
        ``ACLNN_MATERIALIZE``, else False.
    strategy : {'default', 'bucket', 'naive', 'exact'}, optional
        The planning strategy; 'exact' searches for at most a second. Default: the environment
        variable ``ACLNN_PLANNER``.
    **options
        The operator's options, and inputs by name: that of the functional form, or CANN's.

    Returns
    -------
    aclOpExecutor
        Bound to these arrays and repeatable.

    Raises
    ------
    AclnnError
        If no operator has this name, or the call breaks one of its rules.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> x = np.linspace(-1, 1, 3, dtype=np.float32)
    >>> ex = aclnn.executor("leaky_relu", x, negative_slope=0.5)
    >>> ex.run()
    array([-0.5,  0. ,  1. ], dtype=float32)
    >>> ex.workspace_size
    0
    >>> aclnn.executor("aclnnLeakyRelu", x, negativeSlope=0.5).run()
    array([-0.5,  0. ,  1. ], dtype=float32)
    """
    form: Any = getattr(name, "__self__", None)
    called: Any = form.name if isinstance(form, FunctionalHandle) else name
    asked, options = _by_option(called, options)
    handle, arguments, outputs, entry = _taken(asked, operands, options)
    operator = handle.handle.operator
    words = {} if entry is None else entry.words(operator.outputs)
    if outputs and out is not None:
        named = ", ".join(words[role] for role in outputs)
        raise wrong_kind(f"{called}: the output is given twice, as {named} and by out=")
    try:
        if operator.number_form is not None and _is_number(arguments[operator.number_form[0]]):
            assert handle.number_form is not None, "every such operator has one"
            handle = handle.number_form
            operator = handle.handle.operator
        parts, callers = arrays.taken_apart(
            operator, [arguments[role] for role in operator.kernel_operands]
        )
        inputs = arrays.as_ndarrays(operator, parts)
        switches = tuple([arguments[a.role] for a in operator.switches])
        roles = handle.outputs_of(inputs, switches or None)
        if out is None and outputs:
            out = outputs[operator.outputs[0]] if len(roles) == 1 or operator.makes else outputs
        outs = _outputs(roles, out, operator.makes is not None)
        targets = [None if one is None else arrays.as_ndarray(one, "out") for one in outs]
        return handle.bind(
            inputs,
            targets,
            [arguments[attribute.role] for attribute in operator.scalars],
            switches or None,
            callers,
            outs,
            None if materialize is None else as_truth("materialize", materialize),
            None if strategy is None else strategy_number(strategy),
            partial(
                _description,
                asked,
                [role for role in operator.kernel_operands if arguments[role] is not None],
                {role: value for role, value in arguments.items() if role not in operator.inputs},
                words,
                materialize,
                strategy,
            ),
            entry,
        )
    except AclnnError as error:
        by_role = {**arguments, "out": out}
        raise refusals.reworded(called, error, by_role, in_place=False, names=words) from None


def _by_option(name: Any, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The operator that takes a call with the option of `option_form`, and its options.

    >>> _by_option("div", {"rounding_mode": "floor"})
    ('div_mod', {'mode': 'floor'})
    """
    operator = REGISTRY.get(name) if isinstance(name, str) else None
    if operator is None or operator.option_form is None:
        return name, dict(options)
    option, other, role = operator.option_form
    rest = dict(options)
    value = rest.pop(option.role, None)
    if value is None:
        return name, rest
    if value not in option.choices:
        raise invalid(
            f"{name}: {option.role} is {shown(value)}, must be None or one of "
            f"{', '.join(map(repr, option.choices))}"
        )
    return other, rest | {role: value}


def _taken(
    name: str, operands: Sequence[Any], options: Mapping[str, Any]
) -> tuple[FunctionalHandle, dict[str, Any], dict[str, Any], Entry | None]:
    """The operator; its inputs and options by role, defaults filled in; outputs by role; and its
    declaration, if it is CANN's function."""
    found = ENTRIES.get(name.removesuffix("GetWorkspaceSize")) if isinstance(name, str) else None
    if found is not None:
        return handle_for(found[0]), *_arguments_in_c(name, *found, operands, options), found[1]
    handle = HANDLES_BY_NAME.get(name) if isinstance(name, str) else None
    if handle is None:
        return _taken_by_variant(name, operands, options)
    operator = handle.handle.operator
    if operator.name != name:
        raise invalid(
            f"executors are made of {operator.name!r}, in place with out=, not of {name!r}"
        )
    return handle, _bound_arguments(operator, operands, options), {}, None


def _taken_by_variant(
    name: str, operands: Sequence[Any], options: Mapping[str, Any]
) -> tuple[FunctionalHandle, dict[str, Any], dict[str, Any], None]:
    """The result of `_taken` for an operator that another's functional form calls, such as ``'adds'``."""
    variant = REGISTRY.get(name) if isinstance(name, str) else None
    if variant is None:
        raise invalid(unknown_operator(name))
    operator = functional_owner(variant)
    arguments = _bound_arguments(operator, operands, options)
    if not variant.form_of and operator.number_form is not None:
        role = operator.number_form[0]
        if not _is_number(arguments[role]):
            raise wrong_kind(
                f"{name}: {role} is {shown(arguments[role])}, must be a number; "
                f"{operator.name} takes tensors"
            )
    return handle_for(operator), arguments, {}, None


def _description(
    name: str,
    roles: Sequence[str],
    options: Mapping[str, Any],
    words: Mapping[str, str],
    materialize: Any,
    strategy: Any,
    made: Any,
) -> tuple[Any, Any]:
    """Description that pickles hold of an executor: the call, with descriptions in place of arrays."""
    operator = REGISTRY[made.operator.name]
    specs: dict[str, Any] = {}
    for role in roles:
        word = words.get(role, role)
        if role in operator.lists:
            specs[word] = [s for n, s in made.inputs.items() if n.startswith(f"{word}[")]
        else:
            specs[word] = made.inputs[word]
    argument = {words.get(role, role): value for role, value in options.items()}
    scalars = [words.get(a.role, a.role) for a in operator.scalars if options[a.role] is not None]
    now = {word: made.options[word] for word in scalars}
    return _planned_anew, (name, specs, argument | now, materialize, strategy)


def _planned_anew(
    name: str, specs: Mapping[str, Any], options: Mapping[str, Any], materialize: Any, strategy: Any
) -> Any:
    """An executor for a description: its inputs are to be given to a run."""
    made = executor(
        name,
        materialize=materialize,
        strategy=strategy,
        **{role: _placeholders(spec) for role, spec in specs.items()},
        **options,
    )
    unbind(made)
    return made


def _placeholders(spec: Any) -> Any:
    return [one.placeholder() for one in spec] if isinstance(spec, list) else spec.placeholder()


def _is_number(value: Any) -> bool:
    """Whether an operand is a number, and no array."""
    return isinstance(value, float | int | np.generic)


def _outputs(roles: Sequence[str], out: Any, listed: bool) -> list[Any]:
    """Arrays to write into: one for each output, or None for one to allocate."""
    count = len(roles)
    if out is None:
        return [None] * count
    if isinstance(out, Mapping):
        return [out.get(role) for role in roles]
    arguments = [out] if count == 1 and not listed else list(out)
    if len(arguments) != count:
        raise invalid(f"out must be a tuple of {count} arrays: {', '.join(roles)}")
    return arguments


def _bound_arguments(
    operator: Operator, operands: Sequence[Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Operands and options by role, defaults filled in."""
    known = (*operator.inputs, *[a.role for a in operator.attributes])
    places = operator.positional
    if len(operands) > len(places):
        raise _too_many(operator.name, len(places), len(operands))
    arguments = dict(zip(places, operands, strict=False))
    for word, value in options.items():
        role = word if word in known else parameter_meant(word, known) or word
        if role in arguments:
            raise wrong_kind(f"{operator.name}: {role} is given twice")
        if role not in known:
            raise _unknown(operator.name, role, known)
        arguments[role] = value
    return _with_defaults(operator, operator.name, {}, arguments, {role: role for role in known})


def _arguments_in_c(
    name: str,
    operator: Operator,
    entry: Entry,
    operands: Sequence[Any],
    options: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of a C-shaped function: inputs and options by role, defaults filled in, and outputs.

    They may have the names of either layer.
    """
    parameters = entry.parameters
    if len(operands) > len(parameters):
        raise _too_many(name, len(parameters), len(operands))
    known = (*operator.inputs, *[a.role for a in operator.attributes])
    roles = {role: role for role in known} | {p.name: p.role for p in parameters}
    arguments = {p.role: one for p, one in zip(parameters, operands, strict=False)}
    for word, value in options.items():
        word = word if word in roles else parameter_meant(word, roles) or word
        if word not in roles:
            raise _unknown(name, word, [p.name for p in parameters])
        if roles[word] in arguments:
            raise wrong_kind(f"{name}: {word} is given twice")
        arguments[roles[word]] = value
    for attribute in operator.switches:  # what CANN numbers has names here
        number = as_int(arguments.get(attribute.role))
        if number is not None and 0 <= number < len(attribute.choices):
            arguments[attribute.role] = attribute.choices[number]
    outputs = {role: arguments.pop(role) for role in operator.outputs if role in arguments}
    names = {role: role for role in known} | {p.role: p.name for p in parameters if p.role in known}
    arguments = _with_defaults(operator, name, dict(entry.fixed), arguments, names)
    in_place = entry.overwritten(operator.outputs)
    return arguments, outputs | {result: arguments[role] for result, role in in_place.items()}


def _with_defaults(
    operator: Operator,
    name: str,
    fixed: Mapping[str, Any],
    arguments: Mapping[str, Any],
    names: Mapping[str, str],
) -> dict[str, Any]:
    """Arguments by role, defaults filled in; `name` and `names` are what the caller calls them."""
    found = {role: operator.default_of(role) for role in names} | dict(fixed) | dict(arguments)
    for role, word in names.items():
        if found[role] is REQUIRED:
            raise wrong_kind(f"{name}: {word} is missing")
    return found


def _too_many(name: str, most: int, count: int) -> AclnnError:
    return wrong_kind(f"{name} takes {most} positional arguments but {count} were given")


def _unknown(name: str, word: str, known: Sequence[str]) -> AclnnError:
    meant = did_you_mean(word, known) or f"; it takes {', '.join(known)}"
    return wrong_kind(f"{name} does not take {word}{meant}")
