"""Pictures of the tutorial, made from the model that it shows."""

from __future__ import annotations

import re
import runpy
import tempfile
from pathlib import Path
from typing import Any

import aclnn

DOCS = Path(__file__).parent.parent / "docs"
FOLDER = DOCS / "pictures"
THREADS = 2  # as the tutorial's numbers have them
LAYERS = 12


def main() -> None:
    """Write the plans of the block on its way, its fused graph, and the plan of a stack of blocks."""
    aclnn.set_num_threads(THREADS)
    model = tutorials_model()
    naive = model["planned"](materialize=True, strategy="naive")
    whole, fused = model["planned"](materialize=True), model["planned"]()
    FOLDER.mkdir(exist_ok=True)
    for name, picture in {
        "tutorial-plan-naive": naive.plan.to_svg(heat="bytes"),
        "tutorial-plan": whole.plan.to_svg(heat="bytes"),
        "tutorial-plan-fused": fused.plan.to_svg(heat="bytes"),
        "tutorial-graph-fused": fused.graph.to_svg(fused.plan, heat="bytes"),
        "tutorial-plan-stack": stack(model).plan.to_svg(heat="bytes"),
    }.items():
        (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")


def tutorials_model() -> dict[str, Any]:
    """What the file defines that the tutorial shows."""
    text = (DOCS / "tutorial-workspace.md").read_text(encoding="utf-8")
    found = re.search(r"^\$ cat model\.py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found is not None, "the tutorial shows its model"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.py"
        path.write_text(found.group(1), encoding="utf-8")
        return runpy.run_path(str(path))


def stack(model: dict[str, Any]) -> Any:
    """An executor of several blocks, one behind the other."""

    def layers(x: Any, weights: Any) -> Any:
        for w in weights:
            x = model["block"](x, w)
        return x

    x, w = model["arguments"]()
    return aclnn.compile(layers).executor(x, [w] * LAYERS)


if __name__ == "__main__":
    main()
