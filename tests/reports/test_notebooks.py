"""Views as parts of other pages, such as notebooks: they change nothing there, and suit their theme."""

import pathlib
import re

import numpy as np
import pytest

import aclnn


@pytest.fixture(scope="module")
def executor():
    g, x = np.ones((8, 1, 16), np.float16), np.ones((6, 16), np.float32)
    return aclnn.executor("gelu_backward", g, x, materialize=True)


@pytest.fixture(scope="module")
def parts(executor):
    naive = aclnn.executor(
        "gelu_backward", np.ones((8, 1, 16), np.float16), np.ones((6, 16), np.float32),
        materialize=True, strategy="naive",
    )  # fmt: skip
    found = {
        "graph": executor.graph,
        "plan": executor.plan,
        "schedule": executor.schedule,
        "passes": executor.passes,
        "profile": executor.profile(repeat=3),
        "comparison": executor.plan.diff(naive.plan),
        "executor": executor,
    }
    return {name: one._repr_html_() for name, one in found.items()}


def test_every_view_shows_what_it_is_of(parts, executor):
    words = {name: re.sub("<[^>]*>", " ", part) for name, part in parts.items()}
    pictures = {name for name, part in parts.items() if "<svg" in part}
    assert pictures == {"graph", "plan", "passes", "profile", "executor"}
    for name in ("graph", "schedule", "passes", "profile", "executor"):
        assert "gelu_backward" in words[name], name
    for name in ("plan", "comparison", "executor"):
        assert "grad_output_broadcast" in words[name], name
    assert "median µs" in words["profile"]
    assert "moved" in words["comparison"]
    assert f"{len(executor.graph.nodes)} nodes" in words["executor"]


def test_profiles_that_were_read_have_tables_alone(executor):
    read = aclnn.Profile.from_json(executor.profile(repeat=2).to_json())
    part = read._repr_html_()
    assert "<table>" in part
    assert "<svg" not in part
    assert "nothing ran" in aclnn.Profile()._repr_html_()


def test_names_are_escaped():
    from aclnn.graph.views.notebook import sheet_html
    from aclnn.graph.views.tables import make

    made = make(["<a>"], [["<script>"]], title="x & y")
    assert "<script>" not in sheet_html((made, "<b>"))
    assert "x &amp; y" in sheet_html((made,))


# --- In a page of others -----------------------------------------------------------------------------

PAGE = """<!doctype html><html {attributes}><head><title>theirs</title><style>
body {{ margin: 3px; font: 20px serif; color: rgb(10, 20, 30); background: rgb(250, 240, 230); }}
h1 {{ font-size: 40px; }} table {{ border: 3px dotted red; }} button {{ color: green; }}
</style></head><body class="{theme}"><main>
<h1>title</h1><h2 class="s t b">small</h2><p class="n soft lit box">text <code>code</code></p>
<table class="lines"><tr><th class="arg">a</th><td class="out">1</td></tr></table>
<pre class="card">pre</pre><button class="pin theme">b</button><details open><summary>s</summary>d</details>
<svg width="40" height="40"><rect class="box c0" width="9" height="9"/><text class="t s">x</text></svg>
<form class="ways"><input type="radio" name="way" value="theirs" checked></form><figure>f</figure>
</main><div id="here"></div><footer>foot</footer></body></html>"""

STYLES = """
return [document.documentElement, document.body, ...document.querySelectorAll("main, main *, footer")]
  .map((part) => {
    const style = getComputedStyle(part);
    return part.tagName + " " + [...style].filter((name) => !name.endsWith("-size") && !name.includes("origin")
        && !["height", "block-size", "width", "inline-size"].includes(name))
      .map((name) => `${name}: ${style.getPropertyValue(name)}`).join("; ");
  });
"""
# As notebooks do: the text becomes elements, then scripts are made anew, so that they run.
EMBED = """
const place = document.createElement("div");
document.getElementById("here").append(place);
place.innerHTML = arguments[0];
for (const old of place.querySelectorAll("script")) {
  const made = document.createElement("script");
  made.textContent = old.textContent;
  old.replaceWith(made);
}
"""
SELECTORS = """
const found = [];
const visit = (rules, outer) => [...rules].forEach((rule) => {
  if (rule.selectorText && !outer) found.push(...rule.selectorText.split(/,(?![^(]*\\))/));
  if (rule.cssRules && !rule.selectorText) visit(rule.cssRules, outer);
});
[...document.styleSheets].filter((sheet) => sheet.ownerNode.closest("#here"))
  .forEach((sheet) => visit(sheet.cssRules, false));
return found.map((one) => one.trim());
"""


@pytest.fixture
def open_page(chromium, tmp_path):
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def open_page(theme="", attributes=""):
        path = tmp_path / "page.html"
        path.write_text(PAGE.format(theme=theme, attributes=attributes), encoding="utf-8")
        chromium.get(path.as_uri())
        return chromium

    yield open_page
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.fixture(scope="module")
def reports(executor):
    pytest.importorskip("jinja2")
    return [executor.to_html(), aclnn.executor("elu", np.ones(9, np.float32)).to_html()]


def find(browser, selector):
    return browser.find_elements("css selector", selector)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_of_the_page_changes(open_page, parts, reports, scheme):
    browser = open_page()
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    before = browser.execute_script(STYLES)
    for text in (*reports, reports[0], *parts.values()):
        browser.execute_script(EMBED, text)
    assert browser.execute_script(STYLES) == before
    assert browser.title == "theirs"
    assert browser.get_log("browser") == []
    (radio,) = find(browser, "[value=theirs]")
    assert radio.is_selected()
    find(browser, ".aclnn-report .theme")[0].click()
    assert browser.execute_script(STYLES) == before


def test_rules_are_for_parts_of_ours_alone(open_page, parts, reports):
    browser = open_page()
    for text in (*reports, *parts.values()):
        browser.execute_script(EMBED, text)
    selectors = browser.execute_script(SELECTORS)
    assert len(selectors) > 100
    assert [one for one in selectors if ".aclnn-" not in one] == []
    ids = browser.execute_script(
        "return [...document.querySelectorAll('[id]')].map((one) => one.id)"
    )
    assert ids == ["here"]


def test_reports_beside_each_other_keep_apart(open_page, reports):
    browser = open_page()
    for text in (reports[0], reports[0]):
        browser.execute_script(EMBED, text)
    first, second = find(browser, ".aclnn-report")

    def shown(report):
        ways = report.find_elements("css selector", ".way")
        return [one.get_attribute("data-way") for one in ways if one.is_displayed()]

    assert shown(first) == shown(second) == ["materialized"]
    first.find_element("css selector", "[value=fused]").click()
    assert shown(first) == ["fused"]
    assert shown(second) == ["materialized"]
    second.find_element("css selector", ".buffers tbody tr").click()
    assert second.find_elements("css selector", ".lit")
    assert not first.find_elements("css selector", ".lit")
    colours = [background(browser, one) for one in (first, second)]
    assert colours[0] == colours[1]
    first.find_element("css selector", ".theme").click()
    assert background(browser, first) != colours[0]
    assert background(browser, second) == colours[1]
    boxes = [fill(browser, one) for one in (first, second)]
    assert boxes[0] != boxes[1]


def background(browser, part):
    return browser.execute_script("return getComputedStyle(arguments[0]).backgroundColor", part)


def fill(browser, part):
    script = "return getComputedStyle(arguments[0].querySelector('.bg')).fill"
    return browser.execute_script(script, part)


THEMES = [
    ("", "", "light"),
    ("", 'style="color-scheme: light dark"', "{reader}"),
    ("", 'style="color-scheme: dark"', "dark"),
    ("", 'data-jp-theme-light="false"', "dark"),
    ("", 'data-jp-theme-light="true"', "light"),
    ("vscode-dark", "", "dark"),
    ("vscode-light", 'style="color-scheme: dark"', "light"),
    ("", 'data-theme="dark"', "dark"),
]


@pytest.mark.parametrize("reader", ["light", "dark"])
@pytest.mark.parametrize(("theme", "attributes", "expected"), THEMES)
def test_views_have_the_theme_of_the_page(open_page, parts, reports, theme, attributes, expected, reader):  # fmt: skip
    browser = open_page(theme, attributes)
    feature = {"name": "prefers-color-scheme", "value": reader}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    for text in (parts["plan"], reports[0]):
        browser.execute_script(EMBED, text)
    white = "rgb(255, 255, 255)"
    wanted = [expected.format(reader=reader) == "light"] * 2
    assert [fill(browser, part) == white for part in find(browser, ".aclnn-view")] == wanted


def test_tables_have_the_colours_of_the_page(open_page, parts):
    browser = open_page()
    browser.execute_script(EMBED, parts["schedule"])
    (cell, *_) = find(browser, ".aclnn-part td")
    script = "return getComputedStyle(arguments[0])[arguments[1]]"
    assert browser.execute_script(script, cell, "color") == "rgb(10, 20, 30)"
    assert browser.execute_script(script, cell, "backgroundColor") == "rgba(0, 0, 0, 0)"


# --- The notebooks among the examples ----------------------------------------------------------------

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
NOTEBOOKS = {"inspect_a_call": [], "plan_a_model": ["onnx"], "pytorch": ["torch"]}


def test_every_notebook_is_run():
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == {*NOTEBOOKS}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_run(name):
    """They are committed without outputs, which would be those of another version."""
    for package in ("nbclient", "nbformat", "ipykernel", *NOTEBOOKS[name]):
        pytest.importorskip(package)
    import nbclient
    import nbformat

    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = [
        output.data["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    ]
    assert any("<svg" in part for part in shown)
