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


def test_a_bert_trains():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, vocab_size=100,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    batch = {"input_ids": torch.randint(0, 100, (2, 16)), "labels": torch.tensor([0, 1])}
    (_, wanted), (_, losses) = losses_of(
        lambda: transformers.BertForSequenceClassification(config), batch
    )
    assert losses == pytest.approx(wanted, abs=1e-4)


def test_accelerate_trains_there():
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator()
    assert accelerator.device.type == "npu"
    # Moving makes parameters anew, as on every device that PyTorch does not know itself.
    model = torch.nn.Linear(4, 1).to(accelerator.device)
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
    model = peft.get_peft_model(
        llama(), peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"])
    ).to("npu")
    ids = torch.randint(0, 100, (2, 16)).npu()
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], 1e-2)
    losses = []
    for _ in range(5):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


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
