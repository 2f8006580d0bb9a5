"""A CANN program that captures a stream: three calls become one loop, and their model runs often.

Run it with ``python examples/capture.py``.
"""

import numpy as np

import aclnn


def tensor(array):
    strides = [step // array.itemsize for step in array.strides]
    return aclnn.aclCreateTensor(
        array.shape, aclnn.ACL_FLOAT, strides, 0, aclnn.ACL_FORMAT_ND, array.shape, array
    )


def launch(name, *arguments, stream):
    """Both phases of an operator, the second on a stream."""
    size, executor, status = getattr(aclnn, f"{name}GetWorkspaceSize")(*arguments)
    assert status == aclnn.ACLNN_SUCCESS, aclnn.aclGetRecentErrMsg()
    workspace = np.empty(size, np.uint8) if size else None
    assert getattr(aclnn, name)(workspace, size, executor, stream) == aclnn.ACLNN_SUCCESS


def main():
    x = np.linspace(-3, 3, 1 << 20, dtype=np.float32)
    hidden, gate, y = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    stream, _ = aclnn.aclrtCreateStream()
    side, _ = aclnn.aclrtCreateStream()
    fork, _ = aclnn.aclrtCreateEvent()
    join, _ = aclnn.aclrtCreateEvent()

    aclnn.aclmdlRICaptureBegin(stream, aclnn.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL)
    aclnn.aclrtRecordEvent(fork, stream)
    aclnn.aclrtStreamWaitEvent(side, fork)  # the side stream joins the capture
    launch("aclnnSilu", tensor(x), tensor(gate), stream=side)
    launch("aclnnRelu", tensor(x), tensor(hidden), stream=stream)
    aclnn.aclrtRecordEvent(join, side)
    aclnn.aclrtStreamWaitEvent(stream, join)
    launch("aclnnMul", tensor(hidden), tensor(gate), tensor(y), stream=stream)
    if aclnn.aclrtSynchronizeStream(stream):  # refused, and the message says why
        print(aclnn.aclGetRecentErrMsg())
    model, status = aclnn.aclmdlRICaptureEnd(stream)
    assert status == aclnn.ACL_SUCCESS, aclnn.aclGetRecentErrMsg()

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
