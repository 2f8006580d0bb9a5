"""Examples in docstrings, generated from the declaration's: in place and through both phases."""

from __future__ import annotations

import ast
from collections.abc import Callable

from aclnn.acl import dtypes
from aclnn.operators import Entry, Operator, Parameter, examples

_TENSOR_OF = """\
>>> def tensor(array, dtype=aclnn.ACL_FLOAT):
...     return aclnn.aclCreateTensor(array.shape, dtype, None, 0, aclnn.ACL_FORMAT_ND,
...                                  array.shape, array)"""
_WIDTH = 84


def functional_example(operator: Operator, name: str) -> list[str]:
    """The declaration's example; in place, the first argument is an array that is overwritten."""
    if operator.example is None:
        return []
    call, result = operator.example
    setup = ["import numpy as np", f"from aclnn import {name}"]
    if name == operator.in_place:
        first = next(iter(examples.arguments(call, operator.positional).values()))
        setup.append(f"x = {first}")
        call = examples.with_first(call, name, "x")
        result = examples.as_first(result, first)
    return [*_prompted(*setup, call), result]


def c_example(operator: Operator, item: Entry) -> list[str]:
    """The declaration's example, or that of the pair, through both phases."""
    example = item.example or operator.example
    if example is None:
        return []
    made = _Arguments(operator, item, *example)
    phase_one = f"size, executor, status = aclnn.{item.name}GetWorkspaceSize("
    before, after = [], []
    if operator.product:
        before = [
            "before = aclnn.get_soc_version()",
            f'aclnn.set_soc_version("{operator.product}")',
        ]
        after = ["aclnn.set_soc_version(before)"]
    return [
        *_prompted("import numpy as np", "import aclnn", *before),
        _TENSOR_OF,
        *_prompted(*made.lines, phase_one),
        *_continued(f"{', '.join(made.words)})"),
        *_prompted("status"),
        "0",
        *_prompted(f"aclnn.{item.name}(bytearray(size), size, executor, None)"),
        "0",
        *[line for name, result in made.results for line in (*_prompted(name), result)],
        *_prompted(*after),
    ]


class _Arguments:
    """Arguments of phase one: the lines that make them, and their words in the call."""

    def __init__(self, operator: Operator, item: Entry, call: str, printed: str) -> None:
        self.defaults = {a.role: repr(a.default) for a in operator.attributes}
        self.given = self.defaults | examples.arguments(call, operator.positional)
        self.of_integers = self._is_of_integers(operator)
        self.choices = {a.role: a.choices for a in operator.attributes}
        results = examples.results(printed, operator.n_results)
        self.pieces = results if operator.makes is not None else []
        self.printed = dict(zip(operator.outputs, results, strict=operator.makes is None))
        self.dtype = self._made_dtype(operator, results[0])
        self.lines: list[str] = []
        self.words = [self._word(p) for p in item.parameters]
        results_of = {taken: role for role, taken in item.overwritten(operator.outputs).items()}
        self.results = [
            (p.name, self._written(p, self.printed[results_of.get(p.role, p.role)]))
            for p in item.parameters
            if p.kind in ("output", "inout")
            and (p.kind != "output" or self.printed[p.role] != "None")
        ]
        self.results += [(f"pieces[{index}]", one) for index, one in enumerate(self.pieces)]

    def _is_of_integers(self, operator: Operator) -> bool:
        """Whether the first input is a tensor of integers."""
        first = next(iter(operator.inputs), None)
        if first is None or first in operator.lists:
            return False
        return "int" in examples.dtype_of(self.given.get(first, ""))

    def _written(self, parameter: Parameter, printed: str) -> str:
        """A result as it is printed; in place, in the dtype of what it overwrites."""
        if parameter.kind == "output":
            return printed
        return examples.as_first(printed, self.given[parameter.role])

    def _made_dtype(self, operator: Operator, printed: str) -> str:
        """Dtype that stands for one that is not given: that of the first result, if a form has one."""
        if operator.makes is None and printed != "None":
            return examples.shape_and_dtype(printed)[1]
        made = self.given[operator.inputs[0]]
        first = examples.items(made)[0] if operator.inputs[0] in operator.lists else made
        return examples.dtype_of(first)

    def _word(self, parameter: Parameter) -> str:
        """Words of the argument; what has to be made first gets a line of its own."""
        if parameter.optional and (self.given | self.printed).get(parameter.role, "None") == "None":
            return "None"
        if parameter.is_unused:
            number = parameter.kind in ("ignored", "zero") and not parameter.optional
            return "0" if number else "None"
        made = self._MADE.get(parameter.kind)
        if made is None:
            return self._plain(parameter)
        self.lines.append(f"{parameter.name} = {made(self, parameter)}")
        if parameter.kind == "single":
            one = _tensor(parameter.name, examples.dtype_of(self.given[parameter.role]))
            return f"aclnn.aclCreateTensorList([{one}])"
        if not parameter.is_tensor:
            return parameter.name
        if parameter.kind == "output":
            return _tensor(parameter.name, self._dtype_of_result(parameter.role))
        return _tensor(parameter.name, examples.dtype_of(self.given[parameter.role]))

    def _plain(self, parameter: Parameter) -> str:
        """A plain argument as CANN has it: -1 for no bounds, numbers for the names of forms."""
        arguments = self.given[parameter.role]
        if arguments == "None" and parameter.kind in ("float", "int"):
            return "-1.0" if parameter.kind == "float" else "0"
        if parameter.kind == "dtype":
            return _acl(self.dtype if arguments == "None" else ast.literal_eval(arguments))
        choices = self.choices[parameter.role]
        if parameter.kind == "int" and choices:
            return str(choices.index(ast.literal_eval(arguments)))
        return arguments

    def _dtype_of_result(self, role: str) -> str:
        """float32 for one that is given, and not written."""
        printed = self.printed[role]
        return "float32" if printed == "None" else examples.shape_and_dtype(printed)[1]

    def _memory(self, parameter: Parameter) -> str:
        printed = self.printed[parameter.role]
        return "np.empty(1, np.float32)" if printed == "None" else _empty(printed)  # never written

    def _room(self, parameter: Parameter) -> str:
        """A list of tensors that are written, and a line with their arrays."""
        self.lines.append(f"pieces = [{', '.join(map(_empty, self.pieces))}]")
        return "aclnn.aclCreateTensorList([tensor(piece) for piece in pieces])"

    def _list(self, parameter: Parameter) -> str:
        arrays = examples.items(self.given[parameter.role])
        tensors = [_tensor(one, examples.dtype_of(one)) for one in arrays]
        return f"aclnn.aclCreateTensorList([{', '.join(tensors)}])"

    def _ints(self, parameter: Parameter) -> str:
        text = self.given[parameter.role]
        text = text.partition("(")[2][:-1] if text.startswith("np.") else text  # an array
        arguments = ast.literal_eval(text)
        numbers = [arguments] if isinstance(arguments, int) else list(arguments or ())
        return f"aclnn.aclCreateIntArray({numbers})"

    def _bools(self, parameter: Parameter) -> str:
        values = list(ast.literal_eval(self.given[parameter.role]))
        return f"aclnn.aclCreateBoolArray({values})"

    def _scalar(self, parameter: Parameter) -> str:
        """An integer with integers is one, too."""
        arguments = self.given[parameter.role]
        whole = self.of_integers and arguments.lstrip("-").isdigit()
        return f"aclnn.aclCreateScalar({arguments}, aclnn.{'ACL_INT64' if whole else 'ACL_FLOAT'})"

    def _input(self, parameter: Parameter) -> str:
        return self.given[parameter.role]

    _MADE: dict[str, Callable[[_Arguments, Parameter], str]] = {  # noqa: RUF012
        "input": _input,
        "inout": _input,
        "output": _memory,
        "inputs": _list,
        "single": _input,
        "outputs": _room,
        "scalar": _scalar,
        "ints": _ints,
        "bools": _bools,
    }


def _empty(printed: str) -> str:
    """Room for a result like the printed one."""
    shape, dtype = examples.shape_and_dtype(printed)
    return f"np.empty({shape[0] if len(shape) == 1 else shape}, np.{_numpy(dtype)})"


def _tensor(array: str, dtype: str) -> str:
    return f"tensor({array})" if dtype == "float32" else f"tensor({array}, {_acl(dtype)})"


def _acl(dtype: str) -> str:
    return f"aclnn.{dtypes.of_name(dtype).name}"


def _numpy(dtype: str) -> str:
    return "bool_" if dtype == "bool" else dtype


def _prompted(*lines: str) -> list[str]:
    return [f">>> {line}" for line in lines]


def _continued(words: str) -> list[str]:
    """The rest of a call, as so many lines as it takes."""
    lines = [""]
    for word in words.split():
        if lines[-1] and len(lines[-1]) + len(word) >= _WIDTH:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return [f"...     {line}" for line in lines]
