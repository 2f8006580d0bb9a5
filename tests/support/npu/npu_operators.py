"""ATen's operators on the emulated npu device beside the CPU: results, gradients, who computed, what is refused."""

import re

import pytest
import torch
from torch.nn import functional

import aclnn.torch.npu as npu
from aclnn.torch.npu.operators import implemented

pytestmark = pytest.mark.filterwarnings("default")  # programs of others warn

npu.enable()
FEWEST = 570  # overloads of ATen that the package computes


def drawn(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))).to(dtype)


def flat(made):
    if isinstance(made, torch.Tensor):
        return [made]
    return [one for part in made for one in flat(part)] if isinstance(made, list | tuple) else []


def on(device, given):
    return [
        one.detach().clone().to(device).requires_grad_(one.is_floating_point()) for one in given
    ]


IMAGES = drawn(2, 4, 6, 6)
ROWS = torch.tensor([1, 0, 1])
MASK = torch.tensor([True, False, True, True])


def written(x, index, values):
    x = x.clone()
    x[index] = values
    return x


def normalized(x, weight, bias, training):
    mean, variance = torch.zeros(4, device=x.device), torch.ones(4, device=x.device)
    made = functional.batch_norm(x, mean, variance, weight, bias, training)
    return made, mean, variance


# What is called, on what, and what then has computed.
CASES = {
    "conv2d": (lambda x, w, b: functional.conv2d(x, w, b, padding=1), (IMAGES, drawn(6, 4, 3, 3), drawn(6)),
               "aten::convolution_overrideable aten::convolution_backward"),
    "conv1d": (functional.conv1d, (IMAGES[0], drawn(6, 6, 3), drawn(6)), "aten::convolution_overrideable"),
    "conv3d": (lambda x, w: functional.conv3d(x, w, groups=2), (drawn(1, 4, 5, 5, 5), drawn(6, 2, 3, 3, 3)),
               "aten::convolution_overrideable aten::convolution_backward"),
    "conv_transpose2d": (lambda x, w: functional.conv_transpose2d(x, w, None, 2, 1, 1), (IMAGES, drawn(4, 6, 3, 3)),
                         "aten::convolution_overrideable aten::convolution_backward"),
    "matmul of matrices": (torch.matmul, (drawn(3, 4), drawn(4, 5)), "aten::matmul"),
    "matmul of vectors": (torch.matmul, (drawn(4), drawn(4)), "aten::matmul"),
    "matmul of a vector and a matrix": (torch.matmul, (drawn(4), drawn(4, 5)), "aten::matmul"),
    "matmul of many matrices and one": (torch.matmul, (drawn(2, 3, 4), drawn(4, 5)), "aten::matmul aten::mm"),
    "matmul of many vectors": (torch.matmul, (drawn(2, 3, 4), drawn(4)), "aten::matmul"),
    "matmul of one matrix and many": (torch.matmul, (drawn(3, 4), drawn(2, 4, 5)), "aten::matmul"),
    "matmul that broadcasts": (torch.matmul, (drawn(2, 1, 3, 4), drawn(3, 4, 5)), "aten::matmul"),
    "matmul of nothing": (torch.matmul, (drawn(2, 3, 0), drawn(0, 5)), "aten::matmul"),
    "linear": (functional.linear, (drawn(2, 3, 4), drawn(5, 4)), "aten::matmul"),
    "prelu": (functional.prelu, (IMAGES, drawn(4)), "aten::_prelu_kernel aten::_prelu_kernel_backward"),
    "rrelu": (functional.rrelu, (IMAGES,), "aten::rrelu_with_noise"),
    "logsigmoid": (functional.logsigmoid, (IMAGES,), "aten::log_sigmoid_forward aten::log_sigmoid_backward"),
    "silu": (functional.silu, (IMAGES,), "aten::silu aten::silu_backward"),
    "mish": (functional.mish, (IMAGES,), "aten::mish aten::mish_backward"),
    "one_hot": (lambda x: functional.one_hot(x, 3), (ROWS,), "aten::one_hot"),
    "isfinite": (torch.isfinite, (IMAGES,), "aten::isfinite"),
    "argsort": (lambda x: torch.argsort(x, -1, True), (IMAGES,), "aten::argsort"),
    "sort": (lambda x: torch.sort(x, stable=True)[0], (IMAGES,), "aten::sort.stable"),
    "index": (lambda x, i: x[i], (IMAGES, ROWS), "aten::index.Tensor aten::_index_put_impl_"),
    "index of the last dimensions": (lambda x, i: x[..., i, i], (IMAGES, ROWS), "aten::index.Tensor"),
    "index of dimensions apart": (lambda x, i: x[i, :, i], (IMAGES, ROWS), "aten::index.Tensor"),
    "index by a mask": (lambda x, m: x[:, m], (IMAGES, MASK), "aten::index.Tensor aten::_index_put_impl_"),
    "index by a mask and a number": (lambda x, m: x[:, m, 0], (IMAGES, MASK), "aten::index.Tensor"),
    "index by a mask of all": (lambda x: x[x > 0], (IMAGES,), "aten::index.Tensor"),
    "written at indices": (written, (IMAGES, ROWS[:2], drawn(2, 4, 6, 6)), "aten::index_put_"),
    "written where a mask is": (lambda x: written(x, x > 0, 2.0), (IMAGES,), "aten::index_put_"),
    "added at indices": (lambda x, i, v: x.index_put((i,), v, accumulate=True), (IMAGES, ROWS, drawn(4, 6, 6)),
                         "aten::index_put"),
    "index_fill": (lambda x, i, v: x.index_fill(1, i, v), (IMAGES, ROWS, drawn()), "aten::index_fill.int_Tensor"),
    "nonzero": (lambda x: torch.nonzero(x > 0), (IMAGES,), "aten::nonzero"),
    "masked_select": (lambda x: torch.masked_select(x, x > 0), (IMAGES,), "aten::masked_select"),
    "repeat": (lambda x: x.repeat(2, 1, 1, 1, 2), (IMAGES,), "aten::repeat"),
    "repeat_interleave": (lambda x, n: torch.repeat_interleave(x, n, 0), (IMAGES, torch.tensor([2, 1])),
                          "aten::repeat_interleave.Tensor"),
    "batch_norm in training": (lambda x, w, b: normalized(x, w, b, True), (IMAGES, drawn(4), drawn(4)),
                               "aten::native_batch_norm aten::native_batch_norm_backward"),
    "batch_norm": (lambda x, w, b: normalized(x, w, b, False), (IMAGES, drawn(4), drawn(4)),
                   "aten::native_batch_norm aten::native_batch_norm_backward"),
    "pow_": (lambda x: x.clone().pow_(2), (IMAGES,), "aten::pow_.Scalar"),
    "floor_divide_": (lambda x: x.detach().clone().floor_divide_(x.detach().abs() + 1), (IMAGES,), "aten::floor_divide_.Tensor"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_those_of_the_cpu(name):
    function, operands, computed = CASES[name]
    (own, wanted), (others, made) = (
        (given, function(*given)) for given in (on("cpu", operands), _counted(on("npu", operands)))
    )
    for mine, its in zip(flat(made), flat(wanted), strict=True):
        assert mine.device.type == "npu"
        torch.testing.assert_close(mine.detach().cpu(), its.detach(), atol=1e-4, rtol=1e-3)
    first, other = flat(wanted)[0], flat(made)[0]
    if first.requires_grad:
        weights = drawn(*first.shape)
        first.backward(weights)
        other.backward(weights.npu())
        for mine, its in zip(others, own, strict=True):
            if isinstance(its, torch.Tensor) and its.grad is not None:
                torch.testing.assert_close(mine.grad.cpu(), its.grad, atol=1e-3, rtol=1e-2)
    counted = npu.counts()
    for one in computed.split():
        assert counted.get(one, (0, 0)) >= (1, 0), counted
        assert not counted[one][1], counted


def _counted(given):
    npu.reset_counts()
    return given


def test_most_overloads_with_a_function_are_computed_by_it():
    assert len(implemented()) >= FEWEST
    assert {
        "aten::add.Tensor",
        "aten::add_.Tensor",
        "aten::add.out",
        "aten::matmul",
    } <= implemented()


def test_memory_that_is_made_and_filled_is_the_devices_own():
    x = torch.ones(2, 3, device="npu")
    npu.reset_counts()
    made = [
        torch.zeros_like(x), torch.ones_like(x), torch.full_like(x, 2), x.new_zeros(3), x.new_ones(3), x.new_full((3,), 2),
        torch.empty_like(x), x.new_empty(3), x.clone().zero_(), x.clone().fill_(2),
    ]  # fmt: skip
    assert all(one.is_npu for one in made)
    assert npu.counts() == {}
    sums = [one.sum().item() for one in made]
    assert sums[:6] == [0, 6, 12, 0, 3, 6]
    assert sums[8:] == [0, 12]


def test_gradients_of_products_have_gradients():
    def twice(x, other):
        y = torch.matmul(x, other)
        (grad,) = torch.autograd.grad((y**3).sum(), x, create_graph=True)
        return torch.autograd.grad((grad**2).sum(), [x, other])

    operands = drawn(2, 3, 4), drawn(4, 5)
    made, wanted = (twice(*on(device, operands)) for device in ("npu", "cpu"))
    for mine, its in zip(made, wanted, strict=True):
        torch.testing.assert_close(mine.cpu(), its, atol=1e-2, rtol=1e-3)
    x, other = drawn(2, 3, 4).npu(), drawn(2, 4, 5).npu()
    assert torch.equal(torch.func.vmap(torch.matmul)(x, other), torch.matmul(x, other))
    direction = torch.func.jvp(torch.matmul, (x, other), (x, other))[1]
    torch.testing.assert_close(direction, 2 * torch.matmul(x, other))


@pytest.mark.parametrize("options", [{}, {"amsgrad": True, "maximize": True}])
def test_fused_steps_are_one_function_for_each_parameter(options):
    def stepped(device):
        parameter = torch.nn.Parameter(drawn(5).to(device))
        optimizer = torch.optim.AdamW([parameter], lr=0.1, fused=True, **options)
        for _ in range(3):
            optimizer.zero_grad()
            (parameter**2).sum().backward()
            optimizer.step()
        return parameter.detach().cpu()

    npu.reset_counts()
    torch.testing.assert_close(stepped("npu"), stepped("cpu"))
    assert npu.counts()["aten::_fused_adamw_"] == (3, 0)


def test_softmax_of_another_dtype_is_cast_first():
    x = drawn(3, 4, dtype=torch.float16)
    made = torch._softmax(x.npu(), -1, True)
    assert made.dtype == torch.float32
    torch.testing.assert_close(made.cpu(), x.float().softmax(-1), atol=1e-6, rtol=1e-5)
    own = x.npu().requires_grad_()
    for function in (torch.softmax, torch.log_softmax):
        made = function(own, -1, dtype=torch.float32)
        (grad,) = torch.autograd.grad(made, own, torch.ones_like(made))
        assert (made.dtype, grad.dtype) == (torch.float32, torch.float16)


# What is refused, by whom: the function and its status, or the words and the code of the NPU's PyTorch.
X = drawn(3, 4)
REFUSED = {
    "shapes of mm": (lambda x: torch.mm(x, x), "aclnnMm", 161002),
    "shapes of bmm": (lambda x: torch.bmm(x[None], x[None]), "aclnnBatchMatMul", 161002),
    "shapes of matmul": (lambda x: torch.matmul(x, x), "aclnnMatmul", 161002),
    "shapes of addmm": (lambda x: torch.addmm(x, x, x), "aclnnAddmm", 161002),
    "shapes of add": (lambda x: x + x[:, :3], "aclnnAdd", 161002),
    "integers in matmul": (lambda x: x.int() @ x.int().t(), "aclnnMatmul", 161002),
    "float64 in a convolution": (
        lambda x: functional.conv1d(x.cpu().double().npu()[None], x.cpu().double().npu()[None]), "aclnnConvolution", 161002,
    ),
    "complex numbers that are indexed": (lambda x: x.to(torch.complex64)[ROWS.npu()], "aclnnIndex", 161002),
    "an index that is too large": (lambda x: x[ROWS.npu() + 9], "aclnnIndex", 161002),
    "shapes of cat": (lambda x: torch.cat([x, x[:, :2]]), "aclnnCat", 161002),
    "a factor of integers": (lambda x: torch.add(x.int(), x.int(), alpha=1.5), "alpha must not be a floating point", "002"),
    "a factor in place": (lambda x: x.int().sub_(x.int(), alpha=1.5), "alpha must not be a floating point", "002"),
    "a factor that is true": (lambda x: torch.add(x, x, alpha=True), "Boolean alpha only supported for Boolean", "002"),
    "float64 that is sorted": (
        lambda x: torch.sort(x.cpu().double().npu(), stable=True), "Input data type should not be float64 ", "002",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("compact", [False, True])
def test_refusals_are_in_the_words_of_the_npu(name, compact, monkeypatch):
    function, words, code = REFUSED[name]
    if compact:
        monkeypatch.setenv("TORCH_NPU_COMPACT_ERROR_OUTPUT", "1")
    npu.reset_counts()
    with pytest.raises(RuntimeError) as caught:
        function(X.npu())
    said = str(caught.value)
    assert not any(fallback for _, fallback in npu.counts().values())
    if isinstance(code, str):
        assert words in said
        assert compact or re.search(
            rf"\n\[ERROR\] [\d:-]+ \(PID:\d+, Device:0, RankID:-1\) ERR01{code} OPS", said
        )
        return
    if compact:
        assert said.startswith(f"CANN error: call {words} failed, error code is {code}: ")
        return
    assert f"NPU function error: call {words} failed, error code is {code}\n[ERROR]" in said
    assert "ERR00100 PTA call acl api failed.\n[PID: " in said
    assert "AclNN_Parameter_Error(EZ1001): " in said
    assert npu.report().refused
