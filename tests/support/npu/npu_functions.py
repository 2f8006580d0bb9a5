"""``torch_npu.npu_*`` beside PyTorch's own operators in float32 on the CPU, with gradients."""

import copy
import importlib.metadata
import importlib.util

import pytest
import torch
from torch.nn import functional

import aclnn.torch.npu as npu

pytestmark = pytest.mark.filterwarnings("default")  # programs of others warn

npu.enable()
import torch_npu  # noqa: E402  # which is there when the device is


def leaves(*shapes):
    torch.manual_seed(0)
    own = [torch.randn(shape, requires_grad=True) for shape in shapes]
    return own, [one.detach().npu().requires_grad_() for one in own]


def same_with_gradients(wanted, made, own, others, atol=1e-4):
    torch.testing.assert_close(made.detach().cpu(), wanted.detach(), atol=atol, rtol=1e-3)
    weights = torch.randn_like(wanted)
    (wanted * weights).sum().backward()
    (made * weights.npu()).sum().backward()
    for mine, its in zip(others, own, strict=True):
        assert mine.grad.device.type == "npu"
        torch.testing.assert_close(mine.grad.cpu(), its.grad, atol=10 * atol, rtol=1e-2)


def test_the_package_is_there():
    assert importlib.util.find_spec("torch_npu") is not None
    assert importlib.metadata.version("torch_npu") == torch_npu.__version__
    assert torch_npu.is_emulated is True
    assert torch_npu.npu is torch.npu
    assert torch.ops.npu.npu_swiglu is torch_npu.npu_swiglu
    with pytest.raises(AttributeError, match="has no attribute 'npu_nothing'"):
        torch_npu.npu_nothing  # noqa: B018


def test_rms_norm():
    own, others = leaves((4, 8), (8,))
    made, rstd = torch_npu.npu_rms_norm(*others, epsilon=1e-5)
    assert rstd.shape == (4, 1)
    same_with_gradients(functional.rms_norm(own[0], (8,), own[1], 1e-5), made, own, others)
    with pytest.raises(
        RuntimeError, match=r"(?s)gamma shape should not be bigger than self shape.*ERR01001 OPS"
    ):
        torch_npu.npu_rms_norm(others[1], others[0])
    with pytest.raises((RuntimeError, TypeError)):
        torch_npu.npu_rms_norm(others[0])  # a normalisation without its weight


def test_add_rms_norms():
    x, y, w = torch.randn(4, 8), torch.randn(4, 8), torch.randn(8)
    wanted = functional.rms_norm(x + y, (8,), w, 1e-6)
    made, rstd, total = torch_npu.npu_add_rms_norm(x.npu(), y.npu(), w.npu())
    torch.testing.assert_close(made.cpu(), wanted)
    torch.testing.assert_close(total.cpu(), x + y)
    a, b = x.npu(), y.npu()
    again = torch_npu.npu_add_rms_norm_v2(a, b, w.npu())
    torch.testing.assert_close(a.cpu(), wanted)
    torch.testing.assert_close(b.cpu(), x + y)
    assert torch.equal(again, rstd)


def test_swiglu_and_geglu():
    own, others = leaves((4, 8))
    first, second = own[0].chunk(2, -1)
    same_with_gradients(
        functional.silu(first) * second, torch_npu.npu_swiglu(others[0]), own, others
    )
    own, others = leaves((4, 8))
    first, second = own[0].chunk(2, -1)
    made = torch_npu.npu_geglu(others[0])[0]
    same_with_gradients(first * functional.gelu(second, approximate="tanh"), made, own, others)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate):
    own, others = leaves((4, 8))
    made = torch_npu.npu_gelu(others[0], approximate=approximate)
    same_with_gradients(functional.gelu(own[0], approximate=approximate), made, own, others)
    with pytest.raises(RuntimeError, match="approximate argument must be either none or tanh"):
        torch_npu.npu_gelu(others[0], approximate="erf")


@pytest.mark.parametrize("mode", ["half", "interleave"])
def test_rotary(mode):
    own, others = leaves((1, 4, 2, 8), (1, 4, 1, 8), (1, 4, 1, 8))
    x, cos, sin = own
    if mode == "half":
        rotated = torch.cat((-x[..., 4:], x[..., :4]), -1)
    else:
        rotated = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    same_with_gradients(
        x * cos + rotated * sin, torch_npu.npu_rotary_mul(*others, mode), own, others
    )
    with pytest.raises(RuntimeError, match="should be half or interleave, but got third"):
        torch_npu.npu_rotary_mul(*others, "third")


def test_fusion_attention():
    own, others = leaves(*[(2, 4, 16, 32)] * 3)
    made, most, total, soft, seed, offset, numels = torch_npu.npu_fusion_attention(
        *others, 4, "BNSD", scale=0.2
    )
    assert most.shape == total.shape == (2, 4, 16, 8)
    assert (soft.shape, seed, offset, numels) == ((0,), 0, 0, 0)
    same_with_gradients(functional.scaled_dot_product_attention(*own, scale=0.2), made, own, others)
    mask = torch.ones(16, 16, dtype=torch.bool).triu(1)
    own, others = leaves(*[(2, 4, 16, 32)] * 3)
    made = torch_npu.npu_fusion_attention(*others, 4, "BNSD", scale=0.2, atten_mask=mask.npu())[0]
    same_with_gradients(
        functional.scaled_dot_product_attention(*own, scale=0.2, attn_mask=~mask), made, own, others
    )
    with pytest.raises(RuntimeError, match="keep_prob value must be in range"):
        torch_npu.npu_fusion_attention(*others, 4, "BNSD", keep_prob=0.0)
    with pytest.raises(
        RuntimeError, match="call aclnnFlashAttentionScore failed, error code is 561002"
    ):
        torch_npu.npu_fusion_attention(
            *others, 4, "BNSD", atten_mask=mask[:3].npu()
        )  # of a shape that is none


def test_later_versions_of_fusion_attention_do_as_the_first():
    _, others = leaves(*[(1, 2, 4, 16)] * 3)
    first = torch_npu.npu_fusion_attention(*others, 2, "BNSD", scale=0.25, pre_tockens=2)
    second = torch_npu.npu_fusion_attention_v2(*others, 2, "BNSD", scale=0.25, pre_tokens=2)
    third = torch_npu.npu_fusion_attention_v3(*others, 2, "BNSD", scale=0.25, pre_tokens=2)
    assert (len(first), len(second), len(third)) == (7, 7, 6)
    grad = torch.randn(1, 2, 4, 16).npu()
    wanted = torch.autograd.grad(first[0], others, grad)
    for later in (second, third):
        assert torch.equal(later[0], first[0])
        for mine, its in zip(torch.autograd.grad(later[0], others, grad), wanted, strict=True):
            assert torch.equal(mine, its)
    plain = [one.detach() for one in others]
    made = torch_npu.npu_fusion_attention_grad_v2(
        *plain, grad, 2, "BNSD", softmax_max=second[1], softmax_sum=second[2], attention_in=second[0].detach(),
        scale_value=0.25, pre_tokens=2,
    )  # fmt: skip
    assert len(made) == 7
    assert torch.equal(made[0], wanted[0])
    with pytest.raises(RuntimeError, match=r"(?s)NOT_SUPPORT: attention with query_rope.*ERR01007"):
        torch_npu.npu_fusion_attention_v2(*plain, 2, "BNSD", query_rope=plain[0])


def attention(lengths, **named):
    torch.manual_seed(0)
    on = [torch.randn(1, 2, 4, 16).half().npu() for _ in range(3)]
    options = {
        "num_heads": 2,
        "input_layout": "BNSD",
        "scale": 0.25,
        "actual_seq_lengths_kv": [lengths],
    }
    if named:
        return torch_npu.npu_fused_infer_attention_score.out(*on, **options, **named)
    return torch_npu.npu_fused_infer_attention_score(*on, **options)[0]


def test_outputs_of_inference_attention_are_written():
    wanted, out, lse = attention(3), torch.empty(1, 2, 4, 16).half().npu(), torch.empty(1).npu()
    assert attention(3, workspace=None, out=[out, lse])[0] is out
    assert torch.equal(out, wanted)
    with pytest.raises(
        RuntimeError, match=r"attention_out is torch.float16 of shape \[2\], must be"
    ):
        attention(3, out=[out[0, 0, 0, :2], lse])


def test_graphs_are_captured_and_replayed():
    x, w, total = torch.ones(4).npu(), torch.ones(4, 4).npu(), torch.zeros(4).npu()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        assert torch.npu.is_current_stream_capturing()
        y = (x @ w).relu() + 1
        total.add_(y)
        with pytest.raises(RuntimeError, match=r"error code is 107027"):
            y.sum().item()
    assert not torch.npu.is_current_stream_capturing()
    assert total.tolist() == [0] * 4  # a capture runs nothing
    for factor in (2, 3):
        x.fill_(factor)
        graph.replay()
        assert y.tolist() == [4 * factor + 1] * 4
    assert total.tolist() == [9 + 13] * 4
    with pytest.raises(RuntimeError, match="without capture_begin"):
        torch.npu.NPUGraph().capture_end()
    with pytest.raises(RuntimeError, match="has no captured calls"):
        torch.npu.NPUGraph().replay()
    other = torch.npu.NPUGraph()
    with torch.npu.graph(other):
        torch.softmax((x * w).relu() + 1, -1)
    assert "executor: mul, relu, add, _softmax" in other.plan()
    assert "executor: mul, relu, add, _softmax" in str(npu.report())


def test_steps_of_training_are_replayed():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2).npu()
    other, x = copy.deepcopy(model), torch.randn(3, 4).npu()
    steps = []
    for one in (model, other):
        optimizer = torch.optim.SGD(one.parameters(), 0.1)

        def step(one=one, optimizer=optimizer):
            optimizer.zero_grad()
            loss = one(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        steps.append(step)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        loss = steps[0]()
    for _ in range(3):
        x.copy_(torch.randn(3, 4))
        graph.replay()
        torch.testing.assert_close(loss, steps[1]())
    torch.testing.assert_close(model.weight, other.weight)


def test_task_groups_are_updated():
    out, lse = torch.zeros(1, 2, 4, 16).half().npu(), torch.empty(1).npu()
    stream, graph = torch.npu.current_stream(), torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        torch.npu.graph_task_group_begin(stream)
        attention(3, out=[out, lse])
        handle = torch.npu.graph_task_group_end(stream)
    graph.replay()
    assert torch.equal(out, attention(3))
    torch.npu.graph_task_update_begin(stream, handle)
    attention(2, out=[out, lse])
    torch.npu.graph_task_update_end(stream)
    assert torch.equal(out, attention(3))
    graph.replay()
    assert torch.equal(out, attention(2))
    torch.npu.graph_task_update_begin(stream, handle)
    out.relu()
    with pytest.raises(RuntimeError, match=r"and is updated by aten.relu.default"):
        torch.npu.graph_task_update_end(stream)


def test_lengths_of_recorded_attention_are_updated():
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, auto_dispatch_capture=True):
        made = attention(3)
    for length in (3, 2):
        graph.update(cpu_update_input=[{"actual_seq_lengths_kv": [length]}])
        graph.replay()
        assert torch.equal(made, attention(length))
    with pytest.raises(RuntimeError, match="has no argument 'lengths'"):
        graph.update(cpu_update_input=[{"lengths": [3]}])
    plain = torch.npu.NPUGraph()
    with torch.npu.graph(plain):
        attention(3)
    with pytest.raises(RuntimeError, match="auto_dispatch_capture=True"):
        plain.update(cpu_update_input=[{}])


def test_functions_that_pytorch_has_by_other_names():
    x, w, b = torch.randn(4, 8), torch.randn(8), torch.randn(8)
    made = torch_npu.npu_layer_norm_eval(x.npu(), [8], w.npu(), b.npu())
    torch.testing.assert_close(
        made.cpu(), functional.layer_norm(x, (8,), w, b), atol=1e-5, rtol=1e-4
    )
    assert torch.equal(torch_npu.npu_sort_v2(x.npu(), 0, True).cpu(), x.sort(0, True)[0])
    assert torch.equal(
        torch_npu.npu_pad(x.npu(), [1, 2, 0, 3]).cpu(), functional.pad(x, (0, 3, 1, 2))
    )
    with pytest.raises(RuntimeError, match="two numbers for each of 2 axes, but got 3"):
        torch_npu.npu_pad(x.npu(), [1, 2, 0])


@pytest.mark.parametrize("axes", [2, 3])
def test_convolutions(axes):
    own, others = leaves((2, 4, *[6] * axes), (6, 2, *[3] * axes), (6,))
    options = [2] * axes, [1] * axes, [1] * axes, 2
    wanted = getattr(functional, f"conv{axes}d")(*own, *options)
    same_with_gradients(
        wanted, getattr(torch_npu, f"npu_conv{axes}d")(*others, *options), own, others
    )


def test_inference_attention():
    q, k, v = (torch.randn(1, 2, 4, 16).half() for _ in range(3))
    wanted = functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), scale=0.25)
    on = [one.npu() for one in (q, k, v)]
    made = [
        torch_npu.npu_fused_infer_attention_score(
            *on, num_heads=2, input_layout="BNSD", scale=0.25
        )[0],
        torch_npu.npu_fused_infer_attention_score_v2(
            *on, num_query_heads=2, input_layout="BNSD", softmax_scale=0.25
        )[0],
        torch_npu.npu_prompt_flash_attention(
            *on, num_heads=2, input_layout="BNSD", scale_value=0.25, next_tokens=9
        ),
    ]
    one = torch_npu.npu_incre_flash_attention(
        on[0][:, :, :1], *on[1:], num_heads=2, input_layout="BNSD", scale_value=0.25
    )
    torch.testing.assert_close(one.cpu().float(), wanted[:, :, :1], atol=3e-3, rtol=1e-2)
    for each in made:
        torch.testing.assert_close(each.cpu().float(), wanted, atol=3e-3, rtol=1e-2)


def test_experts():
    tokens, indices = (
        torch.randn(4, 8, requires_grad=True),
        torch.tensor([[0, 1], [1, 0], [0, 1], [1, 0]]),
    )
    probs = torch.rand(4, 2, requires_grad=True)
    x, p = (one.detach().npu().requires_grad_() for one in (tokens, probs))
    rows, order = torch_npu.npu_moe_token_permute(x, indices.npu())
    made = torch_npu.npu_moe_token_unpermute(rows, order, p)
    same_with_gradients(tokens * probs.sum(1, keepdim=True), made, [tokens, probs], [x, p])
    scores = torch.randn(4, 8)
    y, chosen, _ = torch_npu.npu_moe_gating_top_k_softmax(scores.npu(), None, 2)
    values, places = scores.softmax(-1).topk(2)
    torch.testing.assert_close(y.cpu(), values)
    assert torch.equal(chosen.cpu(), places.int())
    expanded, rows, counted, _ = torch_npu.npu_moe_init_routing_v2(
        x.detach(), indices.npu().int(), active_num=8, expert_num=2, expert_tokens_num_type=1,
        expert_tokens_num_flag=True,
    )  # fmt: skip
    assert counted.tolist() == [4, 4]
    assert torch.equal(expanded.cpu()[rows.cpu().long()[0]], tokens.detach()[0])
    with pytest.raises(RuntimeError, match=r"(?s)NOT_SUPPORT.*quant_mode 1.*ERR01007"):
        torch_npu.npu_moe_init_routing_v2(x.detach(), indices.npu().int(), quant_mode=1)


def test_quantized_products():
    a, b = torch.randint(-9, 9, (4, 16)), torch.randint(-9, 9, (16, 8))
    scale = torch.rand(8) + 0.5
    made = torch_npu.npu_quant_matmul(
        a.to(torch.int8).npu(), b.to(torch.int8).npu(), scale.npu(), pertoken_scale=torch.ones(4).npu(),
        output_dtype=torch.bfloat16,
    )  # fmt: skip
    torch.testing.assert_close(made.cpu().float(), (a @ b).float() * scale, atol=1, rtol=1e-2)
    x, w = torch.randn(4, 16).half(), torch.randn(2, 16, 8).half()
    (made,) = torch_npu.npu_grouped_matmul(
        [x.npu()], [w.npu()], group_list=torch.tensor([1, 4]).npu(), split_item=3, group_type=0
    )
    wanted = torch.cat((x[:1].float() @ w[0].float(), x[1:].float() @ w[1].float()))
    torch.testing.assert_close(made.cpu().float(), wanted, atol=1e-2, rtol=1e-2)
    with pytest.raises(
        RuntimeError, match=r"(?s)manual passing group_type, current is None.*ERR01003"
    ):
        torch_npu.npu_grouped_matmul([x.npu()], [w.npu()])
    y, scales = torch_npu.npu_dynamic_quant(x.npu())
    torch.testing.assert_close(
        y.cpu().float() * scales.cpu()[:, None], x.float(), atol=0.05, rtol=0.05
    )


def test_caches_are_written():
    key = torch.randn(3, 2, 16).half()
    cache = torch.zeros(2, 4, 2, 16).half().npu()
    other = cache.clone()
    slots = torch.tensor([0, 5, 2], dtype=torch.int32).npu()
    version = cache._version
    torch_npu.npu_scatter_pa_kv_cache(key.npu(), key.npu(), cache, other, slots, cache_mode="Norm")
    assert torch.equal(cache.view(8, 2, 16)[[0, 5, 2]].cpu(), key)
    assert cache._version > version


def test_formats_are_tags():
    x = torch.randn(4, 8, device="npu")
    assert torch_npu.get_npu_format(x) == torch_npu.Format.ND
    y = torch_npu.npu_format_cast(x, torch_npu.Format.FRACTAL_NZ)
    assert torch_npu.get_npu_format(y) == 29
    assert torch.equal(x, y)
    assert torch_npu.get_npu_format(y + 1) == torch_npu.Format.ND


def test_operands_on_the_cpu_are_refused():
    with pytest.raises(
        RuntimeError, match="npu_swiglu: Expected all tensors to be on the npu device"
    ):
        torch_npu.npu_swiglu(torch.ones(2, 4))


def test_programs_for_cuda_run_here():
    with pytest.warns(ImportWarning):
        from torch_npu.contrib import transfer_to_npu  # noqa: F401
    assert torch.ones(2, device="cuda:0").is_cuda
    assert torch.nn.Linear(2, 2).cuda().weight.device.type == "npu"
    assert torch.ones(2).to("cuda").device == torch.device("npu:0")
    assert torch.Generator("cuda").device.type == "npu"
    assert torch.cuda.current_device() == 0
