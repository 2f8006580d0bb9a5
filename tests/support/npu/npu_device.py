"""What works on the emulated npu device as on others: views, memory, gradients, random numbers, saving."""

import copy
import importlib.metadata
import io
import os
import pickle
import re

import numpy as np
import packaging.version
import pytest
import torch
from torch import nn
from torch.nn import functional

import aclnn
import aclnn.torch.npu as npu

pytestmark = pytest.mark.filterwarnings("default")  # programs of others warn

npu.enable(devices=2, memory="1GiB")


def same(on_npu, wanted, **tolerance):
    assert on_npu.device.type == "npu"
    torch.testing.assert_close(on_npu.cpu(), wanted, **tolerance)


def test_it_is_enabled_once():
    npu.enable(devices=2, memory=1 << 30)
    with pytest.raises(RuntimeError, match=r"is enabled with .* and cannot become"):
        npu.enable(devices=1)
    for wrong, words in (({"soc": 3}, "soc is 3"), ({"memory": "much"}, "memory is 'much'"),
                         ({"devices": 99}, "devices is 99"), ({"fallback": "no"}, "fallback is 'no'")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            npu.enable(**wrong)


def test_views_write_into_their_base():
    x = torch.zeros(3, 4, device="npu")
    x[1].add_(2)
    x[:, 2] = 7
    x[x > 6] = -1
    x.t()[3] += 1
    x.view(2, 6)[0, :2] = 5
    same(x, torch.tensor([[5.0, 5, -1, 1], [2, 2, -1, 3], [0, 0, -1, 1]]))
    assert x[1:]._base is x


def test_outputs_are_resized():
    x, out = torch.ones(3, device="npu"), torch.empty(0, device="npu")
    torch.add(x, x, out=out)
    same(out, torch.full((3,), 2.0))
    out = torch.empty(0, device="npu")
    torch.linalg.svd(
        torch.eye(3, device="npu"),
        out=(out, torch.empty(0, device="npu"), torch.empty(0, device="npu")),
    )
    assert out.shape == (3, 3)


def test_copies_and_files_keep_the_device_and_what_is_shared():
    assert copy.deepcopy(torch.ones(3, device="npu:1")).device == torch.device("npu:1")
    assert pickle.loads(pickle.dumps(torch.ones(3, device="npu"))).is_npu
    x, file = torch.ones(6, device="npu"), io.BytesIO()
    torch.save({"x": x, "part": x[2:], "p": nn.Parameter(x.clone())}, file)
    file.seek(0)
    read = torch.load(file)
    read["x"][3] = 9
    assert read["part"][1].item() == 9
    assert read["p"].is_npu
    file.seek(0)
    assert torch.load(file, map_location="cpu")["x"].is_cpu
    file = io.BytesIO()
    torch.save(torch.ones(3), file)
    file.seek(0)
    assert torch.load(file, map_location="npu:1").device.index == 1


def test_types_have_names():
    assert torch.ones(1, device="npu").type() == "torch.npu.FloatTensor"
    assert torch.ones(1).type("torch.npu.HalfTensor").dtype == torch.float16
    with torch.device("npu"):
        assert all(one.is_npu for one in (torch.zeros(2), torch.tensor([1]), torch.arange(3)))


def test_functions_are_transformed():
    x = torch.ones(3, 4)
    same(torch.vmap(lambda a, b: (a * b).sum())(x.npu(), x.npu()), torch.full((3,), 4.0))
    same(torch.func.grad(lambda a: (a**2).sum())(x[0].npu()), 2 * x[0])
    same(torch.func.jvp(torch.sin, (x[0].npu(),), (x[0].npu(),))[1], x[0].cos())
    same(torch.func.hessian(lambda a: (a**3).sum())(x[0, :2].npu()), 6 * torch.eye(2))


@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"fused": True}])
def test_optimizers_do_as_on_the_cpu(options):
    torch.manual_seed(0)
    models = [nn.Linear(4, 4)]
    models.append(copy.deepcopy(models[0]).npu())
    x = torch.randn(8, 4)
    for model in models:
        optimizer = torch.optim.AdamW(model.parameters(), **options)
        for _ in range(3):
            optimizer.zero_grad()
            functional.mse_loss(
                model(x.to(model.weight.device)), torch.zeros(8, 4, device=model.weight.device)
            ).backward()
            optimizer.step()
    same(models[1].weight.data, models[0].weight.data)


@pytest.mark.parametrize("make", [
    lambda: nn.Conv2d(3, 4, 3, padding=1), lambda: nn.ConvTranspose2d(3, 4, 3), lambda: nn.BatchNorm2d(3),
    lambda: nn.GroupNorm(3, 3), lambda: nn.MaxPool2d(2), lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
], ids=str)  # fmt: skip
def test_layers_of_images_do_as_on_the_cpu(make):
    torch.manual_seed(1)
    model, x = make(), torch.randn(2, 3, 8, 8, requires_grad=True)
    other, y = copy.deepcopy(model).npu(), x.detach().npu().requires_grad_()
    wanted, made = model(x), other(y)
    same(made.detach(), wanted.detach(), atol=1e-5, rtol=1e-4)
    weights = torch.randn_like(wanted)
    (wanted * weights).sum().backward()
    (made * weights.npu()).sum().backward()
    same(y.grad, x.grad, atol=1e-4, rtol=1e-4)
    for mine, its in zip(other.parameters(), model.parameters(), strict=True):
        same(mine.grad, its.grad, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("bias", [True, False])
def test_recurrent_layers_do_as_on_the_cpu(kind, bias):
    torch.manual_seed(1)
    model, x = kind(4, 5, bias=bias), torch.randn(6, 3, 4, requires_grad=True)
    other, y = copy.deepcopy(model).npu(), x.detach().npu().requires_grad_()
    wanted, made = model(x)[0], other(y)[0]
    same(made.detach(), wanted.detach(), atol=1e-5, rtol=1e-4)
    weights = torch.randn_like(wanted)
    (wanted * weights).sum().backward()
    (made * weights.npu()).sum().backward()
    same(y.grad, x.grad, atol=1e-5, rtol=1e-4)
    for mine, its in zip(other.parameters(), model.parameters(), strict=True):
        same(mine.grad, its.grad, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_draw_the_same_masks_again(reentrant):
    model = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5)).npu()
    x = torch.ones(2, 4, device="npu", requires_grad=True)
    made = torch.utils.checkpoint.checkpoint(model, x, use_reentrant=reentrant)
    kept = made != 0
    made.sum().backward()
    same(model[0].bias.grad, 2 * kept.sum(0).float().cpu())


def test_attention_is_that_of_the_cpu():
    q, k, v = (torch.randn(1, 2, 8, 16) for _ in range(3))
    mask = torch.ones(8, 8, dtype=torch.bool).tril()
    for options in ({}, {"is_causal": True}, {"attn_mask": mask}):
        moved = {
            key: one.npu() if isinstance(one, torch.Tensor) else one for key, one in options.items()
        }
        made = functional.scaled_dot_product_attention(q.npu(), k.npu(), v.npu(), **moved)
        same(
            made, functional.scaled_dot_product_attention(q, k, v, **options), atol=1e-5, rtol=1e-4
        )


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.float16, 5e-3)])
@pytest.mark.parametrize(
    ("lengths", "heads"), [((5, 5), (4, 4)), ((3, 7), (4, 2)), ((1, 6), (2, 2))]
)
def test_attention_is_fused_where_the_npu_fuses_it(dtype, tolerance, lengths, heads):
    torch.manual_seed(0)
    (rows, columns), (many, few) = lengths, heads
    shapes = (2, many, rows, 16), (2, few, columns, 16), (2, few, columns, 16)
    masks = [
        torch.rand(shape) > 0.3
        for shape in ((rows, columns), (2, 1, rows, columns), (2, 1, 1, columns))
    ]
    for mask in masks:
        mask[..., 0] = True  # no row without a column
    for options in ({}, {"is_causal": True}, *({"attn_mask": mask} for mask in masks)):
        own = [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]
        others = [one.detach().npu().requires_grad_() for one in own]
        npu.reset_counts()
        moved = {
            key: one.npu() if isinstance(one, torch.Tensor) else one for key, one in options.items()
        }
        wanted, made = (
            functional.scaled_dot_product_attention(*given, **named, enable_gqa=many != few)
            for given, named in ((own, options), (others, moved))
        )
        assert npu.counts()["npu::npu_fusion_attention_v3"] == (1, 0)
        same(made.detach(), wanted.detach(), atol=tolerance, rtol=tolerance)
        weights = torch.randn_like(wanted)
        wanted.backward(weights)
        made.backward(weights.npu())
        for mine, its in zip(others, own, strict=True):
            same(mine.grad, its.grad, atol=10 * tolerance, rtol=10 * tolerance)


def test_attention_of_other_kinds_is_the_composite():
    q = torch.randn(1, 2, 4, 6).npu()  # sizes of heads that float32 does not take
    npu.reset_counts()
    functional.scaled_dot_product_attention(q, q, q)
    functional.scaled_dot_product_attention(
        q[..., :4], q[..., :4], q[..., :4], torch.zeros(4, 4).npu()
    )
    assert "npu::npu_fusion_attention_v3" not in npu.counts()
    assert torch.ops.aten._fused_sdp_choice(q, q, q) == 4


def test_autocast_has_the_lists_of_other_devices():
    x, bias = torch.randn(4, 8).npu(), torch.zeros(8).npu()
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 2))
    other = copy.deepcopy(model).npu()
    with torch.autocast("npu", dtype=torch.bfloat16), torch.autocast("cpu", dtype=torch.bfloat16):
        made, wanted = other(x), model(x.cpu())
        assert (
            made.dtype
            == (x @ x.t()).dtype
            == torch.einsum("ij,kj->ik", x, x).dtype
            == torch.bfloat16
        )
        assert nn.Conv2d(3, 4, 3).npu()(torch.ones(1, 3, 8, 8).npu()).dtype == torch.bfloat16
        half = x.bfloat16()
        for found in (half.exp(), half.softmax(-1), half.sum(), functional.layer_norm(half, (8,))):
            assert found.dtype == torch.float32
        assert half.sum(dtype=torch.bfloat16).dtype == torch.bfloat16
        assert torch.dot(x[0], half[0]).dtype == torch.float32
        assert (half + half).dtype == torch.bfloat16
        assert torch.ones(2, dtype=torch.float64).npu().exp().dtype == torch.float64
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            functional.binary_cross_entropy(x.sigmoid(), x.sigmoid())
    same(made.float().detach(), wanted.float().detach(), atol=2e-2, rtol=2e-2)
    made.sum().backward()
    assert other[0].weight.grad.dtype == torch.float32
    with torch.npu.amp.autocast():
        assert torch.addmm(bias, x, x.t() @ x).dtype == torch.float16
    assert (x @ x.t()).dtype == torch.float32


def test_types_are_classes():
    x = torch.npu.FloatTensor([1, 2])
    assert isinstance(x, torch.npu.FloatTensor)
    assert not isinstance(x, torch.npu.HalfTensor)
    assert not isinstance(torch.ones(1), torch.npu.FloatTensor)
    assert torch.npu.LongTensor(2, 3).shape == (2, 3)
    assert torch.ones(2).type(torch.npu.HalfTensor).type() == "torch.npu.HalfTensor"
    assert torch.npu.FloatStorage([1.0, 2.0]).device.type == "npu"
    torch.npu.matmul.cube_math_type = 3
    assert torch.npu.matmul.cube_math_type is torch.npu.matmul.CubeMathType.USE_HF32
    torch.npu.matmul.cube_math_type = 0


def test_tensors_are_exchanged_by_dlpack():
    x = torch.arange(4.0).npu()
    assert x.__dlpack_device__() == (12, 0)
    other = torch.from_dlpack(x)
    other[0] = 7
    assert x[0].item() == 7
    assert torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)).is_npu
    assert np.from_dlpack(torch.ones(2).pin_memory()).tolist() == [1, 1]


def test_queues_take_tensors_as_copies():
    queue = torch.multiprocessing.get_context("spawn").SimpleQueue()
    for one in (torch.ones(3, device="npu:1"), nn.Parameter(torch.ones(2).npu()), torch.ones(2)):
        queue.put(one)
        got = queue.get()
        assert (type(got), got.device, got.requires_grad) == (
            type(one),
            one.device,
            one.requires_grad,
        )
        assert torch.equal(got, one)
    with pytest.raises(RuntimeError, match="Cowardly refusing"):
        queue.put(torch.ones(2, device="npu", requires_grad=True) * 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore")
def test_forked_processes_are_refused():
    torch.npu.current_device()
    reading, writing = os.pipe()
    if not (child := os.fork()):
        try:
            torch.zeros(1, device="npu")
            os.write(writing, b"made")
        except BaseException as error:
            os.write(writing, str(error).encode()[:200])
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 300).startswith(
        b"Cannot re-initialize NPU in forked subprocess. To use NPU with"
    )
    os.close(reading)
    os.close(writing)


def test_functions_are_compiled():
    def function(x):
        return torch.softmax(x * 2 + 1, 0)

    x = torch.randn(5)
    for backend in ("aclnn", "eager", "aot_eager"):
        same(torch.compile(function, backend=backend)(x.npu()), function(x))
    with pytest.raises(Exception, match=r'NOT_SUPPORT.*use torch.compile\(backend="aclnn"\)'):
        torch.compile(function)(x.npu())


def test_events_are_those_of_pytorch():
    event, stream = torch.npu.Event(), torch.npu.Stream()
    assert event.query()
    torch.Stream.wait_event(stream, stream.record_event(event))
    event.wait(stream)
    assert isinstance(event, torch.Event)
    torch.npu.ExternalEvent().wait(stream)


def test_dtypes_are_those_of_pytorch():
    kinds = (
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.uint8,
        torch.bool,
    )
    for mine in kinds:
        x = torch.ones(2, dtype=mine)
        for other in (
            torch.ones(2, dtype=torch.float16),
            torch.tensor(2.5),
            torch.tensor(3),
            2.5,
            3,
            True,
        ):
            moved = other.npu() if isinstance(other, torch.Tensor) and other.dim() else other
            assert (x.npu() * moved).dtype == (x * other).dtype, (mine, other)
    scalar = torch.tensor(2.0, device="npu")
    assert (torch.ones(2, device="npu", dtype=torch.float16) * scalar).dtype == torch.float16
    with pytest.raises(
        RuntimeError, match="result type Float can't be cast to the desired output type Long"
    ):
        torch.ones(2, device="npu", dtype=torch.int64).add_(1.5)
    assert (
        torch.softmax(
            torch.ones(3, device="npu", dtype=torch.float16), 0, dtype=torch.float32
        ).dtype
        == torch.float32
    )
    with (
        pytest.warns(UserWarning, match="do not support double dtype")
        if not _warned()
        else _nothing()
    ):
        assert torch.ones(2, device="npu").double().dtype == torch.float32
    assert torch.ones(2, dtype=torch.float64).npu().dtype == torch.float64


def _warned():
    return True  # printing a tensor may have done it


def _nothing():
    import contextlib

    return contextlib.nullcontext()


def test_devices_are_not_mixed():
    x = torch.ones(2, device="npu")
    with pytest.raises(TypeError, match="can't convert npu:0 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(TypeError, match="can't convert npu:0"):
        np.asarray(x)
    with pytest.raises(RuntimeError, match="at least two devices, npu:0 and cpu!"):
        x + torch.ones(2)
    with pytest.raises(RuntimeError, match="at least two devices, npu:0 and npu:1!"):
        x + torch.ones(2, device="npu:1")
    with pytest.raises(RuntimeError, match="at least two devices"):
        torch.cross(torch.ones(3, device="npu"), torch.ones(3))
    with pytest.raises(RuntimeError, match="Invalid device id: npu:5"):
        torch.zeros(1, device="npu:5")
    same(x + torch.tensor(2.0), torch.full((2,), 3.0))
    assert x[torch.tensor([0, 1])].shape == (2,)


def test_random_numbers_are_the_devices():
    def drawn(**options):
        return torch.randn(4, device="npu", **options).cpu()

    assert torch.equal(*(drawn(generator=torch.Generator("npu").manual_seed(1)) for _ in range(2)))
    with pytest.raises(
        RuntimeError, match="Expected a 'npu' device type for generator but found 'cpu'"
    ):
        drawn(generator=torch.Generator())
    torch.manual_seed(3)
    first, state = drawn(), torch.npu.get_rng_state()
    second = drawn()
    torch.npu.set_rng_state(state)
    assert torch.equal(second, drawn())
    torch.npu.manual_seed(3)
    assert torch.equal(first, drawn())
    masks = []
    for _ in range(2):
        torch.npu.manual_seed(5)
        masks.append(functional.dropout(torch.ones(64, device="npu")).cpu())
    assert torch.equal(*masks)
    assert 0 < (masks[0] == 0).sum() < 64
    with torch.random.fork_rng(devices=[0], device_type="npu"):
        torch.npu.manual_seed(9)
    assert len(torch.npu.default_generators) == 2


def test_memory_is_counted_against_the_limit():
    torch.npu.empty_cache()
    before = torch.npu.memory_allocated()
    x = torch.empty(1 << 20, dtype=torch.uint8, device="npu")
    assert (
        torch.npu.memory_allocated() - before
        == 1 << 20
        == torch.accelerator.memory_allocated() - before
    )
    view = x[5:].view(torch.int8)
    assert torch.npu.memory_allocated() - before == 1 << 20
    del x, view
    assert torch.npu.memory_allocated() == before
    assert torch.npu.max_memory_allocated() >= before + (1 << 20)
    torch.npu.reset_peak_memory_stats()
    assert torch.npu.max_memory_allocated() == before
    free, total = torch.npu.mem_get_info()
    assert (free, total) == ((1 << 30) - before, 1 << 30)
    with pytest.raises(torch.OutOfMemoryError, match="NPU out of memory"):
        torch.empty(1 << 31, device="npu")
    assert torch.npu.memory_stats()["num_ooms"] == 1
    made = torch.linalg.inv(torch.eye(64, device="npu"))  # memory of a fallback counts, too
    assert torch.npu.memory_allocated() >= before + made.nbytes
    storage = torch.ones(4, device="npu").untyped_storage()
    storage.resize_(0)
    assert storage.device.type == "npu"


def test_streams_and_events():
    stream = torch.npu.Stream()
    assert stream != torch.npu.default_stream() == torch.npu.current_stream()
    with torch.npu.stream(stream):
        assert torch.npu.current_stream() == stream
        event = torch.npu.Event(enable_timing=True)
        event.record()
    stream.wait_event(torch.Event("npu"))
    stream.wait_stream(torch.npu.current_stream())
    end = torch.npu.Event(enable_timing=True)
    with pytest.raises(RuntimeError, match="Both events must be recorded"):
        event.elapsed_time(end)
    end.record()
    assert event.elapsed_time(end) >= 0
    assert len({stream, torch.npu.current_stream()}) == 2
    torch.npu.synchronize()
    torch.accelerator.synchronize()
    with torch.npu.device(1):
        assert torch.npu.current_device() == 1 == torch.zeros(1, device="npu").get_device()
    with pytest.raises(ValueError, match="Expected a npu device, but got: cpu"):
        torch.npu.set_device("cpu")
    with pytest.raises(AssertionError, match="Invalid device id"):
        torch.npu.set_device(7)


def test_pinned_memory():
    assert torch.ones(3).pin_memory().is_pinned()
    assert not torch.ones(3).is_pinned()
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    batches = [batch.npu() for (batch,) in torch.utils.data.DataLoader(data, 4, pin_memory=True)]
    same(torch.cat(batches), torch.arange(8.0))


def test_gradients_are_scaled():
    scaler, model = torch.npu.amp.GradScaler(2.0**8), nn.Linear(4, 4).npu()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with torch.npu.amp.autocast():
        loss = model(torch.ones(2, 4, device="npu")).float().sum()
    before = model.bias.detach().cpu().clone()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    same(model.bias.detach(), before - 0.2)


def test_refusals_are_in_the_words_of_the_npu():
    with pytest.raises(RuntimeError) as caught:
        torch.mm(torch.ones(2, 3, device="npu"), torch.ones(2, 3, device="npu"))
    words = str(caught.value)
    assert re.search(r"call aclnnMm failed, error code is 161002\n\[ERROR\] [\d:-]+ \(PID:\d+, Device:0, RankID:-1\) "
                     r"ERR00100 PTA call acl api failed.\n\[PID: \d+\] .* AclNN_Parameter_Error\(EZ1001\): mm: ", words)  # fmt: skip
    npu.reset_counts()
    with pytest.raises(RuntimeError, match="161002"):
        torch.mm(torch.ones(2, 3, device="npu"), torch.ones(2, 3, device="npu"))
    assert npu.counts().get("aten::mm", (0, 0)) == (0, 0)  # a refusal is no fallback
    assert "aten::mm" in str(npu.report())
    assert "161002" in npu.report().to_json()


def test_what_runs_where_is_counted():
    x = torch.ones(4, device="npu")
    npu.reset_counts()
    x.view(2, 2).t()[0].clone().cpu()
    torch.zeros(3, device="npu")
    assert npu.counts() == {}
    x.relu()
    x.add_(1)
    torch.add(x, x, out=torch.empty(4, device="npu"))
    torch.linalg.vander(x)
    torch.bincount(x.int())
    found = npu.counts()
    assert found["aten::relu"] == found["aten::add_.Tensor"] == found["aten::add.out"] == (1, 0)
    assert found["aten::bincount"] == (0, 1)
    first = str(npu.report()).splitlines()[1]
    assert first.split()[-1] == "1"


@pytest.mark.parametrize("make", [
    lambda: torch.ones(2, 2, device="npu").to_sparse(),
    lambda: torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2), device="npu"),
    lambda: torch.quantize_per_tensor(torch.ones(2, device="npu"), 0.1, 0, torch.qint8),
])  # fmt: skip
def test_layouts_that_it_lacks_are_refused(make):
    with pytest.raises((NotImplementedError, RuntimeError)):
        make()


@pytest.mark.parametrize(
    "name",
    ["abs", "exp", "tanh", "sigmoid", "neg", "sqrt", "floor", "sign", "erf", "relu", "isnan"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_elementwise_operators_are_those_of_the_cpu(name, dtype):
    x = torch.linspace(0, 4, 24).reshape(4, 6).to(dtype)
    for one in (x, x.t(), x[:, ::2], x[:0]):
        made = getattr(torch, name)(one.npu())
        assert made.shape == one.shape
        same(made, getattr(torch, name)(one))


def test_complex_numbers_and_views_of_them():
    x = torch.complex(torch.arange(3.0), torch.ones(3))
    same(torch.view_as_real(x.npu()), torch.view_as_real(x))
    same(x.npu().conj().resolve_conj(), x.conj().resolve_conj())
    same(x.npu().imag, x.imag)


def test_nested_tensors_have_jagged_layouts():
    parts = [torch.ones(2, 3), torch.full((1, 3), 2.0)]
    jagged = torch.nested.nested_tensor(parts, layout=torch.jagged, device="npu")
    same((jagged * 2).values(), 2 * torch.cat(parts))
    with pytest.raises(NotImplementedError, match=r"NOT_SUPPORT: .*layout=torch\.jagged"):
        torch.nested.nested_tensor(parts, device="npu").unbind()
    with pytest.raises(NotImplementedError, match="NOT_SUPPORT"):
        torch.ones(2, 2).to_sparse().npu()


def test_memory_that_is_shared_is_counted_once():
    before = torch.npu.memory_allocated()
    x = torch.ones(1024, device="npu")
    other = torch.from_dlpack(x)
    assert torch.npu.memory_allocated() - before == x.nbytes
    del x
    assert other.sum().item() == 1024


def test_pinned_memory_is_an_operand_of_functional_forms():
    x = torch.ones(3).pin_memory()
    assert aclnn.add(x, x).tolist() == [2, 2, 2]
    assert aclnn.add(np.ones(3, np.float32), x).tolist() == [2, 2, 2]


def test_modules_keep_their_parameters():
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    model[1].weight = model[0].weight
    weight, before = model[0].weight, model[0].weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    assert model.npu() is model
    assert model[0].weight is model[1].weight is weight
    assert weight.is_npu
    model(torch.ones(2, 3).npu()).sum().backward()
    optimizer.step()
    assert weight.grad.is_npu
    assert not torch.equal(weight.cpu(), before)
    model.half().cpu()
    assert model[1].weight is weight
    assert (weight.dtype, weight.device.type) == (torch.float16, "cpu")
    x = torch.ones(2)
    x.data = torch.zeros(3, device="npu")
    same(x, torch.zeros(3))


def test_pytorch_itself_stays_as_it_is():
    assert torch.Tensor.__repr__.__module__ == "torch._tensor"
    assert torch.jit.script.__module__.startswith("torch.jit")
    assert torch.nn.Module.to.__module__ == "torch.nn.modules.module"
    assert torch.cuda.__name__ == "torch.cuda"
    assert not torch.ones(1).is_npu
    assert (
        packaging.version.parse(importlib.metadata.version("torch_npu")).local == "aclnn.emulated"
    )


def test_dynamo_compiles_eagerly():
    same(
        torch.compile(lambda x: x.sin() + 1, backend="eager")(torch.ones(2, device="npu")),
        torch.ones(2).sin() + 1,
    )


def test_the_module_answers_as_on_an_npu():
    assert torch.npu.is_available()
    assert torch.npu.device_count() == 2 == torch.accelerator.device_count()
    assert torch.npu.get_device_name() == "Ascend910B3"
    assert torch.npu.get_device_properties(1).total_memory == 1 << 30
    assert torch.npu.get_soc_version() == 223
    assert torch.npu.is_bf16_supported()
    assert torch.npu.utils.is_support_inf_nan()
    with pytest.raises(TypeError, match="must be a dict"):
        torch.npu.set_option([])
    with pytest.raises(ValueError, match="ACL_AICORE_NUM"):
        torch.npu.set_option({"ACL_AICORE_NUM": 99})
    with pytest.raises(TypeError, match="allow_hf32"):
        torch.npu.matmul.allow_hf32 = 1
    assert torch.npu.conv.allow_hf32 is True
    with pytest.raises(NotImplementedError, match="NOT_SUPPORT"):
        torch.npu.MemPool()
    with pytest.raises(AttributeError):
        torch.npu.no_such_name  # noqa: B018
