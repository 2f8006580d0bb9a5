"""Two faults that only showed on hardware, found by the emulated npu device.

A normalisation whose weight is missing, and an attention mask of a shape that the NPU refuses. With mocks in place of
``torch_npu`` both pass; here they fail as on an NPU. Run it with ``aclnn npu examples/npu_faults.py``, or by itself.
"""

import importlib.util

import torch

if importlib.util.find_spec("torch_npu") is None:
    import aclnn.torch.npu

    aclnn.torch.npu.enable()

import torch_npu


def normalized(x: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
    """What a layer does; the fault is in a caller, which gives no weight."""
    return torch_npu.npu_rms_norm(x, weight, epsilon=1e-6)[0]


def attended(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch_npu.npu_fusion_attention(
        x, x, x, x.shape[1], "BNSD", atten_mask=mask, scale=0.125
    )[0]


def main() -> None:
    x = torch.randn(2, 4, 128, 64, device="npu", dtype=torch.float16)
    try:
        normalized(x, None)
    except (RuntimeError, TypeError) as error:
        print("no weight:", str(error).splitlines()[0])
    for shape in ((128, 1), (128, 128)):
        mask = torch.ones(shape, device="npu", dtype=torch.bool).triu(1)
        try:
            print("mask of shape", shape, "gives", tuple(attended(x, mask).shape))
        except RuntimeError as error:
            print(
                "mask of shape",
                shape,
                "is refused:",
                str(error).splitlines()[-1].partition("): ")[2],
            )


if __name__ == "__main__":
    main()
