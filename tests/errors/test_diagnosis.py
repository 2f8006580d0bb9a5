"""What messages say of a failed call, and programs that make it fail again."""

import itertools
import re
import shutil
import subprocess
from enum import IntEnum

import numpy as np
import pytest

import aclnn
from aclnn.operators import ENTRIES


def test_messages_of_a_failed_phase_one_explain_it():
    x = np.zeros((2, 3), np.float32)
    tensor = aclnn.aclCreateTensor((2, 3), 0, None, 0, 2, (2, 3), x)
    other = aclnn.aclCreateTensor((3, 2), 0, None, 0, 2, (3, 2), x)
    assert aclnn.aclnnGeluBackwardGetWorkspaceSize(tensor, tensor, other)[2] == 161002
    text = aclnn.aclGetRecentErrMsg()
    assert text.splitlines()[0] == (
        "aclnnGeluBackwardGetWorkspaceSize: gradInput has shape (3, 2), but must have the broadcast shape (2, 3)"
    )
    assert "4. `out` has the broadcast shape of the inputs   <-- broken" in text
    assert text.count("<-- broken") == 1
    call = text[text.index("in Python:") + 10 : text.index("in C++:")].strip()
    assert eval(call)[2] == 161002
    assert (
        "aclnnGeluBackwardGetWorkspaceSize(gradOutput, self, gradInput, &workspaceSize, &executor)"
        in text
    )


ACL_STUB = """
#pragma once
#include <cstddef>
#include <cstdint>
enum aclDataType { %s };
enum aclFormat { %s };
enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST };
typedef int aclnnStatus;
typedef void *aclrtStream;
struct aclTensor; struct aclScalar; struct aclOpExecutor;
struct aclTensorList; struct aclIntArray; struct aclBoolArray;
aclTensorList *aclCreateTensorList(const aclTensor *const *, uint64_t);
aclIntArray *aclCreateIntArray(const int64_t *, uint64_t);
aclBoolArray *aclCreateBoolArray(const bool *, uint64_t);
int aclInit(const char *); int aclrtSetDevice(int32_t); int aclrtCreateStream(aclrtStream *);
int aclrtMalloc(void **, size_t, aclrtMemMallocPolicy); int aclrtSynchronizeStream(aclrtStream);
aclTensor *aclCreateTensor(const int64_t *, uint64_t, aclDataType, const int64_t *, int64_t,
                           aclFormat, const int64_t *, uint64_t, void *);
aclScalar *aclCreateScalar(void *, aclDataType);
"""


C_KINDS = {
    "input": "const aclTensor *", "output": "aclTensor *", "inout": "aclTensor *",
    "scalar": "const aclScalar *", "float": "double", "bool": "bool", "int": "int64_t",
    "str": "const char *", "inputs": "const aclTensorList *", "outputs": "aclTensorList *", "ints": "const aclIntArray *",
    "bools": "const aclBoolArray *", "dtype": "aclDataType",
    "single": "const aclTensorList *", "absent": "const void *", "later": "const void *",
    "ignored": "int64_t", "zero": "int64_t",
}  # fmt: skip


def stub_headers(folder, name):
    """As much of CANN's headers as a call of one function needs."""
    kinds = ", ".join(
        "const void *" if p.kind == "ignored" and p.optional else C_KINDS[p.kind]
        for p in ENTRIES[name][1].parameters
    )
    members = [
        ", ".join(f"{member.name} = {int(member)}" for member in kind)
        for kind in (aclnn.aclDataType, aclnn.aclFormat)
    ]
    for place in ("acl", "aclnnop"):
        (folder / place).mkdir(exist_ok=True)
    (folder / "acl" / "acl.h").write_text(ACL_STUB % tuple(members))
    words = re.findall("[A-Z][a-z0-9]*", name.replace("Inplace", ""))
    header = folder / "aclnnop" / ("_".join(["aclnn", *words]).lower() + ".h")
    # What works in place is in the header of its like.
    declared = header.read_text() if header.exists() else "#pragma once\n"
    header.write_text(
        f"{declared}"
        f"aclnnStatus {name}GetWorkspaceSize({kinds}, uint64_t *, aclOpExecutor **);\n"
        f"aclnnStatus {name}(void *, uint64_t, aclOpExecutor *, aclrtStream);\n"
    )


def refused_call(name):
    """Arguments of which phase one refuses the shapes."""
    x = np.zeros(16, np.float32)
    values = {
        "input": lambda: aclnn.aclCreateTensor((2, 3), 0, (1, 2), 1, 2, (16,), x),
        "output": lambda: aclnn.aclCreateTensor((3, 5), 0, None, 0, 2, (3, 5), x),
        "inout": lambda: aclnn.aclCreateTensor((1,) * 9, 0, None, 0, 2, (1,) * 9, x),
        "scalar": lambda: aclnn.aclCreateScalar(float("-inf"), 1), "float": lambda: 1e-300,
        "bool": lambda: True, "int": lambda: 1, "str": lambda: "tanh",
        "inputs": lambda: aclnn.aclCreateTensorList([values["input"](), values["input"]()]),
        "outputs": lambda: aclnn.aclCreateTensorList([values["output"]()] * 3),
        "ints": lambda: aclnn.aclCreateIntArray([1, 0]), "dtype": lambda: aclnn.ACL_INT8,
        "bools": lambda: aclnn.aclCreateBoolArray([True, False]),
        "single": lambda: aclnn.aclCreateTensorList([values["input"]()]),
        "absent": lambda: None, "later": lambda: None, "ignored": lambda: 0, "zero": lambda: 0,
    }  # fmt: skip
    if ENTRIES[name][0].any_rank:  # but not any dtype
        values["inout"] = lambda: aclnn.aclCreateTensor((1,), 10, None, 0, 2, (1,), np.uint64([1]))
    modes = {"rotary_mode": "half"}
    if name == "aclnnArange":  # of any size, but not of steps that are none
        modes["step"] = aclnn.aclCreateScalar(0, aclnn.ACL_INT64)
    return [
        None
        if parameter.kind == "ignored" and parameter.optional
        else modes.get(parameter.role) or values[parameter.kind]()
        for parameter in ENTRIES[name][1].parameters
    ]


def reproduced(name, arguments, expected=161002, same_words=True):
    """The message of a call that fails, whose program in Python fails in the same way; that in C++."""
    status = getattr(aclnn, f"{name}GetWorkspaceSize")(*arguments)[2]
    assert status == expected
    text = aclnn.aclGetRecentErrMsg()
    python, _, cpp = text.partition("in Python:")[2].partition("in C++:")
    assert eval(python.strip())[2] == status
    if same_words:
        assert aclnn.aclGetRecentErrMsg().splitlines()[0] == text.splitlines()[0]
    for call in (f"{name}GetWorkspaceSize(", f"{name}(workspace, workspaceSize, executor, stream)"):
        assert call in cpp
    return text, cpp


def assert_compiles(folder, programs):
    """Pairs of a name and C++: read at once, each in a namespace, as headers take most of the time."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler to read the program with")
    headers, bodies = {}, []
    for name in dict(programs):
        stub_headers(folder, name)
    for number, (name, cpp) in enumerate(programs):
        lines = cpp.splitlines()
        headers |= dict.fromkeys(line for line in lines if line.lstrip().startswith("#"))
        body = [line for line in lines if line not in headers]
        bodies += [f"namespace call{number}_{name} {{", *body, "}"]
    (folder / "call.cpp").write_text("\n".join([*headers, *bodies]) + "\n")
    command = [compiler, "-std=c++11", "-Wall", "-Werror", "-fsyntax-only", "-I", str(folder)]
    done = subprocess.run(
        [*command, str(folder / "call.cpp")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def status_of_refused(name):
    """Some have shapes that are refused where the work is divided, or are not of this product."""
    if name.endswith("AttentionScoreV5") and aclnn.get_soc_version() != "Ascend950":
        return 361001
    return 561002 if ENTRIES[name][0].name in TILED else 161002


TILED = (
    *("swiglu", "swiglu_backward", "native_rms_norm", "rms_norm_backward", "gemma_rms_norm"),
    *("add_rms_norm", "add_layer_norm", "gelu_mul", "fatrelu_mul", "squared_relu"),
    *("rotary_position_embedding", "apply_rotary_pos_emb", "interleave_rope"),
)


def test_failures_reproduce_in_python_and_cpp(tmp_path):
    programs = [
        (name, reproduced(name, refused_call(name), status_of_refused(name))[1]) for name in ENTRIES
    ]
    assert_compiles(tmp_path, programs)
    name, cpp = programs[0]
    with pytest.raises(AssertionError, match="not declared"):
        assert_compiles(tmp_path, [(name, cpp.replace("stream", "steam", 1))])


INF, NAN = float("inf"), float("nan")


HELD = [
    (complex(NAN, -INF), 16, "complex(float('nan'), float('-inf'))"),
    (complex(-0.0, INF), 17, "complex(-0.0, float('inf'))"),
    (-(2**63), 9, "-9223372036854775808"), (2**64 - 1, 10, "18446744073709551615"),
]  # fmt: skip


def test_scalars_reproduce_whatever_they_hold(tmp_path):
    programs = []
    for value, dtype, word in HELD:
        arguments = refused_call("aclnnLeakyRelu")
        arguments[1] = aclnn.aclCreateScalar(value, dtype)
        text, cpp = reproduced("aclnnLeakyRelu", arguments)
        assert f"aclCreateScalar({word}, {dtype})" in text
        programs.append(("aclnnLeakyRelu", cpp))
    assert_compiles(tmp_path, programs)


class Switch(IntEnum):
    TANH = 1


PLAIN = [("aclnnLogit", 1, np.float32(0.1), "0.10000000149011612", "0.10000000149011612"),
     ("aclnnLogit", 1, np.float64(NAN), "float('nan')", "NAN"), ("aclnnLogit", 1, 2**70, "1.18", "1.18"),
     ("aclnnLogit", 1, "null", "'null'", "{} /* 'null' */"), ("aclnnLogit", 1, None, "None", "{}"),
     ("aclnnLogit", 1, 1j, "...", "{} /* 1j */"),
     ("aclnnEluBackward", 4, np.True_, "True", "true"), ("aclnnEluBackward", 4, "no", "'no'", "{}"),
     ("aclnnGeluV2", 1, np.int64(1), "1", "1"), ("aclnnGeluV2", 1, Switch.TANH, "1", "1"),
     ("aclnnGeluV2", 1, -(2**63), "...", "{}"), ("aclnnGeluV2", 1, True, "True", "{}"),
     ("aclnnGeluBackwardV2", 2, b"tanh", "'tanh'", '"tanh"'),
     ("aclnnGeluBackwardV2", 2, 1, "1", "nullptr /* 1 */"),
     ("aclnnGelu", 0, 3, "3", "nullptr /* 3 */"), ("aclnnGelu", 0, Switch.TANH, "...", "nullptr"),
     ("aclnnGelu", 0, "**//* */", "'**//* */'", "nullptr /* '** / / * * / ' */"),
     ("aclnnGelu", 0, np.zeros((2, 2)), "...", "nullptr /* array([[0., 0.], [0., 0.]]) */")]  # fmt: skip


def test_plain_arguments_reproduce_whatever_they_are(tmp_path):
    programs = []
    for name, place, value, python, cpp in PLAIN:
        arguments = refused_call(name)
        arguments[place] = value
        text, program = reproduced(name, arguments, same_words=python != "...")
        call = text.partition("in Python:")[2].splitlines()[2 + place]
        assert call.strip().startswith(python)
        (call,) = [line for line in text.splitlines() if "int status = " in line]
        assert cpp in call
        assert "no tensor or scalar is null   <--" not in text
        programs.append((name, program))
    assert_compiles(tmp_path, programs)


def test_null_and_destroyed_arguments_reproduce(tmp_path):
    programs = []
    for place, destroyed in itertools.product((0, 1), (False, True)):
        arguments = refused_call("aclnnLeakyRelu")
        if destroyed:
            destroy = aclnn.aclDestroyScalar if place else aclnn.aclDestroyTensor
            assert destroy(arguments[place]) == 0
        else:
            arguments[place] = None
        text, cpp = reproduced("aclnnLeakyRelu", arguments, 161001, not destroyed)
        assert "0. no tensor or scalar is null   <-- broken" in text
        assert text.count("<-- broken") == 1
        programs.append(("aclnnLeakyRelu", cpp))
    assert_compiles(tmp_path, programs)


def test_odd_arguments_are_shown_and_never_executed():
    x = np.zeros(3, np.float32)
    tensor = aclnn.aclCreateTensor((3,), 0, None, 0, 2, (3,), x)
    for odd in (x, {"a": 1}, b"bytes", 1j):
        assert aclnn.aclnnGeluGetWorkspaceSize(odd, tensor)[2] == 161002
        text = aclnn.aclGetRecentErrMsg()
        python = text.partition("in Python:")[2].partition("in C++:")[0]
        assert eval(python.strip())[2] == 161002
        assert repr(odd) in text
