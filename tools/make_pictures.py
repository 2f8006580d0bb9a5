"""Pictures of the documentation, made from the code they show.

Pictures of the report need Chromium, ChromeDriver and selenium, and stay as they are without.
"""

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import aclnn

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"


def main() -> None:
    """Write the graph as built and as scheduled, and the plan of the materialized graph."""
    g = np.ones((1024, 64), np.float16).T.reshape(64, 1, 1024)
    x = np.ones((128, 1024), np.float32)[::2]
    out = np.zeros((1024, 64, 64), np.float32).transpose(1, 2, 0)
    fused = aclnn.executor("gelu_backward", g, x, out=out)
    whole = aclnn.executor("gelu_backward", g, x, out=out, materialize=True)
    encoder = model()
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "graph-as-built.svg").write_text(fused.graph_as_built.to_svg(), encoding="utf-8")
    (FOLDER / "graph-scheduled.svg").write_text(fused.graph.to_svg(fused.plan), encoding="utf-8")
    (FOLDER / "plan-materialized.svg").write_text(whole.plan.to_svg(heat="bytes"), encoding="utf-8")
    (FOLDER / "block.svg").write_text(block(), encoding="utf-8")
    (FOLDER / "gallery-graph.svg").write_text(
        encoder.graph.to_svg(encoder.plan, heat="bytes"), encoding="utf-8"
    )
    (FOLDER / "passes.svg").write_text(stages().to_svg(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(whole.to_html(), encoding="utf-8")
        box = '[data-way=materialized] .plan g[data-names~="self_broadcast"]'
        for scheme in ("light", "dark"):
            photograph(page, scheme, FOLDER / f"report-{scheme}.png", box)
        page.write_text(encoder.to_html(), encoding="utf-8")
        photograph(page, "light", FOLDER / "gallery-report.png", at=".explorer")


def block() -> str:
    """The graph of the function that the start page compiles."""

    @aclnn.compile
    def block(x: Any, weight: Any) -> Any:
        return aclnn.silu(aclnn.rms_norm(x, 64, weight)) + x

    ex = block.executor(np.ones((128, 64), np.float32), np.ones(64, np.float32))
    return ex.graph.to_svg(ex.plan)


def stages() -> Any:
    """What passes do to a call that is smaller, so that all stages fit beside each other."""
    g = np.ones((16, 1, 256), np.float16)
    x = np.ones((256, 64), np.float32).T
    out = np.empty((64, 256, 16), np.float32).transpose(2, 0, 1)
    return aclnn.executor("gelu_backward", g, x, out=out).passes


def model() -> Any:
    """An executor of a transformer's encoder, of twelve layers."""

    def attention(x: Any, p: Any) -> Any:
        q, k, v = (aclnn.permute((x @ p[n]).reshape(16, 4, 16), (1, 0, 2)) for n in "qkv")
        found = aclnn.scaled_dot_product_attention(q, k, v)
        return aclnn.permute(found, (1, 0, 2)).reshape(16, 64) @ p["o"]

    def layer(x: Any, p: Any) -> Any:
        x = x + attention(aclnn.rms_norm(x, (64,), p["norm"]), p)
        return x + aclnn.swiglu(x @ p["up"]) @ p["down"]

    @aclnn.compile
    def encoder(x: Any, layers: Any) -> Any:
        for p in layers:
            x = layer(x, p)
        return aclnn.rms_norm(x, (64,))

    def weights() -> dict[str, Any]:
        square = {name: np.ones((64, 64), np.float32) for name in "qkvo"}
        return square | {
            "norm": np.ones(64, np.float32),
            "up": np.ones((64, 256), np.float32),
            "down": np.ones((128, 64), np.float32),
        }

    return encoder.executor(np.ones((16, 64), np.float32), [weights() for _ in range(12)])


def photograph(page: Path, scheme: str, picture: Path, click: str = "", at: str = "") -> None:
    """Save what a reader who prefers `scheme` sees, first or of a part, after a click."""
    driver, browser = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or browser is None:
        print(f"{picture.name} stays as it is: no chromium and chromedriver on this machine")
        return
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for word in ("--headless=new", "--no-sandbox", "--hide-scrollbars", "--window-size=1180,1700"):
        options.add_argument(word)
    with webdriver.Chrome(options=options, service=Service(driver)) as chromium:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        chromium.get(page.as_uri())
        time.sleep(1)  # what the page has compressed is there
        if click:
            chromium.find_elements("css selector", click)[0].click()
        chromium.execute_script("scrollTo(0, 0)")
        if at:
            chromium.set_window_size(1180, 1050)
            chromium.execute_script(f"document.querySelector({at!r}).scrollIntoView()")
        away = {"type": "mouseMoved", "x": 1, "y": 1}  # what lies below the pointer is highlighted
        chromium.execute_cdp_cmd("Input.dispatchMouseEvent", away)
        chromium.save_screenshot(str(picture))


if __name__ == "__main__":
    main()
