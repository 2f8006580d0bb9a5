"""Programs of others on the emulated npu device: models that train and generate, pipelines."""

import copy

import pytest
import torch

import aclnn.torch.npu as npu

pytestmark = pytest.mark.filterwarnings("default")  # programs of others warn

npu.enable()


def losses_of(make, batch, steps=20):
    """A model on the CPU and its copy on the device, with the losses of their steps."""
    torch.manual_seed(0)
    model = make().train()
    found = []
    for one in (model, copy.deepcopy(model).to("npu")):
        optimizer, losses = torch.optim.AdamW(one.parameters(), 1e-3), []
        on = {key: value.to(one.device) for key, value in batch.items()}
        for _ in range(steps):
            loss = one(**on).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        found.append((one.eval(), losses))
    return found


def llama():
    transformers = pytest.importorskip("transformers")
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            vocab_size=100,
        )
    )  # fmt: skip


def test_a_llama_trains_and_generates(tmp_path):
    ids = torch.randint(0, 100, (2, 16))
    (cpu, wanted), (on, losses) = losses_of(llama, {"input_ids": ids, "labels": ids})
    assert losses == pytest.approx(wanted, abs=1e-4)
    assert losses[-1] < losses[0]
    options = {"max_new_tokens": 8, "do_sample": False}
    assert torch.equal(
        cpu.generate(ids[:1], **options), on.generate(ids[:1].npu(), **options).cpu()
    )
    on.save_pretrained(tmp_path)
    read = type(on).from_pretrained(tmp_path, device_map="npu")
    assert read.device.type == "npu"
    assert torch.equal(
        read.generate(ids[:1].npu(), **options), on.generate(ids[:1].npu(), **options)
    )


def bert(kind, **options):
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=100,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **options,
    )  # fmt: skip
    return getattr(transformers, kind)(config)


def test_a_bert_trains_and_is_loaded(tmp_path):
    batch = {"input_ids": torch.randint(0, 100, (2, 16)), "labels": torch.tensor([0, 1])}
    batch["attention_mask"] = torch.tensor([[1] * 16, [1] * 10 + [0] * 6])
    (cpu, wanted), (on, losses) = losses_of(lambda: bert("BertForSequenceClassification"), batch)
    assert losses == pytest.approx(wanted, abs=1e-4)
    on.save_pretrained(tmp_path)
    read = type(on).from_pretrained(tmp_path, device_map="npu")
    given = {key: value.npu() for key, value in batch.items()}
    torch.testing.assert_close(read(**given).logits, on(**given).logits)
    torch.testing.assert_close(
        read(**given).logits.cpu(), cpu(**batch).logits, atol=1e-3, rtol=1e-3
    )


def test_a_bert_trains_and_generates():
    ids = torch.randint(1, 100, (2, 16))
    (cpu, wanted), (on, losses) = losses_of(
        lambda: bert("BertLMHeadModel", is_decoder=True), {"input_ids": ids, "labels": ids}
    )
    assert losses == pytest.approx(wanted, abs=1e-4)
    options = {"max_new_tokens": 6, "do_sample": False}
    made = on.generate(ids[:1].npu(), **options)
    assert torch.equal(cpu.generate(ids[:1], **options), made.cpu())


def test_training_goes_on_from_a_checkpoint(tmp_path):
    torch.manual_seed(0)
    batches = torch.utils.data.DataLoader(torch.randn(8, 4), 2, pin_memory=True)

    def trained(model, optimizer, rounds):
        for _ in range(rounds):
            for x in batches:
                assert x.is_pinned()
                optimizer.zero_grad()
                model(x.to("npu", non_blocking=True)).square().mean().backward()
                optimizer.step()
        return model.weight.detach().cpu()

    def begun():
        torch.manual_seed(1)
        model = torch.nn.Linear(4, 2).npu()
        return model, torch.optim.AdamW(model.parameters(), 0.1)

    wanted = trained(*begun(), 4)
    model, optimizer = begun()
    trained(model, optimizer, 2)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "at")
    model, optimizer = begun()
    read = torch.load(tmp_path / "at")
    assert all(one.is_npu for one in read["model"].values())
    model.load_state_dict(read["model"])
    optimizer.load_state_dict(read["optimizer"])
    torch.testing.assert_close(trained(model, optimizer, 2), wanted)


def test_accelerate_trains_there():
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator()
    assert accelerator.device.type == "npu"
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(16, 4)), 4)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    losses = []
    for _ in range(8):
        for (x,) in data:
            assert x.device.type == "npu"
            loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    assert sum(losses[-4:]) < sum(losses[:4])


def test_adapters_train():
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"])
    ids = torch.randint(0, 100, (2, 16))
    (_, wanted), (on, losses) = losses_of(
        lambda: peft.get_peft_model(llama(), config), {"input_ids": ids, "labels": ids}, 5
    )
    assert losses == pytest.approx(wanted, abs=1e-4)
    assert losses[-1] < losses[0]
    assert {
        name for name, one in on.named_parameters() if one.requires_grad and "lora" not in name
    } == set()


def test_a_diffusion_pipeline_runs_with_a_generator_of_the_device():
    diffusers = pytest.importorskip("diffusers")
    torch.manual_seed(0)
    network = diffusers.UNet2DModel(
        sample_size=8, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(32, 64),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )  # fmt: skip
    pipeline = diffusers.DDPMPipeline(network, diffusers.DDPMScheduler(num_train_timesteps=10)).to(
        "npu"
    )
    pipeline.set_progress_bar_config(disable=True)
    made = [
        pipeline(
            generator=torch.Generator("npu").manual_seed(3), num_inference_steps=2, output_type="np"
        ).images
        for _ in range(2)
    ]
    assert made[0].shape == (1, 8, 8, 3)
    assert (made[0] == made[1]).all()
