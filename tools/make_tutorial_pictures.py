"""Pictures of the tutorial, made from the call that it examines."""

from pathlib import Path

import numpy as np

import aclnn

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"


def main() -> None:
    """Write the materialized graph and its plan, the fused graph, and all stages between."""
    g = np.ones((16, 1, 256), np.float16)
    x = np.ones((256, 64), np.float32).T
    out = np.empty((64, 256, 16), np.float32).transpose(2, 0, 1)
    fused = aclnn.executor("gelu_backward", g, x, out=out)
    whole = aclnn.executor("gelu_backward", g, x, out=out, materialize=True)
    FOLDER.mkdir(exist_ok=True)
    for name, picture in {
        "tutorial-plan": whole.plan.to_svg(),
        "tutorial-graph-materialized": whole.graph.to_svg(whole.plan),
        "tutorial-graph-fused": fused.graph.to_svg(fused.plan),
        "passes": fused.passes.to_svg(),
    }.items():
        (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
