"""What the emulated npu device has where it is an Ascend950."""

import pytest
import torch

import aclnn.torch.npu as npu

pytestmark = pytest.mark.filterwarnings("default")  # programs of others warn

npu.enable(soc="Ascend950")
import torch_npu  # noqa: E402  # which is there when the device is


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize(
    ("number", "dtype", "step"), [(23, torch.float8_e5m2, 0.25), (24, torch.float8_e4m3fn, 0.125)]
)
def test_blocks_share_powers_of_two(axis, number, dtype, step):
    torch.manual_seed(0)
    x = torch.randn(70, 70)
    made, scale = torch_npu.npu_dynamic_mx_quant(x.npu(), axis=axis, dst_type=number)
    assert (made.dtype, scale.dtype) == (dtype, torch.float8_e8m0fnu)
    assert scale.shape == ((70, 2, 2) if axis else (2, 70, 2))
    shared = scale.cpu().float() if axis else scale.cpu().float().movedim(0, 1)
    shared = shared.flatten(-2)[:, :3].repeat_interleave(32, 1)[:, :70]
    values = made.cpu().float() if axis else made.cpu().float().t()
    own = x if axis else x.t()
    assert ((values * shared - own).abs() <= step * own.abs() + 2 * shared).all()


def test_numbers_of_four_bits_are_packed():
    x = torch.tensor([[0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -6.0]])
    made, scale = torch_npu.npu_dynamic_mx_quant(x.npu())
    assert made.dtype == torch.uint8
    assert made.tolist() == [[0x21, 0x43, 0x65, 0xF7]]
    assert scale.cpu().float().flatten().tolist()[0] == 1
