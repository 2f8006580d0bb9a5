"""Collectives of the process group ``hccl`` in two processes, each with a device of its own."""

import os

import pytest
import torch
import torch.distributed as dist
from torch import multiprocessing, nn

import aclnn.torch.npu as npu
from aclnn import measurements

pytestmark = pytest.mark.filterwarnings("default")  # programs of others warn
SIZE = 2
FOLDER = (
    measurements.folder()
)  # with the device's compiled part, which tests otherwise have a folder of their own for


def begin(rank, file):
    npu.enable(devices=SIZE)
    torch.npu.set_device(rank)
    dist.init_process_group("hccl", init_method=f"file://{file}", rank=rank, world_size=SIZE)
    return torch.arange(4, dtype=torch.float32, device="npu") + 10 * rank


def collectives(x, rank):
    own = [torch.arange(4.0), torch.arange(4.0) + 10]
    assert dist.is_hccl_available()
    assert dist.get_backend() == "hccl"

    def reduced(op):
        made = x.clone()
        dist.all_reduce(made, op)
        assert made.device.index == rank
        return made.tolist()

    assert reduced(dist.ReduceOp.SUM) == (own[0] + own[1]).tolist()
    assert reduced(dist.ReduceOp.AVG) == ((own[0] + own[1]) / 2).tolist()
    assert reduced(dist.ReduceOp.MAX) == own[1].tolist()
    gathered = [torch.empty_like(x) for _ in range(SIZE)]
    dist.all_gather(gathered, x)
    assert [one.tolist() for one in gathered] == [one.tolist() for one in own]
    whole = torch.empty(8, device="npu")
    dist.all_gather_into_tensor(whole, x)
    assert whole.tolist() == torch.cat(own).tolist()
    part = torch.empty(2, device="npu")
    dist.reduce_scatter_tensor(part, x)
    assert part.tolist() == (own[0] + own[1])[2 * rank : 2 * rank + 2].tolist()
    made = x.clone()
    dist.broadcast(made, 1)
    assert made.tolist() == own[1].tolist()
    dist.all_to_all_single(made, x)
    assert made.tolist() == torch.cat([one[2 * rank : 2 * rank + 2] for one in own]).tolist()
    calls = [dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, made, 1 - rank)]
    for work in dist.batch_isend_irecv(calls):
        work.wait()
    assert made.tolist() == own[1 - rank].tolist()
    objects = [None] * SIZE
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": 0}, {"rank": 1}]
    dist.barrier()
    with pytest.raises(RuntimeError, match=rf"RankID:{rank}\)"):
        x.view(2, 2).mm(torch.ones(3, 3, device="npu"))


def models(rank):
    torch.manual_seed(0)
    plain = nn.Linear(4, 2)
    batches = [torch.randn(3, 4) for _ in range(SIZE)]
    model = nn.Linear(4, 2)
    model.load_state_dict(plain.state_dict())
    distributed = nn.parallel.DistributedDataParallel(model.npu(), device_ids=[rank])
    distributed(batches[rank].npu()).square().mean().backward()
    plain(torch.cat(batches)).square().mean().backward()
    torch.testing.assert_close(model.weight.grad.cpu(), plain.weight.grad)
    from torch.distributed.fsdp import fully_shard

    sharded = nn.Linear(4, 2)
    sharded.load_state_dict(plain.state_dict())
    fully_shard(sharded.npu())
    sharded(batches[rank].npu()).square().mean().backward()
    torch.testing.assert_close(sharded.weight.grad.full_tensor().cpu(), plain.weight.grad)


def both(rank, file, folder):
    os.environ["ACLNN_CACHE_DIR"] = str(folder)
    collectives(begin(rank, file), rank)
    models(rank)
    dist.destroy_process_group()


@pytest.mark.skipif(not dist.is_gloo_available(), reason="needs Gloo")
def test_two_processes(tmp_path):
    multiprocessing.spawn(both, (tmp_path / "store", FOLDER), SIZE)
