"""What happens to one call on its way to the kernels, and what a wasteful plan would cost."""

import numpy as np

import aclnn


def main() -> None:
    g = np.ones((64, 1, 256), np.float16)
    x = np.ones((32, 256), np.float32)[::2]
    out = np.zeros((256, 64, 16), np.float32).transpose(1, 2, 0)
    fused = aclnn.executor("gelu_backward", g, x, out=out)
    whole = aclnn.executor("gelu_backward", g, x, out=out, materialize=True)
    for step in fused.passes:
        print(step.name, *step.notes, sep="\n  ")
    print(f"\nfused: {fused.workspace_size} bytes of workspace")
    print(f"every intermediate whole: {whole.workspace_size} bytes\n")
    print(whole.plan.to_text())
    print()
    print(whole.profile(repeat=10).to_text())


if __name__ == "__main__":
    main()
