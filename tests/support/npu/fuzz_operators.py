"""Calls of PyTorch's operators with arguments at random, on the emulated npu device and beside it on the CPU.

    .venv/bin/python tests/support/npu/fuzz_operators.py --calls 20000 --seed 7

Which operators there are, and what they take, comes from PyTorch's own schemas. Arguments are what they ask for, and
sometimes not: wrong dtypes, shapes that do not fit, strided views, no elements, tensors of the other device. What is
checked after every call:

- the process lives: calls are made in a process of its own, which names the call that it died of;
- where the CPU computes a result and the device computes one, both are the same within the dtype's precision;
- where the CPU refuses with an exception, the device does not crash; what the device refuses, it does with an exception;
- the memory that the device counts is what its tensors hold: none is left when all are gone.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import torch

WIDTH = 2000  # bytes of a call that is noted
DTYPES = [torch.float32] * 6 + [
    torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int64, torch.int32, torch.int8, torch.uint8,
    torch.bool, torch.complex64,
]  # fmt: skip
SHAPES = [
    (),
    (1,),
    (4,),
    (2, 3),
    (3, 3),
    (1, 4),
    (4, 1),
    (2, 3, 4),
    (0,),
    (2, 0),
    (2, 3, 4, 4),
    (1, 2, 5, 5),
]
# Operators of which results say nothing: random or uninitialized, or of another device by name.
UNCOMPARABLE = (
    "empty", "rand", "normal", "bernoulli", "dropout", "poisson", "binomial", "multinomial", "uniform", "exponential",
    "geometric", "cauchy", "log_normal", "resize", "rrelu", "gamma", "dirichlet", "set_", "svd", "eig", "qr", "lu_",
    "_lu", "fused_adam", "fused_sgd", "fused_adagrad", "efficientzero", "ldl", "geqrf", "ormqr", "householder",
    "lobpcg", "choose_qparams", "_fft", "fft_", "stft", "cholesky_inverse", "lstsq", "attention", "is_pinned",
    "record_stream", "rnn", "lstm", "gru", "median", "sort", "topk", "kthvalue", "argmin", "argmax", "mode",
    "unique", "triangular_solve", "solve", "inverse", "linalg_inv", "quant", "histogram", "histc", "batch_norm", "native_layer_norm", "arange", "get_device", "_lazy_clone", "data_ptr", "version", "linspace", "logspace", "renorm", "spdiags", "storage", "log_sigmoid",
)  # fmt: skip
# Operators that are no calls on tensors, that wait or allocate what they are told, or read memory as they are told.
LEFT_OUT = (
    "aten::_cuda", "aten::_cudnn", "aten::cudnn", "aten::miopen", "aten::mkldnn", "aten::_mkldnn", "aten::_sparse",
    "aten::sparse", "aten::_nnpack", "aten::_test", "aten::_triton", "aten::_nested", "aten::nested", "aten::_jagged",
    "aten::_print", "aten::_assert", "aten::_linalg_check", "aten::to_mkldnn", "aten::_to_sparse", "aten::to_sparse",
    "aten::_coalesce", "aten::from_file", "aten::_dimI", "aten::_indices", "aten::_values", "aten::fbgemm",
    "aten::_weight_int", "aten::_dyn_quant", "aten::_convert_weight", "aten::qlinear", "aten::_mps", "aten::_use_cudnn",
    "aten::_thnn_differentiable", "aten::_fw_primal", "aten::_make_dual", "aten::_unpack_dual", "aten::_add_batch_dim",
    "aten::_remove_batch_dim", "aten::_foobar", "aten::segment_reduce", "aten::_segment", "aten::set_.source_Storage",
    "aten::_reshape_alias", "aten::as_strided", "aten::_unsafe_masked", "aten::_pack_padded", "aten::_pad_packed",
    "aten::_flash", "aten::_slow_conv", "aten::slow_conv", "aten::_thnn", "aten::_efficient", "aten::_cslt", "aten::_scaled_grouped", "aten::_grouped", "aten::sym_",
    "aten::_addmm_activation", "aten::retain_grad", "aten::requires_grad_", "aten::_backward", "aten::_resize_output",
    "aten::unsafe_chunk", "aten::repeat", "aten::tile", "aten::_ctc", "aten::ctc", "aten::_cholesky_solve_helper",
    "aten::_fused_moving", "aten::fused_moving", "aten::_fake_quant", "aten::embedding_bag", "aten::_embedding_bag",
    "aten::kron", "aten::tril_indices", "aten::triu_indices", "aten::vander", "aten::set_data", "aten::_validate",
    "aten::resize_as_sparse", "aten::copy_sparse", "aten::hspmm", "aten::smm", "aten::sspaddmm", "aten::crow",
    "aten::col_", "aten::ccol", "aten::row_", "aten::values", "aten::indices", "aten::coalesce", "aten::is_coalesced",
    "aten::cartesian_prod", "aten::combinations", "aten::block_diag", "aten::_spsolve", "aten::_int_mm",
    "aten::_transform_bias", "aten::_stack", "aten::_local_scalar_dense", "aten::_autocast_to", "aten::native_dropout",
    "aten::_lazy_clone", "aten::_compute_linear", "aten::_add_relu", "aten::set.", "aten::_cummax_helper",
    "aten::_cummin_helper", "aten::_cdist", "aten::embedding_dense_backward", "aten::_adaptive_avg_pool",
    "aten::adaptive_avg_pool3d_backward", "aten::_has_compatible", "aten::adaptive_max_pool", "aten::gather_backward",
    "aten::_gather_sparse", "aten::quantized", "aten::_native_multi_head", "aten::_transformer", "aten::_triton_multi",
)  # fmt: skip


# Refusals that the device adds to PyTorch's.
EXPECTED = (
    "NPU function error",
    "NOT_SUPPORT",
    "Device do not support",
    "should not be float64",
    "is refused",
    "to be on cpu",
    "and on CPU",
    "cannot pin",
    "can be pinned",
)


def operators() -> list[Any]:
    """Overloads of ATen whose arguments can be made up, those most programs use more often than once."""
    found = []
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        base, _, overload = name.removeprefix("aten::").partition(".")
        if not name.startswith("aten::") or name.startswith(LEFT_OUT):
            continue
        packet = getattr(torch.ops.aten, base, None)
        target = getattr(packet, overload or "default", None) if packet is not None else None
        if not isinstance(target, torch._ops.OpOverload):
            continue
        kinds = [str(one.type) for one in target._schema.arguments]
        if "backward" in base and "List[int]" in kinds:
            continue  # which PyTorch trusts, and reads memory by them
        if base.startswith("_foreach") and "out" in overload:
            continue  # whose lists of results it does not count
        if any("Tensor" in kind for kind in kinds) and all(_known(kind) for kind in kinds):
            found.append(target)
    return found


_SCALARS = {"int", "float", "bool", "number", "Scalar", "str", "Tensor", "Device", "Generator", "ScalarType", "Layout",
            "MemoryFormat"}  # fmt: skip


def _known(kind: str) -> bool:
    for _ in range(3):
        if kind.startswith(("Optional[", "List[")) and kind.endswith("]"):
            kind = kind.partition("[")[2][:-1]
    return kind in _SCALARS


class Draw:
    """Arguments at random, for both devices alike."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.shape: tuple[int, ...] = ()
        self.dtype = torch.float32

    def arguments(self, target: Any) -> tuple[list[Any], dict[str, Any]]:
        """Arguments by position and by name, on the CPU."""
        self.shape, self.dtype = self.random.choice(SHAPES), self.random.choice(DTYPES)
        args, named = [], {}
        for argument in target._schema.arguments:
            if argument.has_default_value() and self.random.random() < 0.5:
                if not argument.kwarg_only:
                    break
                continue
            value = self.value(str(argument.type), argument.name)
            if argument.kwarg_only:
                named[argument.name] = value
            else:
                args.append(value)
        for argument in target._schema.arguments:
            if argument.kwarg_only and not argument.has_default_value():
                named.setdefault(argument.name, self.value(str(argument.type), argument.name))
        return args, named

    def value(self, kind: str, name: str) -> Any:
        pick = self.random
        if "dtype" in name and kind.removeprefix("Optional[").rstrip("]") == "int":
            return (
                pick.choice([None, *DTYPES]) if kind.startswith("Optional") else pick.choice(DTYPES)
            )
        if "layout" in name or "memory_format" in name:
            return None if kind.startswith("Optional") else torch.contiguous_format
        if kind.startswith("Optional["):
            return None if pick.random() < 0.4 else self.value(kind[9:-1], name)
        if kind.startswith("List["):
            if kind == "List[int]" and pick.random() < 0.4:
                return list(self.shape)
            return [self.value(kind[5:-1], name) for _ in range(pick.choice([0, 1, 2, 2, 3]))]
        if kind == "Tensor":
            return self.tensor(name)
        if kind == "int":
            return pick.choice([0, 0, 1, 1, 1, 2, -1, -2, 3, 7])
        if kind == "float":
            return pick.choice([0.0, 1.0, 0.5, 2.0, -1.0, 1e-5])
        if kind in ("number", "Scalar"):
            return pick.choice([0, 1, 2, 0.5, -1.5, 3, True])
        if kind == "bool":
            return pick.random() < 0.5
        if kind == "str":
            return pick.choice(
                ["none", "mean", "sum", "tanh", "reflect", "floor", "trunc", "ij", "fro"]
            )
        return None

    def tensor(self, name: str) -> torch.Tensor:
        pick, dtype, shape = self.random, self.dtype, self.shape
        if "ind" in name or name == "target":
            dtype = torch.int64
        elif name == "mask" or name == "condition":
            dtype = torch.bool
        elif pick.random() < 0.1:
            dtype = pick.choice(DTYPES)
        if pick.random() < 0.2:
            shape = pick.choice(SHAPES)
        made = torch.randn(shape, generator=self.generator)
        if dtype is torch.int64 and ("ind" in name or name == "target"):
            made = made.abs()
        made = made.mul(3).to(dtype) if not dtype.is_floating_point else made.to(dtype)
        if made.dim() > 1 and pick.random() < 0.2:
            made = made.transpose(0, 1)
        if made.dim() and pick.random() < 0.1:
            made = made[::2]
        return made


def moved(given: Any, pick: random.Random, device: str) -> Any:
    """The arguments on the device, with their strides; now and then one stays on the CPU."""
    if isinstance(given, torch.Tensor):
        if pick.random() < 0.02:
            return given.clone()
        made = torch.empty_strided(given.shape, given.stride(), dtype=given.dtype, device=device)
        return made.copy_(given)
    if isinstance(given, list | tuple):
        return [moved(one, pick, device) for one in given]
    if isinstance(given, dict):
        return {key: moved(one, pick, device) for key, one in given.items()}
    return given


def tensors_in(given: Any) -> list[torch.Tensor]:
    return [one for one in torch.utils._pytree.tree_leaves(given) if isinstance(one, torch.Tensor)]


def clones(given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        return torch.empty_strided(given.shape, given.stride(), dtype=given.dtype).copy_(given)
    if isinstance(given, list | tuple):
        return [clones(one) for one in given]
    if isinstance(given, dict):
        return {key: clones(one) for key, one in given.items()}
    return given


def difference(wanted: Any, made: Any) -> str | None:
    """What results do not share; None where they are the same."""
    if isinstance(wanted, torch.Tensor):
        if not isinstance(made, torch.Tensor):
            return f"{made!r} is no tensor"
        if wanted.shape != made.shape:
            return f"shape {tuple(made.shape)} instead of {tuple(wanted.shape)}"
        if (wanted.dtype, made.dtype) == (torch.float64, torch.float32):
            wanted = wanted.float()  # converted, which the device has not
        if wanted.dtype != made.dtype:
            return f"{made.dtype} instead of {wanted.dtype}"
        coarse = wanted.dtype in (torch.float16, torch.bfloat16)
        try:
            torch.testing.assert_close(
                made.detach().cpu().resolve_conj().resolve_neg(), wanted.detach().resolve_conj().resolve_neg(),
                rtol=3e-2 if coarse else 1e-3, atol=3e-2 if coarse else 1e-4, equal_nan=True,
            )  # fmt: skip
        except AssertionError as error:
            return str(error).partition("\n\n")[2].replace("\n", " ")[:150]
        return None
    if isinstance(wanted, list | tuple):
        if not isinstance(made, list | tuple) or len(wanted) != len(made):
            return f"{type(made).__name__} instead of {len(wanted)} results"
        return next(filter(None, map(difference, wanted, made)), None)
    if isinstance(wanted, float) and isinstance(made, float):
        return (
            None
            if made == wanted or wanted != wanted or abs(made - wanted) <= 1e-3 * abs(wanted)
            else f"{made} instead of {wanted}"
        )
    return None if wanted == made else f"{made!r} instead of {wanted!r}"


def called(target: Any, args: Any, named: Any) -> tuple[Any, Exception | None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return target(*args, **named), None
    except Exception as error:
        return None, error


def shown(target: Any, args: Any, named: Any) -> str:
    def one(given: Any) -> str:
        if isinstance(given, torch.Tensor):
            return f"{str(given.dtype)[6:]}{list(given.shape)}/{list(given.stride())}"
        if isinstance(given, list | tuple):
            return f"[{', '.join(map(one, given))}]"
        return repr(given)

    words = [*map(one, args), *(f"{key}={one(value)}" for key, value in named.items())]
    return f"{target}({', '.join(words)})"


def run(options: argparse.Namespace) -> int:
    """Make the calls; the number of findings."""
    import aclnn.torch.npu as npu

    npu.enable()
    torch.set_num_threads(1)
    targets, seed = [one for one in operators() if options.only in one.name()], options.seed
    if options.computed:
        from aclnn.torch.npu.operators import implemented

        own = implemented()
        targets = [one for one in targets if one.name() in own]
    findings: Counter[str] = Counter()
    computed = refused = 0
    before = torch.npu.memory_allocated()
    noted = options.file.open("r+b", buffering=0)

    def note(words: str) -> None:
        os.pwrite(noted.fileno(), words.encode()[:WIDTH].ljust(WIDTH), 0)

    for number in range(options.begin, options.calls):
        draw = Draw(seed * 1_000_003 + number)
        target = draw.random.choice(targets)
        args, named = draw.arguments(target)
        text = shown(target, args, named)
        note(f"{number}: cpu: {text}")
        on_npu = moved((args, named), draw.random, "npu")
        own = clones((args, named))
        wanted, error = called(target, *own)
        note(f"{number}: npu: {text}")
        made, failure = called(target, *on_npu)
        computed, refused = computed + (failure is None), refused + (failure is not None)
        if error is None and failure is None:
            if any(word in target._schema.name for word in UNCOMPARABLE):
                continue
            written = [
                (a, b)
                for a, b in zip(own[0], on_npu[0], strict=True)
                if isinstance(a, torch.Tensor)
            ]
            try:
                found = difference(wanted, made) or next(
                    (f"argument: {words}" for a, b in written if b.is_npu and (words := difference(a, b))), None
                )  # fmt: skip
            except RuntimeError:  # a shape that PyTorch lets through, and cannot copy then
                continue
        elif failure is not None and not isinstance(
            failure, RuntimeError | NotImplementedError | TypeError | ValueError | IndexError
        ):
            found = f"{type(failure).__name__}: {failure}"
        elif (
            failure is not None
            and error is None
            and not any(words in str(failure) for words in EXPECTED)
            and all(one.is_npu for one in tensors_in(on_npu))
        ):
            found = f"refused: {str(failure).partition(chr(10))[0]}"
        elif (
            failure is not None
            and "INTERNAL ASSERT" in str(failure)
            and "INTERNAL ASSERT" not in str(error)
        ):
            found = str(failure).partition("\n")[0]
        else:
            found = None
        if found:
            findings[target.name()] += 1
            if findings[target.name()] == 1:
                print(f"{seed}:{number}: {text}: {found}", flush=True)
        written = wanted = made = own = on_npu = args = named = error = failure = None
    gc.collect()
    left = torch.npu.memory_allocated() - before
    if left:
        findings["memory"] += 1
        print(f"{left} bytes are counted although no tensor is left")
    print(
        f"{options.calls} calls, {computed} computed, {refused} refused, findings in {len(findings)} operators"
    )
    return len(findings)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="operators whose name has this word")
    parser.add_argument(
        "--file",
        type=Path,
        help="where the call that is made is noted; makes the calls in this process",
    )
    parser.add_argument(
        "--computed", action="store_true", help="only operators that the package computes"
    )
    parser.add_argument("--begin", type=int, default=0)
    options = parser.parse_args()
    if options.file is not None:
        return min(run(options), 100)
    file = Path(tempfile.mkstemp()[1])
    words = [sys.executable, __file__, *sys.argv[1:], "--file", str(file)]
    begin, found = options.begin, 0
    try:
        while True:
            status = subprocess.run([*words, "--begin", str(begin)], check=False).returncode
            if status >= 0:
                return found + status
            number, _, call = file.read_text().strip().partition(": ")
            if call.startswith("npu: "):
                found += 1
                print(f"{options.seed}:{number}: died of signal {-status} in {call}", flush=True)
            begin = (
                int(number) + 1
            )  # of what PyTorch's own kernels die of there is nothing to learn
    finally:
        file.unlink()


if __name__ == "__main__":
    raise SystemExit(main())
