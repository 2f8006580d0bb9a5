"""One operator in CANN's two phases, with device memory, a stream and a repeatable executor."""

import numpy as np

import aclnn


def check(status: int) -> None:
    """Stop at the first status that is no success."""
    if status != aclnn.ACLNN_SUCCESS:
        raise SystemExit(f"{aclnn.explain(status)}\n{aclnn.aclGetRecentErrMsg()}")


def main() -> None:
    host = np.linspace(-4, 4, 1024, dtype=np.float32)
    nbytes = host.nbytes
    device, status = aclnn.aclrtMalloc(2 * nbytes, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)
    check(status)
    check(aclnn.aclrtMemcpy(device, nbytes, host, nbytes, aclnn.ACL_MEMCPY_HOST_TO_DEVICE))

    shape = host.shape
    x, y = (
        aclnn.aclCreateTensor(shape, aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, shape, address)
        for address in (device, device + nbytes)
    )
    size, executor, status = aclnn.aclnnGeluGetWorkspaceSize(x, y)
    check(status)
    check(aclnn.aclSetAclOpExecutorRepeatable(executor))
    workspace = np.empty(size, np.uint8) if size else None

    stream, status = aclnn.aclrtCreateStream()
    check(status)
    for _ in range(3):
        check(aclnn.aclnnGelu(workspace, size, executor, stream))
    check(aclnn.aclrtSynchronizeStream(stream))

    result = np.empty_like(host)
    check(
        aclnn.aclrtMemcpy(result, nbytes, device + nbytes, nbytes, aclnn.ACL_MEMCPY_DEVICE_TO_HOST)
    )
    print(f"gelu(1) = {result[np.argmin(abs(host - 1))]:.4f}")
    check(aclnn.aclDestroyAclOpExecutor(executor))
    check(aclnn.aclrtDestroyStream(stream))
    check(aclnn.aclrtFree(device))


if __name__ == "__main__":
    main()
