"""Entry point of PyTorch's group ``torch.backends``: every ``import torch`` loads it, so it imports nothing."""


def load():
    """Enable the emulated npu device where the environment variable ``ACLNN_NPU`` asks for it."""
    import os

    if os.environ.get("ACLNN_NPU", "0") in ("", "0"):
        return
    try:
        from aclnn.torch.npu import enable_from_environment

        enable_from_environment()
    except Exception as error:  # which would make `import torch` fail
        import sys

        print(f"aclnn: the npu device is not enabled: {error}", file=sys.stderr)
