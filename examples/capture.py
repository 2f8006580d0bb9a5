"""A CANN program that captures a stream: three calls become one loop, and their model runs often.

Run it with ``python examples/capture.py``.
"""

from typing import Any

import numpy as np

import aclnn


def launch(name: str, *arguments: aclnn.aclTensor, stream: Any) -> None:
    """Both phases of an operator, the second on a stream."""
    size, executor, status = getattr(aclnn, f"{name}GetWorkspaceSize")(*arguments)
    assert status == aclnn.ACLNN_SUCCESS, aclnn.aclGetRecentErrMsg()
    workspace = np.empty(size, np.uint8) if size else None
    assert getattr(aclnn, name)(workspace, size, executor, stream) == aclnn.ACLNN_SUCCESS


def main() -> None:
    x = np.linspace(-3, 3, 1 << 20, dtype=np.float32)
    hidden, gate, y = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    stream, _ = aclnn.aclrtCreateStream()
    side, _ = aclnn.aclrtCreateStream()
    fork, _ = aclnn.aclrtCreateEvent()
    join, _ = aclnn.aclrtCreateEvent()

    aclnn.aclmdlRICaptureBegin(stream, aclnn.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL)
    aclnn.aclrtRecordEvent(fork, stream)
    aclnn.aclrtStreamWaitEvent(side, fork)  # the side stream joins the capture
    launch("aclnnSilu", aclnn.tensor(x), aclnn.tensor(gate), stream=side)
    launch("aclnnRelu", aclnn.tensor(x), aclnn.tensor(hidden), stream=stream)
    aclnn.aclrtRecordEvent(join, side)
    aclnn.aclrtStreamWaitEvent(stream, join)
    launch("aclnnMul", aclnn.tensor(hidden), aclnn.tensor(gate), aclnn.tensor(y), stream=stream)
    if aclnn.aclrtSynchronizeStream(stream):  # refused, and the message says why
        print(aclnn.aclGetRecentErrMsg())
    model, status = aclnn.aclmdlRICaptureEnd(stream)
    assert status == aclnn.ACL_SUCCESS, aclnn.aclGetRecentErrMsg()
    assert model is not None

    print(model.to_text())
    print(model.executor.graph.to_text())
    for run in range(3):
        x += run
        aclnn.aclmdlRIExecuteAsync(model, stream)
        aclnn.aclrtSynchronizeStream(stream)
        print(f"run {run}: {y[-1]:.6f}")
    print(model.executor.profile(repeat=5).to_text())

    aclnn.aclmdlRIDestroy(model)
    for each in (stream, side):
        aclnn.aclrtDestroyStream(each)


if __name__ == "__main__":
    main()
