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


def shares(own, scale, mask=None, pse=None, sink=None):
    """Weights of keys, and those of a sink."""
    query, key = own
    key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
    scores = (query @ key.mT + (0 if pse is None else pse)) * scale
    scores = scores if mask is None else scores.masked_fill(mask, -torch.inf)
    if sink is None:
        return scores.softmax(-1)
    beside = sink.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    return torch.cat((scores, beside), -1).softmax(-1)[..., :-1]


def test_shifts_and_sinks_of_attention_have_gradients():
    own, others = leaves((2, 4, 6, 16), (2, 2, 20, 16), (2, 2, 20, 16), (1, 4, 6, 20), (4,))
    mask = torch.ones(6, 20, dtype=torch.bool).triu(9)
    for sink in (False, True):
        query, key, value, pse, given = others
        made = torch_npu.npu_fusion_attention(
            query, key, value, 4, "BNSD", pse=pse, atten_mask=mask.npu(), scale=0.2, sink=given if sink else None
        )[0]  # fmt: skip
        weights = shares(own[:2], 0.2, mask, own[3], own[4] if sink else None)
        wanted = weights @ own[2].repeat_interleave(2, 1)
        count = 5 if sink else 4
        same_with_gradients(wanted, made, own[:count], others[:count])
        for one in (*own, *others):
            one.grad = None
    with pytest.raises(
        RuntimeError, match="sink should have 4 elements, one for each head, but got 6"
    ):
        torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", sink=torch.ones(6).npu())
    later = torch_npu.npu_fusion_attention_v2(
        query, key, value, 4, "BNSD", pse=pse, pse_type=0, scale=0.2
    )[0]
    scores = own[0] @ own[1].repeat_interleave(2, 1).mT * 0.2 + own[3]
    wanted = scores.softmax(-1) @ own[2].repeat_interleave(2, 1)
    same_with_gradients(wanted, later, own[:4], others[:4])


@pytest.mark.parametrize("layout", ["BNSD", "BSND", "BSH", "SBH"])
def test_attention_has_dropout(layout):
    torch.manual_seed(0)
    heads = [torch.randn(2, 4, 6, 16) for _ in range(3)]
    orders = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3), "BSH": (0, 2, 1, 3), "SBH": (2, 0, 1, 3)}
    given = [one.permute(orders[layout]) for one in heads]
    given = [one.flatten(-2) for one in given] if len(layout) == 3 else given
    on = [one.contiguous().npu().requires_grad_() for one in given]
    torch.npu.manual_seed(3)
    made, *_, seed, offset, count = torch_npu.npu_fusion_attention(
        *on, 4, layout, scale=0.25, keep_prob=0.5
    )
    assert (offset, count) == (0, 2 * 4 * 6 * 6)
    torch.npu.manual_seed(3)
    again = torch_npu.npu_fusion_attention(*on, 4, layout, scale=0.25, keep_prob=0.5)
    assert torch.equal(made, again[0])
    assert again[4] == seed
    assert made.shape == on[0].shape
    # The result is linear in the values, with the weights that were kept: the gradient says which.
    made.backward(torch.ones_like(made))
    total = (on[2].grad * on[2].detach()).sum()
    torch.testing.assert_close(total, made.detach().sum(), atol=1e-3, rtol=1e-3)
    plain = torch_npu.npu_fusion_attention(*on, 4, layout, scale=0.25)[0]
    assert not torch.allclose(plain, made)
    if layout == "BNSD":
        size, on[0].grad = 1e-2, None
        with torch.no_grad():
            on[0][0, 0, 0, 0] += size
        torch.npu.manual_seed(3)
        moved = torch_npu.npu_fusion_attention(*on, 4, layout, scale=0.25, keep_prob=0.5)[0]
        torch.npu.manual_seed(3)
        with torch.no_grad():
            on[0][0, 0, 0, 0] -= size / 2
        torch_npu.npu_fusion_attention(*on, 4, layout, scale=0.25, keep_prob=0.5)[
            0
        ].sum().backward()
        difference = (moved - made).sum().item() / size
        assert on[0].grad[0, 0, 0, 0].item() == pytest.approx(difference, abs=2e-2)


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


def test_calls_and_gradients_of_modules_are_replayed():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).npu()
    other = copy.deepcopy(model)
    graphed = torch.npu.make_graphed_callables(model, (torch.zeros(3, 4).npu().requires_grad_(),))
    assert graphed is model
    optimizers = [torch.optim.SGD(one.parameters(), 0.1) for one in (model, other)]
    for _ in range(3):
        rows = torch.randn(3, 4)
        given = [rows.npu().requires_grad_() for _ in range(2)]
        made = []
        for one, x, optimizer in zip((model, other), given, optimizers, strict=True):
            optimizer.zero_grad()
            made.append(one(x).square().mean())
            made[-1].backward()
            optimizer.step()
        torch.testing.assert_close(made[0], made[1])
        torch.testing.assert_close(given[0].grad, given[1].grad)
    torch.testing.assert_close(model[0].weight, other[0].weight)
    assert model.eval()(rows.npu()).shape == (3, 2)  # by the module itself
    several = torch.npu.make_graphed_callables(
        (torch.relu, torch.neg), ((torch.zeros(2).npu(),), (torch.zeros(2).npu(),))
    )
    assert several[1](several[0](torch.tensor([-1.0, 2.0]).npu())).tolist() == [0, -2]
    with pytest.raises(TypeError, match="sample_args of tensors"):
        torch.npu.make_graphed_callables(torch.relu, (3,))


def test_refusals_are_counted_by_operator():
    x = torch.randn(2, 4).npu()
    npu.reset_counts()
    calls = (
        lambda: torch_npu.npu_swiglu_quant(x),
        lambda: torch_npu.npu_gelu(x, approximate="erf"),
        lambda: torch.add(x.int(), x.int(), alpha=1.5),
        lambda: torch.mm(x, x),
    )
    for call in calls:
        with pytest.raises(RuntimeError):
            call()
    report = npu.report()
    assert report.refused == {
        ("npu::npu_swiglu_quant", "ERR01001"): 1, ("npu::npu_gelu", "ERR01001"): 1,
        ("aten::add.Tensor", "ERR01002"): 1, ("aten::mm", 161002): 1,
    }  # fmt: skip
    assert npu.counts() == {}
    assert "4 calls refused" in str(report)
    assert str(report) == str(npu.report())
    with pytest.raises(RuntimeError, match="use torch_npu"):
        torch.npu_rms_norm(x)


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


# --- Functions that are made of others -----------------------------------------------------------------


def test_deep_norm():
    own, others = leaves((2, 5, 8), (2, 5, 8), (8,), (8,))
    mean, rstd, made = torch_npu.npu_deep_norm(*others, 0.5, 1e-5)
    assert mean.shape == rstd.shape == (2, 5, 1)
    assert mean.dtype == rstd.dtype == torch.float32
    x, gx, beta, gamma = own
    wanted = functional.layer_norm(x * 0.5 + gx, (8,), gamma, beta, 1e-5)
    same_with_gradients(wanted, made, own, others)
    with pytest.raises(RuntimeError, match=r"(?s)shapes of x and gx should be the same.*ERR01001"):
        torch_npu.npu_deep_norm(others[0], others[1][:1], *others[2:])


def test_softmax_cross_entropy_with_logits():
    own, others = leaves((4, 8))
    labels = torch.randn(4, 8).softmax(-1)
    made = torch_npu.npu_softmax_cross_entropy_with_logits(others[0], labels.npu())
    same_with_gradients(
        functional.cross_entropy(own[0], labels, reduction="none"), made, own, others
    )


def test_largest_and_smallest_with_places_of_int32():
    own, others = leaves((4, 8))
    values, places = torch_npu.npu_max(others[0], 1)
    assert places.dtype == torch.int32
    assert torch.equal(places.cpu().long(), own[0].max(1)[1])
    same_with_gradients(own[0].max(1)[0], values, own, others)
    assert torch.equal(
        torch.ops.npu.npu_min.dim(others[0], 0, True)[0].cpu(), own[0].min(0, True)[0]
    )


@pytest.mark.parametrize("options", [{}, {"norm_type": 1}, {"renorm": 1}])
def test_gates_have_gradients(options):
    own, others = leaves((6, 8))
    made, places, _ = torch_npu.npu_moe_gating_top_k(
        others[0], 2, routed_scaling_factor=2.0, **options
    )
    share = own[0].sigmoid() if "norm_type" in options else own[0].softmax(-1)
    wanted = share.gather(-1, places.cpu().long())
    wanted = wanted / wanted.sum(-1, True) if options else wanted
    same_with_gradients(2 * wanted, made, own, others)


def test_norms_and_gates_are_quantized():
    x = torch.randn(4, 8)
    scale, offset = torch.tensor([0.02]), torch.tensor([1.0])
    made = torch_npu.npu_rms_norm_quant(
        x.npu(), torch.full((8,), 0.5).npu(), torch.ones(8).npu(), scale.npu(), offset.npu()
    )
    wanted = functional.rms_norm(x, (8,), torch.full((8,), 0.5), 1e-6) + 1
    wanted = (wanted / scale + offset).round().clamp(-128, 127)
    assert made.dtype == torch.int8
    assert (made.cpu().float() - wanted).abs().max() <= 1
    first, second = x.chunk(2, -1)
    gated = first * functional.silu(second)  # the right half is activated
    made, scales = torch_npu.npu_swiglu_quant(x.npu(), quant_mode=1)
    torch.testing.assert_close(
        made.cpu().float() * scales.cpu()[:, None], gated, atol=0.02, rtol=0.02
    )
    left = functional.silu(first) * second
    smooth = torch.stack([torch.full((4,), 10.0), torch.full((4,), 20.0)])
    made, _ = torch_npu.npu_swiglu_quant(
        x.npu(), smooth_scales=smooth.npu(), group_index=torch.tensor([1, 4]).npu(), activate_left=True
    )  # fmt: skip
    factors = torch.tensor([[10.0], [20], [20], [20]])
    assert (made.cpu().float() - (left * factors).round().clamp(-128, 127)).abs().max() <= 1
    with pytest.raises(RuntimeError, match="smooth_scales is required when quant_mode is 0"):
        torch_npu.npu_swiglu_quant(x.npu())
    with pytest.raises(RuntimeError, match=r"(?s)NOT_SUPPORT.*dst_type 16.*ERR01007"):
        torch_npu.npu_swiglu_quant(x.npu(), quant_mode=1, dst_type=16)


def test_integers_become_numbers():
    x, scale, offset = (
        torch.tensor([[1, -2], [3, 4]], dtype=torch.int8),
        torch.tensor([2.0, 0.5]),
        torch.ones(2),
    )
    made = torch_npu.npu_anti_quant(
        x.npu(), scale.npu(), offset=offset.npu(), dst_dtype=torch.bfloat16
    )
    assert made.dtype == torch.bfloat16
    assert torch.equal(made.cpu().float(), (x + offset) * scale)
    eight = torch.tensor([[0x7654321F]], dtype=torch.int32)  # the lowest bits come first
    made = torch_npu.npu_anti_quant(eight.npu(), torch.tensor([2.0]).npu())
    assert made.tolist() == [[-2, 2, 4, 6, 8, 10, 12, 14]]
    packed = torch_npu.npu_convert_weight_to_int4pack(
        torch.arange(-8, 8, dtype=torch.int32).reshape(2, 8).npu()
    )
    assert packed.shape == (2, 1)
    assert torch_npu.npu_anti_quant(packed, torch.ones(1).npu()).flatten().tolist() == [
        *range(-8, 8)
    ]


def test_slices_have_masks():
    x = torch.arange(24.0).reshape(2, 3, 4)

    def sliced(*args, **named):
        return torch_npu.npu_indexing(x.npu(), *args, **named).cpu()

    assert torch.equal(sliced([0, 1], [2, 3], [1, 1]), x[0:2, 1:3])
    assert torch.equal(sliced([1, 0], [2, 9], [1, 2], shrink_axis_mask=1), x[1, 0:9:2])
    assert torch.equal(sliced([0, 3], [0, 0], [1, -1], ellipsis_mask=1), x[..., [3, 2, 1]])
    assert torch.equal(sliced([5, 5], [1, 2], [1, 1], begin_mask=3), x[:1, :2])
    assert torch.equal(sliced([0, 1], [0, 2], [1, 1], new_axis_mask=1), x[None, 1:2])
    with pytest.raises(RuntimeError, match=r"(?s)strides\[0\] is 0.*ERR01003"):
        sliced([0], [1], [0])
    rows = torch_npu.npu_scatter(
        torch.zeros(2, 2).npu(), torch.tensor([0, 1], dtype=torch.int32).npu(), torch.ones(2).npu(), 0
    )  # fmt: skip
    assert rows.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("mode", ["half", "interleave"])
def test_positions_of_several_axes(mode):
    torch.manual_seed(0)
    cache, query, key = torch.randn(10, 8), torch.randn(5, 32), torch.randn(5, 16)
    axes = torch.randint(0, 10, (3, 5))
    sections = [1, 2, 1]
    cos, sin = (
        torch.cat([part[k] for k, part in enumerate(one.split(sections, -1))], -1)[:, None]
        for one in cache[axes].chunk(2, -1)
    )

    def turned(x):
        heads = x.reshape(5, -1, 16)
        moved, kept = heads[..., :8], heads[..., 8:]
        a, b = (
            (moved[..., :4], moved[..., 4:])
            if mode == "half"
            else (moved[..., ::2], moved[..., 1::2])
        )
        parts = a * cos - b * sin, b * cos + a * sin
        made = torch.cat(parts, -1) if mode == "half" else torch.stack(parts, -1).flatten(-2)
        return torch.cat((made, kept), -1).reshape(x.shape)

    made = torch_npu.npu_mrope(
        axes.npu(), query.npu(), key.npu(), cache.npu(), 16, mrope_section=sections, rotary_mode=mode
    )  # fmt: skip
    for mine, its in zip(made, (query, key), strict=True):
        torch.testing.assert_close(mine.cpu(), turned(its))
    one = torch_npu.npu_mrope(axes[0].npu(), query.npu(), key.npu(), cache.npu(), 16)
    assert one[0].shape == query.shape
    with pytest.raises(RuntimeError, match=r"(?s)mrope_section \[9\] should sum up to 4.*ERR01003"):
        torch_npu.npu_mrope(axes.npu(), query.npu(), key.npu(), cache.npu(), 16, mrope_section=[9])


@pytest.mark.parametrize("activation", ["gelu", "relu", "silu", "swiglu", "geglu", "reglu"])
def test_feed_forward_networks(activation):
    torch.manual_seed(0)
    x, first, second = torch.randn(5, 8), torch.randn(2, 8, 16), torch.randn(2, 16, 8)
    gate = {"swiglu": functional.silu, "geglu": functional.gelu, "reglu": functional.relu}.get(
        activation
    )
    second = second[:, :8] if gate else second

    def network(rows, k):
        hidden = rows @ first[k]
        if gate is None:
            return getattr(functional, activation)(hidden) @ second[k]
        a, b = hidden.chunk(2, -1)
        return (gate(a) * b) @ second[k]

    wanted = torch.cat((network(x[:2], 0), network(x[2:], 1)))
    on = [one.npu() for one in (x, first, second)]
    made = torch_npu.npu_ffn(*on, activation, expert_tokens=[2, 3])
    torch.testing.assert_close(made.cpu(), wanted, atol=1e-4, rtol=1e-4)
    assert torch.equal(torch_npu.npu_ffn(*on, activation, expert_tokens_index=[2, 5]), made)
    plain = torch_npu.npu_ffn(on[0], on[1][0], on[2][0], activation)
    torch.testing.assert_close(plain.cpu(), network(x, 0), atol=1e-4, rtol=1e-4)
    with pytest.raises(
        RuntimeError, match=r"(?s)activation only supports .* but got tanh.*ERR01003"
    ):
        torch_npu.npu_ffn(*on, "tanh", expert_tokens=[2, 3])


def test_feed_forward_networks_of_integers():
    torch.manual_seed(0)
    x, first, second = (
        torch.randint(-9, 9, shape).to(torch.int8) for shape in ((3, 8), (8, 16), (16, 8))
    )
    deq1, deq2, scale = torch.full((16,), 0.01), torch.full((8,), 0.1), torch.tensor([20.0])
    made = torch_npu.npu_ffn(
        x.npu(), first.npu(), second.npu(), "relu", scale=scale.npu(), deq_scale1=deq1.npu(), deq_scale2=deq2.npu()
    )  # fmt: skip
    hidden = functional.relu((x.float() @ first.float()) * deq1)
    hidden = (hidden * scale).round().clamp(-128, 127)
    torch.testing.assert_close(
        made.cpu().float(), hidden @ second.float() * deq2, atol=0.5, rtol=0.02
    )
    assert made.dtype == torch.float16


@pytest.mark.parametrize("amsgrad", [False, True])
def test_steps_of_adamw(amsgrad):
    torch.manual_seed(0)
    start = torch.randn(5)
    parameter = torch.nn.Parameter(start.clone())
    optimizer = torch.optim.AdamW([parameter], 0.1, weight_decay=0.02, amsgrad=amsgrad)
    var, m, v = start.npu(), torch.zeros(5).npu(), torch.zeros(5).npu()
    most = torch.zeros(5).npu() if amsgrad else None
    for k in range(3):
        parameter.grad = torch.randn(5)
        made = torch_npu.npu_apply_adam_w.out(
            0.9**k, 0.999**k, 0.1, 0.02, 0.9, 0.999, 1e-8, parameter.grad.npu(), most, amsgrad, False, out=(var, m, v)
        )  # fmt: skip
        optimizer.step()
        assert made[0] is var
        most = torch.maximum(most, v) if amsgrad else None
    torch.testing.assert_close(var.cpu(), parameter.detach(), atol=1e-5, rtol=1e-4)


def test_convolutions_of_any_rank():
    own, others = leaves((2, 4, 6, 6), (6, 2, 3, 3), (6,))
    options = [2, 2], [1, 1], [1, 1], 2
    wanted = functional.conv2d(*own, *options)
    same_with_gradients(wanted, torch_npu.npu_convolution(*others, *options), own, others)


def test_lists_of_ends_are_groups():
    x, w = torch.randn(4, 16), torch.randn(2, 16, 8)
    (made,) = torch_npu.npu_grouped_matmul(
        [x.half().npu()], [w.half().npu()], group_list=[1, 4], split_item=3, group_type=0
    )
    wanted = torch.cat((x[:1] @ w[0], x[1:] @ w[1]))
    torch.testing.assert_close(made.cpu().float(), wanted, atol=2e-2, rtol=1e-2)
    assert npu.counts()["npu::npu_grouped_matmul.List"][0]


def test_caches_are_written_in_copies():
    key, cache = torch.randn(3, 2, 16).half().npu(), torch.zeros(2, 4, 2, 16).half().npu()
    slots = torch.tensor([0, 5, 2], dtype=torch.int32).npu()
    first, second = torch_npu.npu_scatter_pa_kv_cache_functional(
        key, key, cache, cache, slots, cache_mode="Norm"
    )
    assert not cache.any()
    assert torch.equal(first.view(8, 2, 16)[[0, 5, 2]], key)
    assert torch.equal(first, second)


def test_formats_are_operators_too():
    x = torch.randn(4, 8).npu().requires_grad_()
    y = torch.ops.npu.npu_format_cast(x, 29)
    y.sum().backward()
    assert x.grad.tolist() == torch.ones(4, 8).tolist()
    assert torch.ops.npu.get_npu_format(y) == 29
    assert torch.ops.npu.npu_format_cast.Tensor(y, torch.randn(4, 8).npu()).shape == (4, 8)


def test_what_only_later_devices_have_is_refused():
    with pytest.raises(RuntimeError, match=r"(?s)NOT_SUPPORT: .*Ascend950.*Ascend910B3.*ERR01007"):
        torch_npu.npu_dynamic_mx_quant(torch.randn(4, 64).npu())
