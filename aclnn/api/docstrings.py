"""Docstrings of the generated functions.

All of their content comes from the declaration: requirements on tensors from its rules, examples of all
functions from its one example.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from aclnn.acl import dtypes
from aclnn.acl.constants import ACLNN_ERR_PARAM_INVALID, aclnnStatus
from aclnn.api.examples import c_example, functional_example
from aclnn.operators import Attribute, Entry, Operator, Parameter
from aclnn.operators.declaration import REQUIRED

SOURCE = "Formula after CANN's public operator documentation"
_ACCURACY = (
    "Float32 results are within 1 ULP of the exact value, float16 and bfloat16 results are "
    "correctly rounded."
)
_PYTHON_KINDS = {
    "scalar": "float",
    "ints": "int or sequence of int",
    "bools": "sequence of bool",
    "dtype": "dtype or str",
}
_WIDTH = 92
_ROLE = re.compile(r"`(\w+)`")

_KINDS = {
    "input": "aclTensor",
    "output": "aclTensor",
    "inout": "aclTensor",
    "inputs": "aclTensorList",
    "outputs": "aclTensorList",
    "scalar": "aclScalar",
    "ints": "aclIntArray",
    "bools": "aclBoolArray",
    "dtype": "aclDataType",
    "single": "aclTensorList",
    "absent": "None",
    "later": "None",
    "ignored": "int",
    "zero": "int",
}


@dataclass(frozen=True, slots=True)
class _Form:
    """One way to call an operator: what its tensors and options are called there, by role."""

    operator: Operator
    names: Mapping[str, str]
    is_functional: bool = False

    def worded(self, text: str) -> str:
        """A sentence of the declaration with this form's names of dtypes: NumPy's or CANN's."""
        return dtypes.in_numpys_words(text) if self.is_functional else text

    def rules(self) -> Iterator[tuple[int, list[str], str]]:
        """Number, roles and sentence of every rule about arguments that this form has.

        Numbers are those of messages, so that they stay where a rule is left out.
        """
        for number, rule in enumerate(self.operator.rules, 1):
            roles = _ROLE.findall(rule.text)
            if set(roles) <= self.names.keys():
                text = _ROLE.sub(lambda m: f"`{self.names[m[1]]}`", rule.text)
                yield number, roles, self.worded(text)

    def numbered(self) -> list[str]:
        """The rules as phase one checks them, in order."""
        return [
            _filled(f"{number}. {text}{self.otherwise(number)}.", "    ", " " * 7)
            for number, _, text in self.rules()
        ]

    def otherwise(self, number: int) -> str:
        """The status of a call that breaks a rule, unless it is that of most."""
        status = aclnnStatus(self.operator.rules[number - 1].status)
        return "" if status == ACLNN_ERR_PARAM_INVALID else f", else {status.name} ({int(status)})"

    def tensor(self, role: str, words: str) -> str:
        """Description of a tensor, with the rules about its dtype and shape."""
        asked = [
            text
            for _, roles, text in self.rules()
            if role in roles and not text.startswith("if ")
            and (roles[0] == role or " and " in text)
        ]  # fmt: skip
        return f"{words} {_sentence('; '.join(asked))}" if asked else words

    def input(self, role: str) -> str:
        return self.tensor(role, _input_words(self.operator, role))


_FIRST = "The tensor that the operator is applied to."
OPERAND_WORDS = {
    "input": _FIRST, "self": _FIRST, "x": _FIRST, "a": _FIRST, "tokens": "A row for each token.",
    "other": "The second operand, broadcast with the first one.",
    "bias": "Addends of results, an element for each channel or column.",
    "weight": "Factors or matrix that results are scaled or multiplied by.",
    "gamma": "Factors of the normalised elements.", "beta": "Addends of the normalised elements.",
    "query": "Queries: the rows that results are computed for.",
    "key": "Keys, which queries are compared with.", "value": "Values, whose weighted sums are results.",
    "x1": "The first addend or factor.", "x2": "The second addend or factor.",
    "attn_mask": "Mask of the keys that count for a query: bools, or numbers that are added to scores.",
    "atten_mask": "Mask of the keys that do not count for a query: nonzero elements.",
    "index": "Positions along a dimension.", "indices": "Positions, such as rows of a table.",
    "pse_shift": "Numbers that are added to scores.", "pse": "Numbers that are added to scores.",
    "scale": "Scales of quantization.", "scales": "Scales of quantization, or weights of rows.",
    "offset": "Offsets of quantization.", "zero_points": "Offsets of quantization.",
    "actual_seq_lengths": "Lengths of the queries of each batch.",
    "actual_seq_lengths_kv": "Lengths of the keys and values of each batch.",
    "actual_seq_qlen": "Lengths of the queries of each batch.",
    "actual_seq_kvlen": "Lengths of the keys and values of each batch.",
    "block_table": "Indices of the cache's blocks of each batch.",
    "block_tables": "Indices of the cache's blocks of each batch.",
    "group_index": "Ends or sizes of groups of rows.", "group_list": "Ends or sizes of groups of rows.",
    "query_rope": "Further columns of queries, which carry positions.",
    "key_rope": "Further columns of keys, which carry positions.",
    "key_shared_prefix": "Keys before those of every batch, shared by all.",
    "value_shared_prefix": "Values before those of every batch, shared by all.",
    "actual_shared_prefix_len": "Number of rows of the shared keys and values.",
    "query_padding_size": "Rows after the last query; lengths count back from there.",
    "kv_padding_size": "Rows after the last key and value; lengths count back from there.",
    "learnable_sink": "A score for each head that takes part in sums, and has no value.",
    "mat": "The matrix of the product.", "mat1": "The left matrix of the product.",
    "mat2": "The right matrix of the product.", "batch1": "The left matrices of the product.",
    "batch2": "The right matrices of the product.", "vec": "The vector of the product.",
    "b": "The right matrix of the product.", "c": "Addend of the product.",
    "key_cache": "The cache of keys, in blocks.", "value_cache": "The cache of values, in blocks.",
    "k_cache": "The cache of rotated keys.", "ckv_cache": "The cache of compressed keys and values.",
    "seq_lens": "Lengths of the sequences.", "slot_mapping": "Slot of the cache for each token.",
    "save_mean": "Mean of each channel of the batch.",
    "save_invstd": "Inverse deviation of each channel of the batch.",
    "running_mean": "Mean of each channel over earlier batches.",
    "running_var": "Variance of each channel over earlier batches.",
    "finished": "Mask of finished rows.", "mask": "Mask of the elements to replace or select.",
    "padding_mask": "Reserved.", "drop_mask": "Bits of the elements that dropout keeps.", "condition": "Mask of the elements to take from the first operand.",
    "antiquant_scale": "Scales that dequantize weights, or keys and values.",
    "antiquant_offset": "Offsets that dequantize weights, or keys and values.",
    **{role: f"Scales of int8 {keys}." for keys, role in (
        ("keys", "key_antiquant_scale"), ("keys", "dequant_scale_key"),
        ("values", "value_antiquant_scale"), ("values", "dequant_scale_value"),
    )},
    **{role: f"Addends of int8 {keys} before scaling." for keys, role in (
        ("keys", "key_antiquant_offset"), ("keys", "dequant_offset_key"),
        ("values", "value_antiquant_offset"), ("values", "dequant_offset_value"),
    )},
    "end": "The other end, the result for a weight of 1.", "tensors": "The parts, in order.",
    "exponent": "The exponents.", "smooth_scales": "Factors of columns before quantization.",
    "smooth_scale1": "Factors of columns before the first quantization.",
    "smooth_scale2": "Factors of columns before the second quantization.",
    "pertoken_scale": "A scale for each row.", "per_token_scale": "A scale for each row.",
    "dequant_scale1": "A factor of products of int8 queries and keys.",
    "quant_scale1": "A factor of weights of int8 values.",
    "dequant_scale2": "A factor of products of weights and int8 values.",
    "quant_scale2": "Scales of int8 results, float32 or bfloat16.",
    "quant_scale_out": "Scales of int8 results, float32 or bfloat16.",
    "quant_offset2": "Offsets of int8 results.", "quant_offset_out": "Offsets of int8 results.",
    "quant_scale": "Scales of the result.", "quant_offset": "Offsets of the result.",
    "scales1": "Scales of the first result.", "zero_points1": "Offsets of the first result.",
    "scales2": "Scales of the second result.", "zero_points2": "Offsets of the second result.",
    "weight_scale": "Scales of the weights.", "activation_scale": "A scale for each row.",
    "grad": "Gradient with respect to the forward operator's result.",
    "dy": "Gradient with respect to the forward operator's result.",
    "output": "Result of the forward operator.", "attention_in": "Result of the forward operator.",
    "softmax_max": "Maxima of scores, from the forward operator.",
    "softmax_sum": "Sums of exponentials, from the forward operator.",
    "kv": "Compressed keys and values, with the columns that carry positions.",
    "expert_idx": "Experts of each token.", "probs": "Weight of each expert of a token.",
    "permuted_tokens": "Rows in the order of experts.",
    "sorted_indices": "Position of each token's rows in the order of experts.",
    "source": "The new elements.", "src": "The elements to copy.", "values": "Results where the input is 0.",
    "tensor1": "The first factor.", "tensor2": "The second factor.",
    "noise": "Receives the random slopes.", "buffer": "Receives data for the gradient.",
    "logits": "A row of scores for each batch.", "p": "Sum of probabilities that each row keeps.",
    "k": "Number of elements that each row keeps.",
    "cos": "Cosines of the angles, by position and column.",
    "sin": "Sines of the angles, by position and column.",
    "target": "The class of each row, or the probabilities of its classes.",
    "zloss": "Not read.", "lse_for_zloss": "Not read.",
    "logsumexp": "Logarithms of the sums of exponentials, from the forward operator.",
    "compress_lens": "Lengths of the sequences after compression.",
    "compress_seq_offset": "First position of each sequence after compression.",
    "seq_offset": "First position of each sequence.",
    "k_rope_scale": "Scales of the rotated keys.", "k_rope_offset": "Offsets of the rotated keys.",
    "c_kv_scale": "Scales of the compressed keys and values.",
    "c_kv_offset": "Offsets of the compressed keys and values.",
    "expanded_permuted_rows": "Results of the experts, a row for each token and expert.",
    "expanded_src_to_dst_row": "Position of each row in the order of experts.",
    "export_for_source_row": "Experts of each token.",
    "skip1": "The first addend of the results.", "skip2": "The second addend of the results.",
    "threshold": "Elements below it become 0; one element.",
    "param": "Parameters, updated in place.", "exp_avg": "Running mean of gradients, which is updated.",
    "exp_avg_sq": "Running mean of squared gradients, which is updated.",
    "max_exp_avg_sq": "Largest running mean of squared gradients so far, which is updated.",
    "step": "Number of updates that are finished, one element.",
    "var": "The tensor to update.", "updates": "The new elements.",
    "on_value": "Value at the positions, one element.", "off_value": "Value elsewhere, one element.",
    "repeats": "Number of repetitions of each element.", "y": "Result of the forward operator.",
    "y_grad": "Gradient with respect to the forward operator's result.",
    "A": "The triangular matrices.", "x1_offset": "Offsets of the first factor.",
    "y_scale": "Scales of the result.", "y_offset": "Offsets of the result.",
}  # fmt: skip


def _input_words(operator: Operator, role: str) -> str:
    if role in ("grad_output", "grad_out"):
        return "Gradient with respect to the forward operator's result."
    if not {"grad_output", "grad_out"} & {*operator.inputs}:
        return OPERAND_WORDS[role]
    result = " or, if the option says so, its result" if "result" in role else ""
    return f"The input of the forward operator{result}."


# --- The functional forms ---------------------------------------------------------------------


def functional_doc(operator: Operator, name: str) -> str:
    """The docstring of ``aclnn.<name>``, in numpydoc style."""
    in_place = name == operator.in_place
    tensors = operator.inputs if in_place else (*operator.inputs, *operator.outputs)
    names = {r: r for r in (*tensors, *(a.role for a in operator.attributes))}
    form = _Form(operator, names, is_functional=True)
    changed = " It is overwritten by the result." if in_place else ""
    attributes = {attribute.role: attribute for attribute in operator.form_options}
    parameters = [
        _option(attributes[role]) if role in attributes
        else _input(form, role, changed if role in operator.overwritten.values() else "")
        for role in (*operator.positional, *_by_keyword(operator))
    ]  # fmt: skip
    if not in_place:
        parameters.append(_out(form))
    broken = (
        "With a message and a status: ACLNN_ERR_PARAM_INVALID (161002) if one of these rules is "
        "broken, checked in this order:"
    )
    return "\n".join(
        [
            operator.summary + (" In place." if in_place else ""),
            *_section("Parameters", parameters),
            *_section("Returns", _returned(form, in_place=in_place)),
            *_section("Raises", [_defined("AclnnError", broken), *form.numbered()]),
            *_see_also(operator.seealso),
            *_section("Notes", _notes(form, ", ".join(e.name for e in operator.entries))),
            *_section("Examples", functional_example(operator, name)),
        ]
    )


def _by_keyword(operator: Operator) -> list[str]:
    """Parameters that the functional form takes by name only."""
    others = [*(a.role for a in operator.form_options), *operator.inputs]
    return [role for role in others if role not in operator.positional]


def _input(form: _Form, role: str, changed: str) -> str:
    kind = "sequence of arrays" if role in form.operator.lists else "array"
    if role in (*form.operator.numbers, *(form.operator.number_form or ())[:1]):
        kind += " or float"
    if role in form.operator.optional:
        kind += ", optional"
    return _defined(f"{role} : {kind}", f"{form.input(role)} Any strides.{changed}")


def _out(form: _Form) -> str:
    where = "Array for the result; allocated if not given. It may overlap inputs in any way."
    count = len(form.operator.outputs)
    if form.operator.makes is not None:
        listed = (
            "Arrays for the results; allocated if not given. They may overlap inputs in any way."
        )
        return _defined("out : tuple of array, optional", form.tensor("out", listed))
    if count == 1:
        return _defined("out : array, optional", form.tensor("out", where))
    words = f"Arrays for the {count} results, None for one to allocate. They may overlap inputs."
    return _defined("out : tuple of array, optional", words)


def _option(attribute: Attribute) -> str:
    kind = _PYTHON_KINDS.get(attribute.kind, attribute.kind)
    if attribute.default is REQUIRED:
        return _defined(f"{attribute.role} : {kind}", attribute.doc)
    words = f"{attribute.doc} Default {attribute.default!r}."
    return _defined(f"{attribute.role} : {kind}, optional", words)


def _returned(form: _Form, *, in_place: bool) -> list[str]:
    operator = form.operator
    if in_place and len(operator.outputs) == 1:
        return [_defined("array", f"`{operator.inputs[0]}` itself.")]
    if in_place:
        taken = operator.overwritten
        words = {role: f"`{taken[role]}` itself." if role in taken else "A new array."
                 for role in operator.outputs}  # fmt: skip
        return [_defined(f"{role} : array", words[role]) for role in operator.outputs]
    own = "`out` if passed, else a new array of the caller's type"
    if operator.makes is not None:
        several = own.replace("a new array", "new arrays")
        return [_defined("tuple of array", f"{several}. {_shape_of_result(form)}")]
    if len(operator.outputs) > 1:
        own = own.replace("`out`", "That of `out`")
        return [_defined(f"{r} : array", form.tensor(r, f"{own}.")) for r in operator.outputs]
    if operator.infer is not None:
        return [_defined("array", f"{own}. {_shape_of_result(form)}")]
    described = (
        f"the dtype and shape of `{operator.inputs[0]}`"
        if len(operator.inputs) == 1
        else "the dtype that the inputs promote to and the shape that they broadcast to"
    )
    return [_defined("array", f"{own}, with {described}.")]


def _shape_of_result(form: _Form) -> str:
    """Rules about the result's shape."""
    (result,) = form.operator.outputs
    sentences = [
        text for _, roles, text in form.rules() if roles[:1] == [result] and "shape" in text
    ]
    return _sentence("; ".join(sentences))


# --- The C-shaped functions -------------------------------------------------------------------


_TYPE_ERROR = "TypeError\n    For a wrong number of arguments; everything else is a status."


def phase_one_doc(operator: Operator, item: Entry) -> str:
    """The docstring of ``aclnnXxxGetWorkspaceSize``."""
    form = _Form(operator, {p.role: p.name for p in item.parameters})
    attributes = {attribute.role: attribute for attribute in operator.attributes}
    parameters = [
        _defined(
            f"{p.name} : {_KINDS.get(p.kind, p.kind)}",
            _UNUSED[p.kind]
            if p.is_unused
            else _tensor_words(form, p)
            if p.is_tensor or p.kind in ("inputs", "outputs", "single") or p.role in operator.inputs
            else _option_words(operator, p, attributes[p.role]),
        )
        for p in item.parameters
    ]
    status = (
        "ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed argument; "
        "ACLNN_ERR_INNER (561000) if memory ran out; ACLNN_ERR_PARAM_INVALID (161002) if one of "
        "these rules is broken, checked in this order:"
    )
    returned = [
        _defined("workspaceSize : int", "Bytes that phase two needs, often none; 0 on failure."),
        _defined(
            "executor : aclOpExecutor or None", "The executor for phase two; None on failure."
        ),
        _defined("status : int", status),
        *form.numbered(),
    ]
    return "\n".join(
        [
            f"Phase one of {item.name}: check the arguments and plan.",
            "",
            _filled(f"{operator.summary} A failure sets the message of `aclGetRecentErrMsg`."),
            *_section("Parameters", parameters),
            *_section("Returns", returned),
            *_section("Raises", [_TYPE_ERROR]),
            *_see_also((item.name, *_functional_name(operator))),
            *_section("Notes", _notes(form, item.name, item.fixed)),
            *_section("Examples", c_example(operator, item)),
        ]
    )


def phase_two_doc(operator: Operator, item: Entry) -> str:
    """The docstring of ``aclnnXxx``."""
    parameters = [
        _defined(
            "workspace : buffer, int or None",
            "At least `workspaceSize` writable bytes of any alignment, or their address; None for 0 bytes.",
        ),
        _defined("workspaceSize : int", "The size that phase one returned, or more."),
        _defined(
            "executor : aclOpExecutor",
            "Executor of phase one; used up afterwards unless repeatable.",
        ),
        _defined(
            "stream : aclrtStream or None",
            "The queue for the work; None runs it on the calling thread before returning.",
        ),
    ]
    status = (
        "ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null executor, workspace or data "
        "pointer; ACLNN_ERR_PARAM_INVALID (161002) for a workspace that is too small or freed, or "
        "shares memory with an operand; "
        "ACLNN_ERR_INNER (561000) for an executor that was used, was destroyed or is another "
        "function's; ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream. "
        "A stream reports failures when it is synchronised, as ACLNN_ERR_RUNTIME_ERROR (361001). "
        "While a stream is captured: ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT (107031) on the default "
        "stream; ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED (507903) after work that the capture could "
        "not record; ACL_ERROR_STREAM_TASK_GROUP_INTR (107034) while a task group of another stream "
        "is open. On a stream that updates a task group: "
        "ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP (207019) for another operator than the group's, "
        "ACL_ERROR_STREAM_TASK_GROUP_STATUS (107033) for more of them than it has."
    )
    return "\n".join(
        [
            f"Phase two of {item.name}: run what phase one planned.",
            "",
            _filled(f"{operator.summary} A failure sets the message of `aclGetRecentErrMsg`."),
            *_section("Parameters", parameters),
            *_section("Returns", [_defined("status : int", status)]),
            *_section("Raises", [_TYPE_ERROR]),
            *_see_also((f"{item.name}GetWorkspaceSize", *_functional_name(operator))),
            *_section("Notes", _notes(_Form(operator, {}), item.name, item.fixed)),
            *_section("Examples", c_example(operator, item)),
        ]
    )


_UNUSED = {
    "absent": "Must be null: it is not implemented here (161002).",
    "later": "Must be null: it is not implemented here (561002).",
    "ignored": "Does not count.",
    "zero": "Must be 0: others are not implemented here (561002).",
}


def _tensor_words(form: _Form, parameter: Parameter) -> str:
    if parameter.kind in ("output", "outputs"):
        what = (
            "Tensor for the result; it"
            if parameter.kind == "output"
            else "Tensors for the results; they"
        )
        return form.tensor(parameter.role, f"{what} may overlap inputs in any way.")
    if parameter.kind == "single":
        return f"{form.input(parameter.role)} A list with one tensor, of any strides."
    if parameter.kind == "ints":
        return form.input(parameter.role)
    changed = " Overwritten by the result." if parameter.kind == "inout" else ""
    return f"{form.input(parameter.role)} Any strides.{changed}"


def _option_words(operator: Operator, parameter: Parameter, attribute: Attribute) -> str:
    if parameter.kind == "scalar":
        return f"{attribute.doc} Any dtype that can be converted to FLOAT."
    if parameter.kind != "int" or not attribute.choices:
        return attribute.doc
    numbered = (f"{number} is {choice!r}" for number, choice in enumerate(attribute.choices))
    return f"{attribute.doc} As a number: {', '.join(numbered)}."


# --- Parts of docstrings ----------------------------------------------------------------------


def _section(title: str, lines: list[str]) -> list[str]:
    return ["", title, "-" * len(title), *lines] if lines else []


def _defined(term: str, words: str) -> str:
    return f"{term}\n{_filled(words, '    ', '    ')}"


def _notes(form: _Form, entries: str, fixed: tuple[tuple[str, object], ...] = ()) -> list[str]:
    operator = form.operator
    chosen = "".join(f" Here `{role}` is {value!r}." for role, value in fixed)
    sentences = [
        f"{operator.expression}.{chosen}",
        form.worded(operator.notes),
        f"{SOURCE}{f' ({entries})' if entries else ''}. {operator.accuracy or _ACCURACY}",
    ]
    return ["\n\n".join(_filled(words) for words in sentences if words)]


def _functional_name(operator: Operator) -> tuple[str, ...]:
    return (operator.name,) if operator.functional else operator.seealso


def _see_also(names: tuple[str, ...]) -> list[str]:
    return _section("See Also", [", ".join(names)] if names else [])


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _filled(text: str, first: str = "", rest: str = "") -> str:
    """Lines of words, with indents; docstrings are made at the import, for which textwrap is slow.

    >>> print(_filled("word " * 20, "- "))
    - word word word word word word word word word word word word word word word word word word
    word word
    """
    lines, line, empty = [], first, True
    for word in text.split():
        if not empty and len(line) + len(word) >= _WIDTH:
            lines.append(line)
            line, empty = rest, True
        line += word if empty else f" {word}"
        empty = False
    return "\n".join([*lines, line])
