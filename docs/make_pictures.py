"""Make the documentation's pictures anew, from the code they show."""

from pathlib import Path

import numpy as np

import aclnn

FOLDER = Path(__file__).parent / "pictures"


def main() -> None:
    """Write the graph as built and as scheduled, and the plan of the materialized graph."""
    g = np.ones((1024, 64), np.float16).T.reshape(64, 1, 1024)
    x = np.ones((128, 1024), np.float32)[::2]
    out = np.zeros((1024, 64, 64), np.float32).transpose(1, 2, 0)
    fused = aclnn.executor("gelu_backward", g, x, out=out)
    whole = aclnn.executor("gelu_backward", g, x, out=out, materialize=True)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "graph-as-built.svg").write_text(fused.graph_as_built.to_svg())
    (FOLDER / "graph-scheduled.svg").write_text(fused.graph.to_svg())
    (FOLDER / "plan-materialized.svg").write_text(whole.plan.to_svg())


if __name__ == "__main__":
    main()
