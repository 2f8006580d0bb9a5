"""Declarations of operators: the single source of everything that is known about them.

An `Operator` declares its tensors and attributes, the rules of phase one in their order, its formula or
its lowering, and its documentation.  The C-shaped functions, the functional forms, their docstrings,
``aclnn ops`` and the reference pages are derived from it; none of them refers to an operator by name.
References, test cases and competing implementations are kept elsewhere.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aclnn.acl import socs
from aclnn.acl.constants import ACLNN_ERR_INNER_TILING_ERROR
from aclnn.operators.checks import NOTHING_TO_DO, Call, Rule, ScalarSpec, TensorSpec, inferred


class Required:
    """The default of what has none: it has to be given.

    >>> REQUIRED
    <required>
    """

    def __repr__(self) -> str:
        return "<required>"


REQUIRED = Required()

ROW_ACCURACY = (
    "Float32 results are within 1 ULP of the exact value, float16 and bfloat16 ones within 0.501; "
    "what cancels does so in float64."
)
GRADIENT_ACCURACY = ROW_ACCURACY.replace("1 ULP", "2 ULP")

# What a signature says, and what a parameter is called.
PARAMETER_KINDS = {"in": "input", "out": "output", "tensors": "inputs", "outs": "outputs"} | {
    kind: kind
    for kind in (
        *("inout", "scalar", "bool", "int", "float", "str", "ints", "bools", "dtype", "single"),
        *("absent", "later", "ignored", "zero"),
    )
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a C-shaped function.

    Attributes
    ----------
    name : str
        CANN's spelling.
    role : str
        The operand or attribute of the operator it stands for, in snake case.
    kind : str
        'input', 'output', 'inout': an `aclTensor`; 'inputs', 'outputs': an `aclTensorList`;
        'scalar': an `aclScalar`; 'ints', 'bools': an `aclIntArray` or `aclBoolArray`; 'bool', 'int', 'float',
        'str', 'dtype': plain Python values; 'single': an `aclTensorList` with one tensor, which is
        the input; 'absent', 'later': what has to be null, else the status is 161002 or 561002;
        'ignored': what does not count; 'zero': an integer that has to be 0 (561002). Numbers of an `aclIntArray` may be an input, too.
    optional : bool
        Whether it may be null.
    """

    name: str
    role: str
    kind: str
    optional: bool = False

    @property
    def is_tensor(self) -> bool:
        return self.kind in ("input", "output", "inout")

    @property
    def is_unused(self) -> bool:
        """Whether the operator has no part in it."""
        return self.kind in ("absent", "later", "ignored", "zero")


@dataclass(frozen=True, slots=True)
class Attribute:
    """An option of an operator: its default and, where it is a number, how it reaches kernels.

    Attributes
    ----------
    role : str
        Its name in the functional form.
    default : object
        What holds where it is not given.
    kind : {'scalar', 'float', 'bool', 'str', 'int', 'ints', 'bools', 'dtype'}
        The first two are numbers that reach kernels at run time, the others shape the plan.
    keyword_only : bool
        Whether the functional form takes it by name only.
    doc : str
        A sentence for people.
    choices : tuple of str
        What a `str` may be. Where a C-shaped function takes an `int`, it numbers them.
    facts : tuple of {'zero', 'one', 'nan', 'whole', 'below', 'dtype', 'value'}
        Of a number, what plans depend on besides its sign: checks and lowering may ask for no
        other. `below` says that it is less than the number before it; `value` that each number has
        a plan of its own, as where the size of the result depends on it.
    nullable : bool
        Whether null, or None, stands for the default.
    """

    role: str
    default: object
    kind: str = "scalar"
    keyword_only: bool = True
    doc: str = ""
    choices: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    nullable: bool = False


def argument(role: str, default: object, kind: str, doc: str, **more: Any) -> Attribute:
    """An option that the functional form takes by position, too."""
    return Attribute(role, default, kind, keyword_only=False, doc=doc, **more)


@dataclass(frozen=True, slots=True)
class Entry:
    """One C-shaped function pair, ``aclnnXxxGetWorkspaceSize`` and ``aclnnXxx``.

    Attributes
    ----------
    name : str
        CANN's, without ``GetWorkspaceSize``.
    parameters : tuple of Parameter
        Of the first phase, in CANN's order, but for the two results.
    fixed : tuple of (str, object)
        Attributes of the operator that this pair does not take, and what they are.
    example : pair of str, optional
        A call of the operator and what it prints, where this pair does not take that of the operator.
    """

    name: str
    parameters: tuple[Parameter, ...]
    fixed: tuple[tuple[str, object], ...] = ()
    example: tuple[str, str] | None = None

    def overwritten(self, outputs: tuple[str, ...]) -> dict[str, str]:
        """The inputs whose place results take that are no parameters, in order, by results' roles."""
        taken = [p.role for p in self.parameters if p.kind == "inout"]
        known = {p.role for p in self.parameters}
        return dict(zip([role for role in outputs if role not in known], taken, strict=False))

    def words(self, outputs: tuple[str, ...]) -> dict[str, str]:
        """CANN's names of operands and options, by role; a result in place has its input's name."""
        found = {p.role: p.name for p in self.parameters}
        in_place = self.overwritten(outputs)
        return found | {result: found[role] for result, role in in_place.items()}


@dataclass(frozen=True, slots=True)
class Operator:
    """Everything there is to know about one operator.

    Attributes
    ----------
    name : str
        The functional form's name, PyTorch's where there is one.
    summary, notes : str
        What it does, in a sentence, and what else there is to know.
    seealso : tuple of str
        Names of operators that belong to it.
    inputs : tuple of str
        Roles of the input tensors in the functional form's order.
    attributes : tuple of Attribute
        Options, in the functional form's order.
    entries : tuple of Entry
        The C-shaped pairs; the first is the one whose name stands for the operator.
    makes : callable, optional
        Of one whose only output is a list of tensors: how many they are, by the shapes of inputs by
        role, that of a list being one for each tensor, and the options; without inputs that are lists
        it gets the shape of the first input alone. Rules, infer and lower see as many outputs, whose
        roles are numbered.
    formula : str or callable, optional
        Of a pointwise operator: the name of the kernels' formula, or a function of the switches
        that gives it.
    operands : tuple of str
        Roles of the inputs in the order in which the formula takes them.
    outputs : tuple of str
        Roles of the results.
    optional : tuple of str
        Roles of inputs and outputs that may be null.
    lists : tuple of str
        Roles of inputs that are lists of tensors. Where operands are divided into single ones, a
        list that is not the last of the inputs ends with None. One that is optional and null has no
        tensors.
    infer : callable, optional
        Gives for a `Call` the dtype and shape of each output by role, where rules do not say them. Pointwise
        operators have the promoted dtype and the broadcast shape of their inputs.
    lower : callable, optional
        Makes the nodes of a call on a `Lowering`, and gives the value of each output by role.
        Pointwise operators compute their formula.
    functional : bool
        Whether there is a functional form.
    parameters : tuple of str
        What the functional form takes by position, where that is not all inputs, then attributes.
    number_form : (str, str), optional
        An input that may also be a number in the functional form, and the operator that takes it.
    option_form : (Attribute, str, str), optional
        An option of the functional form alone, None where it is not given, and the operator that takes
        calls with it, with the attribute that has its value there.
    form_of : str
        Of one without a functional form of its own that is nobody's `number_form`: the operator whose
        form takes such calls, with numbers that count as tensors.
    numbers : tuple of str
        Inputs that may be numbers in the functional form, and count as tensors without dimensions
        then.
    expression : str
        The formula as documented, for people.
    rules : tuple of Rule
        What phase one checks after null arguments, in order.
    scalars_as_double : bool
        Whether numbers take part as float64 where the result is float64, not as float32.
    any_rank : bool
        Whether tensors may have more dimensions than plans have, where the rules allow it: these
        are merged, but for the one that the option `dim` names.
    unread : tuple of str
        Inputs that are never read, whose dimensions do not count.
    in_place : str or None
        Name of the functional form that writes into its first input, or into those that the C-shaped
        function in place overwrites.
    domain : pair of float
        Where generated inputs lie, in demonstrations and benchmarks.
    sample_specs : mapping of str to mapping or object
        Rules are asked about tensors of one dtype and shape when dtypes are listed. For those that
        differ, by role, what is different: parts of a `TensorSpec`; of numbers parts of a `ScalarSpec`; for options that
        have to suit the tensors, their values. Optional inputs take part where they are named.
    example : pair of str, optional
        A call and what it prints, run as a test of the documentation.
    product : str
        The product that examples of its C-shaped functions select, where the default one lacks them.
    accuracy : str
        How near results lie to exact ones, where that is not as of pointwise operators.
    elementwise : bool
        Whether each element of the result is made of those of the inputs in its place, as of all
        operators with a formula.
    layout : tuple of str, optional
        Inputs as which PyTorch lays the first result out, in the order in which they decide: all
        inputs of an elementwise operator, and none of others, where it is not given.
    keeps_channels_last : bool
        Whether PyTorch lays the first result out with the channels last where the first input, or each
        one of a list, has them there.
    gradient : mapping of str to str
        By input, or inputs separated by commas, a formula of their gradients in Python: of `grad`,
        the gradient of the first output, and `grad_<role>`, those of others, of inputs, outputs and
        options by their roles, and of functional forms, of operators in `ops`, PyTorch's own in `aten`,
        and ``aclnn.torch.formulas``. `needed` says of which inputs of the group gradients are needed. A
        sum over what was broadcast, and a cast to the input's dtype, follow by themselves. Inputs
        that are not named have no gradient; outputs but for the first whose gradient no formula
        names are not differentiable.
    differentiable : bool
        False where no gradient is meant, as PyTorch's function has none, or CANN's is for inference.
    onnx : mapping of str to mapping
        ONNX's operators that it is, besides one of the same name: for each, options by role, and which
        attribute gives them, with its default, or what they are there.
    torch : str
        What benchmarks call of PyTorch where ATen has no form of that name with `out` that takes inputs and
        options as they are called here: an expression of inputs and `out`, whose functions are ATen's.
    chunking : str
        How a call goes over chunks of Dask's arrays, if not element by element: the name of a rule in
        ``aclnn.dask.layouts``; or what to call instead, as in ``dask.array: stack``. Empty: elementwise, or not.
    differentiated_as : str
        Where the result alone does not tell the gradients: the call of another functional form, of
        inputs and options by their roles, that gives the same result and has some.

    measured : mapping of str to (str, int)
        Outputs of a size that data decide, which are made for the largest, the outputs that their
        shapes are written to, and how many dimensions these have. C-shaped functions do not take these; after phase two the tensor of the first has
        that shape.
    absent_items : bool
        Whether items of the list of inputs may be None in the functional form, which are empty tensors of
        uint8 then, and masks, which become the indices of what is true.
    checks_arrays : callable, optional
        Of one with inputs that C-shaped functions take as `aclIntArray`: what is wrong with their
        numbers, by role, in a call that passed the rules; functional forms see them when they run.
    arrays_status : int
        What C-shaped calls get then.

    Attributes
    ----------
    scalars : tuple of Attribute
        Those that reach kernels as numbers, in the kernels' order.
    switches : tuple of Attribute
        Those that choose a formula instead of entering it.
    """

    name: str
    inputs: tuple[str, ...]
    entries: tuple[Entry, ...]
    expression: str
    rules: tuple[Rule, ...]
    summary: str
    formula: str | Callable[[Mapping[str, object]], str] | None = None
    outputs: tuple[str, ...] = ("out",)
    optional: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    makes: Callable[[Mapping[str, Any], Mapping[str, Any]], int] | None = None
    infer: Callable[[Call], Mapping[str, tuple[Any, tuple[int, ...]]]] | None = None
    lower: Callable[[Any], Mapping[str, int]] | None = None
    functional: bool = True
    parameters: tuple[str, ...] = ()
    number_form: tuple[str, str] | None = None
    option_form: tuple[Attribute, str, str] | None = None
    form_of: str = ""
    numbers: tuple[str, ...] = ()
    notes: str = ""
    attributes: tuple[Attribute, ...] = ()
    operands: tuple[str, ...] = ()
    scalars_as_double: bool = False
    any_rank: bool = False
    unread: tuple[str, ...] = ()
    in_place: str | None = None
    domain: tuple[float, float] = (-4.0, 4.0)
    sample_specs: Mapping[str, Any] = field(default_factory=dict)
    seealso: tuple[str, ...] = ()
    example: tuple[str, str] | None = None
    product: str = ""
    accuracy: str = ""
    elementwise: bool = False
    layout: tuple[str, ...] | None = None
    keeps_channels_last: bool = False
    gradient: Mapping[str, str] = field(default_factory=dict)
    differentiated_as: str = ""
    differentiable: bool = True
    onnx: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    torch: str = ""
    chunking: str = ""
    measured: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    absent_items: bool = False
    checks_arrays: Callable[[Call, Mapping[str, tuple[int, ...]]], str | None] | None = None
    arrays_status: int = ACLNN_ERR_INNER_TILING_ERROR
    scalars: tuple[Attribute, ...] = field(init=False, repr=False, compare=False)
    switches: tuple[Attribute, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, requested in (("scalars", True), ("switches", False)):
            found = [a for a in self.attributes if (a.kind in ("scalar", "float")) == requested]
            object.__setattr__(self, name, tuple(found))
        if self.lower is not None and self.infer is None:
            object.__setattr__(self, "infer", inferred(self.rules, self.outputs))

    @property
    def positional(self) -> tuple[str, ...]:
        """Positional parameters of the functional form, in order."""
        if self.parameters:
            return self.parameters
        return (*self.inputs, *[a.role for a in self.attributes if not a.keyword_only])

    def default_of(self, role: str) -> object:
        """Default of a parameter of the functional form.

        An optional input before what has no default has to be given, as None where there is none.
        """
        if role not in self.inputs:
            return next(a.default for a in self.form_options if a.role == role)
        if role not in self.optional:
            return REQUIRED
        after = (
            self.positional[self.positional.index(role) + 1 :] if role in self.positional else ()
        )
        needed = {a.role for a in self.attributes if a.default is REQUIRED}
        needed |= {*self.inputs} - {*self.optional}
        return REQUIRED if needed.intersection(after) else None

    def is_required(self, role: str) -> bool:
        """Whether the functional form has to be given a parameter."""
        return self.default_of(role) is REQUIRED

    @property
    def functional_names(self) -> tuple[str, ...]:
        """Names of its functional forms: none of an operator that only C-shaped functions call."""
        if not self.functional:
            return ()
        return tuple(dict.fromkeys([name for name in (self.name, self.in_place) if name]))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the operator, functional names first."""
        return (*self.functional_names, *[item.name for item in self.entries])

    def __repr__(self) -> str:
        return f"<Operator {self.name}: {', '.join(self.names)}>"

    @property
    def overwritten(self) -> dict[str, str]:
        """The inputs that the form in place writes into, by the roles of results."""
        found = (item.overwritten(self.outputs) for item in self.entries)
        first = {self.outputs[0]: self.inputs[0]} if self.inputs else {}
        return next(filter(None, found), first)

    @property
    def form_options(self) -> tuple[Attribute, ...]:
        """Options of the functional form: attributes, and that of `option_form`."""
        return (*self.attributes, *(self.option_form or ())[:1])

    @property
    def is_elementwise(self) -> bool:
        return self.elementwise or self.formula is not None

    @property
    def lies_as(self) -> tuple[str, ...]:
        """The inputs as which PyTorch lays the first result out, the first deciding; none if dense."""
        if self.layout is not None:
            return self.layout
        return self.kernel_operands if self.is_elementwise else ()

    @property
    def dim_switch(self) -> int:
        """The place of `dim` among the switches, -1 where there is none."""
        found = [index for index, one in enumerate(self.switches) if one.role == "dim"]
        return found[0] if found else -1

    @property
    def kernel_operands(self) -> tuple[str, ...]:
        return self.operands or self.inputs

    def accepts(
        self, tensors: Mapping[str, TensorSpec], soc: str, *, c_shaped: bool = False
    ) -> bool:
        """Whether the rules accept these operands on a product, with the options' defaults.

        `tensors` may have the outputs, of any shape: they are taken in that of the results.
        `c_shaped`: whether CANN's function is asked, or the functional form.
        """
        if not socs.has_operators(soc):
            return False
        tensors = {
            role: spec.changed(**self.sample_specs.get(role, {})) for role, spec in tensors.items()
        }
        needed = [
            role for role in self.inputs if role not in self.optional or role in self.sample_specs
        ]
        inputs = {role: tensors[role] for role in needed}
        call = self.sample(inputs, soc, c_shaped=c_shaped)
        if not self._holds(call):
            return False
        shapes = (
            {role: shape for role, (_, shape) in self.infer(call).items()} if self.infer else {}
        )
        outputs = {
            role: tensors[role].changed(shape=shapes.get(role, tensors[role].shape))
            for role in self.outputs
            if role in tensors
        }
        return self._holds(self.sample(inputs | outputs, soc, c_shaped=c_shaped))

    def _holds(self, call: Call) -> bool:
        return all(rule.test(call) in (None, NOTHING_TO_DO) for rule in self.rules)

    def sample(
        self, tensors: Mapping[str, TensorSpec], soc: str, *, c_shaped: bool = False
    ) -> Call:
        """A call with these tensors, and options that suit them."""
        first = tensors.get(self.inputs[0]) if self.inputs else None
        suits: dict[str, Any] = {"int": 0}
        if first is not None:
            suits |= {"dtype": first.dtype, "ints": tuple(range(len(first.shape)))}
        options = {
            a.role: suits.get(a.kind) if a.default is REQUIRED else a.default for a in self.switches
        }
        roles = (*self.inputs, *self.outputs, *(a.role for a in self.attributes))
        return Call(
            tensors={role: spec for role, spec in tensors.items() if role not in self.lists},
            scalars={a.role: ScalarSpec(**self.sample_specs.get(a.role, {})) for a in self.scalars},
            switches={role: self.sample_specs.get(role, value) for role, value in options.items()},
            names={role: role for role in roles},
            soc=soc,
            lists={role: (tensors[role],) for role in self.lists if role in tensors},
            c_shaped=c_shaped,
        )

    @property
    def n_results(self) -> int | None:
        """Number of results, None where that depends on the call."""
        return None if self.makes is not None else len(self.outputs)

    @property
    def ends_lists(self) -> bool:
        """Whether some list is followed by other inputs, so that None marks its end."""
        return any(map(self.is_ended, self.lists))

    def is_ended(self, role: str) -> bool:
        """Whether None follows the tensors of a list, where operands are divided."""
        return role in self.lists and role != self.kernel_operands[-1]

    def by_role(self, operands: Sequence[Any]) -> dict[str, Any]:
        """Operands that were divided by their roles in the kernels' order, lists as tuples.

        >>> from aclnn.operators import REGISTRY
        >>> REGISTRY["cat"].by_role(["one", "other"])
        {'tensors': ('one', 'other')}
        """
        found: dict[str, Any] = {}
        rest = iter(operands)
        for role in self.kernel_operands:
            if role not in self.lists:
                found[role] = next(rest)
            elif self.is_ended(role):
                found[role] = tuple(itertools.takewhile(_is_there, rest))
            else:
                found[role] = tuple([one for one in rest if one is not None])
        return found

    def sized(self, count: int) -> Operator:
        """One that makes a list, with that many outputs in the place of the list."""
        outputs = tuple([f"{self.outputs[0]}_{index}" for index in range(count)])
        return replace(self, outputs=outputs, entries=(), example=None)

    def formula_for(self, switches: Mapping[str, object]) -> str:
        assert self.formula is not None, f"{self.name} is not pointwise"
        return self.formula if isinstance(self.formula, str) else self.formula(switches)


def entry(
    name: str, signature: str, *, example: tuple[str, str] | None = None, **fixed: object
) -> Entry:
    """Read a C-shaped signature.

    Each word is ``name``, ``name:kind`` or ``name=role`` with or without ``:kind``; a role is the
    name in snake case unless given.  Kinds: `in` (default), `out`, `inout`, `tensors` (an
    aclTensorList), `scalar`, `ints` (an aclIntArray), `bools`, `bool`, `int`, `float`, `str`,
    `dtype`; `outs` is an aclTensorList of results; `single`, `absent`, `later`, `ignored`, `zero`, see
    `Parameter`; one that ends in a question mark may be null.

    >>> [(p.name, p.role, p.kind) for p in entry("aclnnGeluV2", "x=self approximate:int y=out:out").parameters]
    [('x', 'self', 'input'), ('approximate', 'approximate', 'int'), ('y', 'out', 'output')]
    """
    parameters = []
    for word in signature.split():
        left, _, kind = word.partition(":")
        cann, _, role = left.partition("=")
        optional, kind = kind.endswith("?"), kind.removesuffix("?")
        if kind and kind not in PARAMETER_KINDS:
            raise ValueError(
                f"{name}: {cann} is of kind {kind!r}, must be one of {_listed(PARAMETER_KINDS)}"
            )
        kind = PARAMETER_KINDS[kind or "in"]
        parameters.append(Parameter(cann, role or _role_of(cann, kind), kind, optional))
    return Entry(name, tuple(parameters), tuple(fixed.items()), example)


def _is_there(value: Any) -> bool:
    return value is not None


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))


def _role_of(name: str, kind: str) -> str:
    return "out" if kind in ("output", "outputs") else snake(name)


def snake(name: str) -> str:
    """
    >>> snake("selfOrResult")
    'self_or_result'
    """
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
