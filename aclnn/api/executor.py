"""Executors by operator name: operands and options of a call, planned and bound to memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from aclnn.acl.arguments import as_truth, shown
from aclnn.acl.errors import invalid
from aclnn.api.functional import HANDLES_BY_NAME
from aclnn.compiler.settings import STRATEGIES
from aclnn.execution import arrays
from aclnn.execution._executor import unbind
from aclnn.operators import REGISTRY, Operator
from aclnn.operators.declaration import REQUIRED


def executor(
    name: str,
    *operands: Any,
    out: Any = None,
    materialize: bool | None = None,
    strategy: str | None = None,
    **options: Any,
) -> Any:
    """Plan a call for these arrays, to run it often.

    Parameters
    ----------
    name : str
        An operator's functional name, such as ``"gelu_backward"``.
    *operands : array
        Its inputs, in the order of the functional form.
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
        The operator's options, and inputs by name.

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
    """
    handle = HANDLES_BY_NAME.get(name) if isinstance(name, str) else None
    if handle is None or handle.handle.operator.name != name:
        known = ", ".join(name for name, operator in REGISTRY.items() if operator.functional)
        raise invalid(f"no operator is called {shown(name)}, they are {known}")
    operator = handle.handle.operator
    given = _bound_arguments(operator, operands, options)
    if operator.number_form is not None and _is_number(given[operator.number_form[0]]):
        handle = handle.number_form
        assert handle is not None, "every such operator has one"
        operator = handle.handle.operator
    parts, callers = arrays.taken_apart(
        operator, [given[role] for role in operator.kernel_operands]
    )
    inputs = [None if one is None else arrays.as_ndarray(one, role) for role, one in parts]
    switches = tuple([given[a.role] for a in operator.switches])
    outs = _outputs(handle.outputs_of(inputs, switches or None), out, operator.makes is not None)
    targets = [None if one is None else arrays.as_ndarray(one, "out") for one in outs]
    return handle.bind(
        inputs,
        targets,
        [given[attribute.role] for attribute in operator.scalars],
        switches or None,
        callers,
        outs,
        None if materialize is None else as_truth("materialize", materialize),
        _number(strategy),
        partial(
            _description,
            name,
            [role for role in operator.kernel_operands if given[role] is not None],
            {role: value for role, value in given.items() if role not in operator.inputs},
            materialize,
            strategy,
        ),
    )


def _description(
    name: str,
    roles: Sequence[str],
    options: Mapping[str, Any],
    materialize: Any,
    strategy: Any,
    made: Any,
) -> tuple[Any, Any]:
    """What pickles hold of an executor: the call, with descriptions in the place of arrays."""
    operator = REGISTRY[made.operator.name]
    specs: dict[str, Any] = {}
    for role in roles:
        if role in operator.lists:
            specs[role] = [s for n, s in made.inputs.items() if n.startswith(f"{role}[")]
        else:
            specs[role] = made.inputs[role]
    now = {a.role: made.options[a.role] for a in operator.scalars if options[a.role] is not None}
    return _planned_anew, (name, specs, dict(options) | now, materialize, strategy)


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


def _is_number(given: Any) -> bool:
    """Whether an operand is a number, and no array."""
    return isinstance(given, float | int | np.generic)


def _outputs(roles: Sequence[str], out: Any, listed: bool) -> list[Any]:
    """What to write into: an array for each output, or None for one to allocate."""
    count = len(roles)
    if out is None:
        return [None] * count
    given = [out] if count == 1 and not listed else list(out)
    if len(given) != count:
        raise invalid(f"out must be a tuple of {count} arrays: {', '.join(roles)}")
    return given


def _bound_arguments(
    operator: Operator, operands: Sequence[Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Operands and options by role, defaults filled in."""
    known = (*operator.inputs, *[a.role for a in operator.attributes])
    places = operator.positional
    positional = dict(zip(places, operands, strict=False))
    unknown = [role for role in options if role not in known or role in positional]
    if unknown or len(operands) > len(places):
        wrong = unknown[0] if unknown else f"operand {len(operands)}"
        raise invalid(f"{operator.name} does not take {wrong}; it takes {', '.join(known)}")
    given = {role: operator.default_of(role) for role in known} | positional | dict(options)
    for role in known:
        if given[role] is REQUIRED:
            raise invalid(f"{operator.name}: {role} is missing")
    return given


def _number(strategy: str | None) -> int | None:
    """The number of a planning strategy."""
    if strategy is None:
        return None
    if strategy not in STRATEGIES:
        raise invalid(
            f"planning strategy is {shown(strategy)}, must be one of {', '.join(STRATEGIES)}"
        )
    return STRATEGIES.index(strategy)
