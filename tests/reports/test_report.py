"""The HTML report: one file, readable without scripts, and what its script adds in a browser."""

import re
import time
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from aclnn.graph.passes import pipeline as passes
from aclnn.graph.views.heat import Heat
from setups import tensor

import aclnn
from aclnn.reports import report
from aclnn.reports.config import config
from aclnn.reports.lines import lines_of

pytest.importorskip("jinja2")


@pytest.fixture(scope="module")
def executor():
    """A materialized chain with several buffers."""
    g = np.ones((128, 8), np.float16).T.reshape(8, 1, 128)
    x = np.ones((16, 128), np.float32)[::2]
    out = np.zeros((128, 8, 8), np.float32).transpose(1, 2, 0)
    return aclnn.executor("gelu_backward", g, x, out=out, materialize=True)


@pytest.fixture(scope="module")
def page(executor, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(executor.to_html(), encoding="utf-8")
    return path


class Elements(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))

    def named(self, tag):
        return [attributes for name, attributes in self.seen if name == tag]


# --- The file ------------------------------------------------------------------------------------


def test_nothing_comes_from_outside(page):
    text = page.read_text()
    elements = Elements(text)
    outside = [a for _, a in elements.seen if {"src", "href", "srcset", "data"} & set(a)]
    assert outside == []
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "@import" not in text
    assert "url(" not in text
    assert not elements.named("link")


def test_every_view_is_in_the_file(page, executor):
    text = page.read_text()
    elements = Elements(text)
    details = [a for a in elements.named("details") if a.get("class") == "stage"]
    stages = len(executor.passes) + 2
    assert len([a for a in details if a["data-place"].startswith("materialized-")]) == stages
    # A picture of every stage of both ways, once where several are the same, and of both plans;
    # then the graph whose groups open, and its map.
    same = [a for a in elements.named("figure") if "data-same" in a]
    assert len(elements.named("svg")) == len(details) - len(same) + 4
    called = {a["data-called"] for a in elements.named("figure") if "data-called" in a}
    assert {a["data-same"] for a in same} <= called
    assert len(called) + len(same) == len(details)
    rows = {a["data-names"] for a in elements.named("tr") if "data-names" in a}
    boxes = {n for a in elements.named("g") for n in a.get("data-names", "").split()}
    for buffer in executor.plan.buffers:
        assert buffer.name in rows
        assert buffer.name in boxes
    for node in executor.graph_as_built.nodes:
        assert node.name in boxes
    for step in executor.passes:
        for note in step.notes:
            assert note.why in text


def test_what_lives_at_the_peak_is_a_table(page, executor):
    table = page.read_text().split('<table class="peak">')[1].split("</table>")[0]
    cells = [re.findall(r"<td[^>]*>([^<]*)", row) for row in table.split("<tr>")[2:]]
    live = executor.plan.must_shrink
    assert [row[0] for row in cells] == [buffer.name for buffer in live]
    assert [int(re.sub(r"\D", "", row[4])) for row in cells] == [buffer.padded for buffer in live]


def test_both_ways_are_compared(page, executor):
    cards = page.read_text().split('class="way-card"')[1:]
    assert len(cards) == 2
    for card, size in zip(cards, (executor.workspace_size, 0), strict=True):
        workspace = card[card.index("workspace") :].split("</span></span>")[0]
        assert f'title="{size:,} bytes"' in workspace
    assert "materialized" in cards[0]
    assert "this executor" in cards[0]
    assert "fused" in cards[1]
    assert "width: 0.0%" in cards[1]


@pytest.mark.parametrize("strategy", ["default", "bucket", "naive"])
@pytest.mark.parametrize("materialize", [False, True])
def test_the_other_way_is_what_an_executor_would_be(strategy, materialize):
    g, x = np.ones((8, 16), np.float16).T, np.ones((16, 8), np.float32)

    def planned(materialize):
        return aclnn.executor("gelu_backward", g, x, strategy=strategy, materialize=materialize)

    own, other = report.both_ways(planned(materialize))
    twin = planned(not materialize)
    assert (own.name == "materialized") == materialize == (other.name == "fused")
    assert other.plan == twin.plan
    assert other.graph == twin.graph
    assert other.schedule == twin.schedule
    assert [stage.graph for stage in other.stages[1:-1]] == [step.graph for step in twin.passes]
    assert other.traffic == sum(s.bytes_read + s.bytes_written for s in twin.schedule.steps)


def test_views_are_followed_to_what_they_are_views_of():
    g, x = np.ones((8, 1), np.float16), np.ones((8, 4), np.float32)
    fused, _ = report.both_ways(aclnn.executor("gelu_backward", g, x))
    names = {fused.names(o.name) for step in fused.schedule.steps for o in step.operands}
    assert "grad_output_load grad_output" in names
    assert "out" in names


def test_every_stage_says_what_it_is_for(executor):
    words = {stage.name: stage.words for way in report.both_ways(executor) for stage in way.stages}
    for name in ("elide", "fold_strides", "fold_casts", "fuse", "in_place"):
        assert words[name].endswith(".")
        assert words[name].split() == getattr(passes, name).__doc__.split("\n\n")[0].split()
    with pytest.raises(AttributeError):
        report._purpose("no such pass")


def test_a_call_with_nothing_to_do_says_so_where_its_steps_would_be():
    page = aclnn.executor("leaky_relu", np.zeros((0, 3), np.float32)).to_html()
    for way in page.split("Schedule</h2>")[1:]:
        assert way.strip().startswith('<p class="soft">nothing to do</p>')
    assert page.count("Schedule</h2>") == 2


# --- What a report must not do --------------------------------------------------------------------


def test_reports_leave_inputs_as_they_are():
    x = np.linspace(-3, 3, 7, dtype=np.float32)
    before = x.copy()
    page = aclnn.executor("leaky_relu", x, negative_slope=0.5, out=x).to_html()
    assert np.array_equal(x, before)
    assert "An input shares memory with the output" in page
    memory = before.copy()
    page = aclnn.executor("elu", memory[:-1], out=memory[1:]).to_html()
    assert np.array_equal(memory, before)
    assert "An input shares memory with the output" in page


def test_reports_are_of_what_is_bound_when_they_are_made():
    memory = np.linspace(-3, 3, 7, dtype=np.float32)
    before = memory.copy()
    executor = aclnn.executor("elu", np.ones(6, np.float32))
    executor.rebind({"self": memory[:-1], "out": memory[1:]})
    page = executor.to_html()
    assert np.array_equal(memory, before)
    assert "An input shares memory with the output" in page


def test_reports_do_not_spend_executors():
    x, out = np.full(3, -1, np.float32), np.zeros(3, np.float32)
    slope = aclnn.aclCreateScalar(0.5, aclnn.ACL_FLOAT)
    size, executor, _ = aclnn.aclnnLeakyReluGetWorkspaceSize(tensor(x), slope, tensor(out))
    assert "The executor is for one run" in executor.to_html()
    assert not out.any()
    assert aclnn.aclnnLeakyRelu(None, size, executor, None) == aclnn.ACLNN_SUCCESS
    assert out.tolist() == [-0.5] * 3


def test_executors_that_cannot_run_have_a_report():
    executor = aclnn.executor("elu", np.ones(3, np.float32))
    executor.destroy()
    page = executor.to_html()
    assert "It cannot run" in page
    assert "executor is destroyed" in page
    assert 'class="profile' not in page


def test_names_are_escaped():
    from aclnn.graph.views import svg

    assert svg.hover("a < b", "", 'x"y').startswith('<g data-names="x&quot;y"><title>a &lt; b')


def test_edges_know_what_they_carry():
    g, x = np.ones((8, 1), np.float16), np.ones((8, 4), np.float32)
    picture = aclnn.executor("gelu_backward", g, x).graph.to_svg()
    edges = re.findall(r'<g data-names="([^"]*)"><path class="edge"', picture)
    assert sorted(edges) == ["grad_output grad_output_load", "out", "self"]


@pytest.mark.parametrize(("steps", "rows"), [(8, 8), (9, 1), (30, 3)])
def test_many_steps_stand_in_columns(steps, rows):
    from aclnn.graph import Lifetime, plan_lifetimes

    names = [f"s{step}" for step in range(steps)]
    plan = plan_lifetimes([Lifetime("a", 0, steps, 64)], steps=names)
    lines = re.findall(r'class="s">(\d+: s\d+.*?)</text>', plan.to_svg())
    assert len(lines) == rows
    assert sorted(re.findall(r"\bs\d+", " ".join(lines))) == sorted(names)
    assert lines[0].split()[1] == "s0"


def test_thin_boxes_have_names_where_there_is_room():
    from aclnn.graph import Lifetime, plan_lifetimes

    def labels(*lives):
        plan = plan_lifetimes([Lifetime(*life) for life in lives])
        return re.findall(r'class="[st]">(thin|thick|other)<', plan.to_svg())

    assert labels(("thick", 0, 1, 1 << 20), ("thin", 1, 2, 64)) == ["thick", "thin"]
    # Another thin one right above it leaves no room.
    crowded = labels(("thick", 0, 1, 1 << 20), ("thin", 1, 2, 64), ("other", 1, 2, 64))
    assert len(crowded) == 2
    assert plan_lifetimes([Lifetime("thick", 0, 1, 64)]).to_svg().count('class="hit"') == 0


# --- In a browser --------------------------------------------------------------------------------


@pytest.fixture
def browser(chromium, page):
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    chromium.get(page.as_uri())
    return chromium


def find(browser, selector):
    return browser.find_elements("css selector", selector)


def wait(browser, condition):
    """Until something is so, which a script does as soon as it can."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 10).until(lambda _: condition())


def one(browser, selector):
    """The one thing that the script leaves to see of what both ways have, once it is laid out."""

    def shown():
        return [part for part in find(browser, selector) if part.is_displayed()]

    wait(browser, lambda: len(shown()) == 1)
    return shown()[0]


def lit(browser, selector):
    return [part.get_attribute("data-names") for part in find(browser, f"{selector}.lit")]


def hover(browser, part, click=False):
    from selenium.webdriver import ActionChains

    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", part)
    mouse = ActionChains(browser).move_to_element(part)
    (mouse.click() if click else mouse).perform()


def test_no_errors_and_no_requests(browser):
    assert browser.get_log("browser") == []
    entries = browser.execute_script("return performance.getEntriesByType('resource').length")
    assert entries == 0


SHOWN = '[data-way="materialized"]'
BOX = f'{SHOWN} .plan g[data-names~="self_broadcast"]'


def test_hovering_shows_details_and_follows_the_value(browser):
    card = one_hidden(browser, ".card")
    hover(browser, one(browser, BOX))
    assert card.is_displayed()
    title, size, space, made, shared, *told = card.text.splitlines()
    assert title == "self_broadcast: float32[8,8,128]"
    assert "32,768 bytes, 0 of padding" in size
    assert re.fullmatch(r"\[\d+, \d+\) of the workspace in steps \d+ to \d+", space)
    assert made == "made by self_broadcast, read by gelu_backward"
    assert shared.startswith("shares space with ")
    assert [line.split()[0] for line in told] == ["time", "bytes"]
    assert lit(browser, f"{SHOWN} .buffers tr") == ["self_broadcast"]
    assert lit(browser, f"{SHOWN} .stage:not([hidden]) g[data-details]") == ["self_broadcast"]
    hover(browser, one(browser, "h1"))
    assert not card.is_displayed()
    assert lit(browser, f"{SHOWN} .buffers tr") == []


def one_hidden(browser, selector):
    (part,) = find(browser, selector)
    assert not part.is_displayed()
    return part


VIEWS = (".plan g", ".stage:not([hidden]) g[data-details]", ".buffers tr", ".step tr")


@pytest.mark.parametrize("view", VIEWS)
def test_clicking_in_any_view_pins_the_value_in_all(browser, view):
    from selenium.webdriver.common.keys import Keys

    part = one(browser, f'{SHOWN} .step h3[data-names="self_broadcast"] ~ .wide tbody tr:last-child'
               if view == ".step tr" else f'{SHOWN} {view}[data-names~="self_broadcast"]')  # fmt: skip
    hover(browser, part, click=True)
    hover(browser, one(browser, "h1"))
    for other in VIEWS:
        assert "self_broadcast" in lit(browser, f"{SHOWN} {other}"), other
    assert lit(browser, ".profile tr") == ["self_broadcast"]
    assert len(lit(browser, f"{SHOWN} .stage:not([hidden]) g:not([data-details])")) == 1  # an edge
    assert one(browser, ".pin").text.startswith("self_broadcast")
    find(browser, "body")[0].send_keys(Keys.ESCAPE)
    assert lit(browser, "tr") == []
    one_hidden(browser, ".pin")


def test_a_pinned_value_is_let_go_by_clicking_again(browser):
    for expected in (["self_broadcast"], []):
        hover(browser, one(browser, BOX), click=True)
        hover(browser, one(browser, "h1"))
        assert lit(browser, ".profile tr") == expected


def test_stages_that_hold_the_pinned_value_are_marked(browser):
    find(browser, "[value=fused]")[0].click()
    find(browser, '[data-way=fused] [data-stage="0"]')[0].click()
    one(browser, '[data-way=fused] .stage g[data-names~="grad_output_cast"][data-details]').click()
    marked = [tab.text.split()[-1] for tab in find(browser, "[data-way=fused] .tabs .holds")]
    assert marked == ["built", "tidy", "elide", "fold_strides"]


def test_the_keyboard_reaches_boxes(browser):
    from selenium.webdriver.common.keys import Keys

    box = one(browser, BOX)
    find(browser, "body")[0].send_keys(Keys.TAB)
    browser.execute_script("arguments[0].focus()", box)
    assert one(browser, ".card").text.startswith("self_broadcast:")
    box.send_keys(Keys.ENTER)
    assert lit(browser, ".profile tr") == ["self_broadcast"]


def test_stages_one_at_a_time(browser, executor):
    from selenium.webdriver.common.keys import Keys

    def shown():
        return [p.get_attribute("data-place") for p in find(browser, ".stage") if p.is_displayed()]

    def press(selector):
        one(browser, selector).click()

    last = len(executor.passes) + 1
    assert shown() == [f"materialized-{last}"]
    press(f'{SHOWN} [data-go="-1"]')
    assert shown() == [f"materialized-{last - 1}"]
    press(f'{SHOWN} [data-stage="0"]')
    assert shown() == ["materialized-0"]
    assert not one(browser, f'{SHOWN} [data-go="-1"]').is_enabled()
    find(browser, "body")[0].send_keys(Keys.ARROW_LEFT)
    assert shown() == ["materialized-0"]
    find(browser, "body")[0].send_keys(Keys.ARROW_RIGHT)
    assert shown() == ["materialized-1"]
    for note in executor.passes[0].notes:
        assert note.why in one(browser, '[data-place="materialized-1"]').text
    press(f'{SHOWN} [data-go="1"]')
    assert shown() == ["materialized-2"]


def test_both_ways_in_one_place(browser, executor):
    def shown():
        return [p.get_attribute("data-way") for p in find(browser, ".way") if p.is_displayed()]

    assert shown() == ["materialized"]
    assert not any(part.is_displayed() for part in find(browser, ".way summary"))  # tabs do it
    find(browser, "[value=fused]")[0].click()
    assert shown() == ["fused"]
    assert "nothing needs space" in one(browser, "[data-way=fused] .plan").text
    assert one(browser, "[data-way=fused] .stage").get_attribute("data-place") == "fused-7"
    find(browser, "[value=materialized]")[0].click()
    assert shown() == ["materialized"]


def test_tables_sort_by_number_both_ways(browser, executor):
    column = f"{SHOWN} .buffers tbody td:nth-child(8)"
    head = one(browser, f"{SHOWN} .buffers th:nth-child(8)")
    sizes = sorted(buffer.nbytes for buffer in executor.plan.buffers)
    for expected, order in ((sizes, "ascending"), (sizes[::-1], "descending")):
        hover(browser, head, click=True)
        assert [int(cell.text.replace(",", "")) for cell in find(browser, column)] == expected
        assert head.get_attribute("aria-sort") == order


def test_nothing_sticks_out_of_the_page(browser):
    script = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    for width in (1280, 500):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        assert browser.execute_script(script) == 0
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def background(browser):
    return browser.execute_script(
        "return getComputedStyle(document.querySelector('.aclnn-report')).backgroundColor"
    )


def box_colour(browser):
    script = "return getComputedStyle(document.querySelector('.plan svg .bg')).fill"
    return browser.execute_script(script)


def test_dark_for_those_who_prefer_it_and_by_the_button(browser):
    def prefer(scheme):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    prefer("light")
    light = background(browser), box_colour(browser)
    prefer("dark")
    dark = background(browser), box_colour(browser)
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    prefer("light")
    browser.refresh()
    find(browser, ".theme")[0].click()
    assert (background(browser), box_colour(browser)) == dark
    find(browser, ".theme")[0].click()
    assert (background(browser), box_colour(browser)) == light


def test_without_scripts_everything_is_there_to_read(browser, page, executor):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(page.as_uri())
    pictures = find(browser, f"{SHOWN} .stage svg")
    same = find(browser, f"{SHOWN} .stage [data-same]")
    assert all(part.text.startswith("The picture of ") for part in same)
    assert len(pictures) == len(executor.passes) + 2 - len(same) > 0
    assert all(picture.is_displayed() for picture in pictures)
    assert one(browser, ".plan svg")
    titles = find(browser, f"{SHOWN} .plan g > title")
    assert any(t.get_attribute("textContent").startswith("self_broadcast: ") for t in titles)
    rows = find(browser, f"{SHOWN} .buffers tbody tr")
    assert len(rows) == len(executor.plan.buffers)
    assert all(row.is_displayed() for row in rows)
    assert one(browser, "[data-way=fused] > summary")
    assert not any(part.is_displayed() for part in find(browser, "button, input"))


# --- A model of several hundred nodes --------------------------------------------------------------


def block(x, up, down):
    h = aclnn.layer_norm(x, (16,))
    h = aclnn.gelu(h @ up) * 0.5
    return x + aclnn.tanh(h @ down)


@aclnn.compile
def network(x, blocks):
    for up, down in blocks:
        x = block(x, up, down)
    return aclnn.softmax(x, -1)


@pytest.fixture(scope="module")
def large():
    weights = np.linspace(-1, 1, 16 * 32, dtype=np.float32)
    blocks = tuple((weights.reshape(16, 32) / n, weights.reshape(32, 16) / n) for n in range(4, 54))
    return network.executor(np.ones((8, 16), np.float32), blocks)


@pytest.fixture(scope="module")
def large_page(large, tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "report.html"
    path.write_text(large.to_html(), encoding="utf-8")
    return path


def test_reports_of_large_models_are_small_and_made_fast(large):
    assert len(large.graph.nodes) > 150
    begin = time.process_time()
    text = large.to_html()
    assert time.process_time() - begin < 10
    assert len(text.encode()) < 1_000_000
    folded = [
        picture
        for picture in re.findall("<svg.*?</svg>", text, re.DOTALL)
        if "times the same" in picture
    ]
    assert len(folded) + text.count(' data-same="') >= len(large.passes) + 2
    assert max(map(len, folded)) < 100_000
    assert max(picture.count("<rect") for picture in folded) < 100
    assert text.count('class="whole scripted"') == 1  # the plan of this executor
    assert text.count('<section class="step"') < 60
    assert '<span class="tag">× 50</span>' in text


def test_times_of_what_repeats_are_added_up(large):
    (one,) = large.profile(repeat=3).executors
    mine, _ = report.both_ways(large)
    rows = mine.folded_times(one)
    assert len(rows) < len(one.steps) / 10
    assert sum(len(row.steps) for row in rows) == len(one.steps)
    assert sum(row.median for row in rows) == pytest.approx(sum(s.median for s in one.steps))
    assert sum(row.share for row in rows) + one.between_share == pytest.approx(one.share)
    assert sum(row.nbytes for row in rows) == one.bytes_read + one.bytes_written
    steps = mine.folded_steps()
    assert sum(count for _, _, count in steps) == len(mine.schedule.steps)


def test_reports_say_what_made_them(large, executor):
    text = unescape(large.to_html())
    line = network.__wrapped__.__code__.co_firstlineno
    assert f"Compiled from {__file__}:{line}." in text
    assert "network(x float32[8, 16], blocks_0_0 float32[16, 32]" in text
    known = config()
    for name, version in known["versions"].items():
        assert f"{name} {version}" in text
    assert f"instruction set {known['isa']['name']}" in text
    assert re.search(r"threads (1|up to \d+), SoC Ascend", text)
    assert (
        "gelu_backward(grad_output float16[8, 1, 128], self float32[8, 128]" in executor.to_html()
    )


def test_what_lines_cost_is_in_a_table(large):
    graph = large.graph
    first = block.__code__.co_firstlineno
    time = Heat("time", {node.name: 10.0 for node in graph.nodes}, str)
    outer, *inner, last = lines_of(graph, time)
    assert outer.words.endswith("x = block(x, up, down)")
    assert (outer.depth, last.depth, {line.depth for line in inner}) == (0, 0, {1})
    assert [int(line.words.split(":")[1]) for line in inner] == [first + 1, first + 2, first + 3]
    assert sorted(name for line in inner for name in line.nodes) == sorted(outer.nodes)
    assert outer.share + last.share == pytest.approx(1)
    assert outer.nanoseconds == pytest.approx(10 * len(outer.nodes))
    assert inner[1].kernels == "matmul x50, gelu x50, muls x50"
    assert sum(line.nbytes for line in inner) == outer.nbytes
    by_bytes = lines_of(graph, None)
    assert [line.nanoseconds for line in by_bytes] == [None] * 5
    assert by_bytes[0].share > by_bytes[-1].share
    assert lines_of(aclnn.executor("relu", np.ones(3, np.float32)).graph, None) == []


@pytest.fixture
def wide_browser(chromium, large_page):
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    chromium.get(large_page.as_uri())
    yield chromium
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


CUT = """
const cut = [];
const visit = (part) => {
  if (!part.getClientRects().length) return;
  const [box, x] = [part.getBoundingClientRect(), getComputedStyle(part).overflowX];
  const scrolls = ["auto", "scroll"].includes(x);
  const hides = x !== "visible" && !scrolls && part.scrollWidth > part.clientWidth;
  if (box.left < -0.5 || box.right > document.documentElement.clientWidth + 0.5 || hides)
    cut.push(part.outerHTML.slice(0, 80));
  if (!scrolls) [...part.children].forEach(visit);
};
[...document.body.children].forEach(visit);
return cut;
"""


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("which", ["page", "large_page"])
def test_nothing_is_cut_on_a_phone(chromium, request, which, scripts):
    """What is wider lies in something that scrolls by itself."""
    size = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
    chromium.get(request.getfixturevalue(which).as_uri())
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    script = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert chromium.execute_script(script) == 0
    assert chromium.execute_script(CUT) == []
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_pictures_fit_and_zoom(wide_browser):
    def width():
        return one(wide_browser, "[data-way=fused] .stage:not([hidden]) > .pair svg").size["width"]

    figure = one(wide_browser, "[data-way=fused] .stage:not([hidden]) > .pair .drawn")
    plus, fit, real = (part for part in figure.find_elements("css selector", ".zoom button") if part.text in ("+", "fit", "1:1"))  # fmt: skip
    real.click()
    natural = width()
    plus.click()
    assert width() == pytest.approx(1.25 * natural, abs=2)
    fit.click()
    assert width() <= figure.size["width"] + 1


def test_boxes_take_the_colour_of_what_is_chosen(wide_browser):
    def fills():
        script = "return [...document.querySelectorAll('[data-way=fused] .stage:not([hidden]) > .pair g.hot > rect')].map((r) => getComputedStyle(r).fill)"
        return wide_browser.execute_script(script)

    def words():
        picture = one(wide_browser, "[data-way=fused] .stage:not([hidden]) > .pair svg")
        return {part.text.split()[0].rstrip(",") for part in picture.find_elements("css selector", "[class*=only-]") if part.is_displayed() and part.text}  # fmt: skip

    def fill(kind):
        script = "const r = document.createElementNS('http://www.w3.org/2000/svg', 'rect'); r.setAttribute('class', 'box ' + arguments[0]); document.querySelector('.stage:not([hidden]) svg').append(r); const f = getComputedStyle(r).fill; r.remove(); return f"
        return wide_browser.execute_script(script, kind)

    by_time = fills()
    assert len({*by_time}) > 1
    assert words() == {"time"}
    find(wide_browser, '[data-heat="bytes"]')[0].click()
    assert words() == {"bytes"}
    assert fills() != by_time
    find(wide_browser, '[data-heat=""]')[0].click()
    assert {*fills()} <= {fill(kind) for kind in ("point", "row", "opaque", "move")}
    assert len({*fills()}) > 1
    assert words() == set()


def test_what_is_drawn_once_unfolds(wide_browser):
    whole = one(wide_browser, "[data-way=fused] .whole")
    assert not whole.find_elements("css selector", "svg")
    whole.find_element("css selector", "summary").click()
    wait(wide_browser, lambda: whole.find_elements("css selector", "svg"))
    picture = whole.find_element("css selector", "svg")
    assert picture.is_displayed()
    assert len(picture.find_elements("css selector", "g[data-details]")) > 100


# --- The graph whose groups open and close --------------------------------------------------------


@pytest.fixture
def explored(wide_browser):
    """The graph as it is shown first."""
    wait(wide_browser, lambda: find(wide_browser, ".explorer .scroll g[data-names]"))
    do(wide_browser, "some")
    return wide_browser


def do(browser, what):
    find(browser, f".explorer [data-do={what}]")[0].click()


def drawn(browser):
    """The titles of what is drawn: of boxes, closed groups and open groups."""
    script = "return [...document.querySelectorAll('.explorer .scroll ' + arguments[0])].map((g) => g.querySelector('text').textContent)"
    return [
        browser.execute_script(script, query)
        for query in ("g[data-details]:not([data-group])", "g[data-details][data-group]", "g.toggle")
    ]  # fmt: skip


def top(part):
    """Where something is on the screen."""
    return part.parent.execute_script("return arguments[0].getBoundingClientRect().top", part)


def test_groups_open_and_close_in_place(explored):
    boxes, closed, opened = drawn(explored)
    assert closed
    assert len(boxes) + len(closed) < 60
    do(explored, "none")
    boxes, closed, opened = drawn(explored)
    assert not opened
    assert sum(words.startswith("⊞ repeat ") for words in closed) >= 49
    group = find(explored, ".explorer .scroll g[data-details][data-group]")[3]
    explored.execute_script("arguments[0].scrollIntoView({block: 'center'})", group)
    before = top(group)
    explored.execute_script(
        "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", group
    )
    opened = drawn(explored)[2]
    assert len(opened) == 1
    assert opened[0].removeprefix("⊟ ") == closed[3].removeprefix("⊞ ")
    title = find(explored, ".explorer .scroll g.toggle")[0]
    assert abs(top(title) - before) < 40  # it opens where it was
    explored.execute_script(
        "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", title
    )
    assert drawn(explored)[2] == []
    assert drawn(explored)[1] == closed


def test_every_node_is_in_the_open_graph(explored, large):
    do(explored, "all")
    parts = find(explored, ".explorer .scroll g[data-details]")
    names = {name for part in parts for name in part.get_attribute("data-names").split()}
    assert {node.name for node in large.graph.nodes} <= names
    assert not find(explored, ".explorer .scroll g[data-details][data-group]")
    do(explored, "some")


def test_sections_and_steps_have_links(wide_browser, large_page):
    buttons = [part.text for part in find(wide_browser, ".sections button")]
    assert buttons == [
        "fused or materialized", "lines", "graph", "workspace plan", "schedule", "profile",
    ]  # fmt: skip
    links = find(wide_browser, "[data-way=fused] .step a.anchor")
    assert len(links) > 3
    href = links[3].get_attribute("href")
    assert href.startswith(large_page.as_uri() + "#fused-step-")
    wide_browser.get(href)
    step = find(wide_browser, f"#{href.partition('#')[2]}")[0]
    wait(wide_browser, lambda: abs(top(step)) < 900)
    assert step.is_displayed()
    step = find(wide_browser, "[data-way=materialized] .step")[3]
    assert not step.is_displayed()
    wide_browser.get(f"{large_page.as_uri()}#{step.get_attribute('id')}")
    wait(wide_browser, lambda: step.is_displayed() and abs(top(step)) < 900)
    find(wide_browser, "[value=fused]")[0].click()


def test_search_leads_into_closed_groups(explored):
    from selenium.webdriver.common.keys import Keys

    do(explored, "none")
    box = find(explored, ".explorer input")[0]
    box.send_keys("layer_norm_17")
    assert "found" in find(explored, ".explorer .hits")[0].text
    box.send_keys(Keys.ENTER)
    (found,) = find(explored, ".explorer .scroll .found")
    assert "layer_norm_17" in found.get_attribute("data-names").split()
    frame = find(explored, ".explorer .scroll")[0].rect
    assert frame["y"] <= found.rect["y"] <= frame["y"] + frame["height"]
    box.clear()
    box.send_keys("no such node")
    assert find(explored, ".explorer .hits")[0].text == "nothing found"
    box.clear()


def test_contents_and_map_lead_to_groups(explored):
    do(explored, "none")
    do(explored, "one")
    entries = find(explored, ".explorer .contents li button")
    wanted = next(entry for entry in entries if entry.text.startswith("repeat 40 of"))
    explored.execute_script("arguments[0].click()", wanted)
    (found,) = find(explored, ".explorer .scroll .found")
    assert "repeat 40 of" in found.text
    there = explored.execute_script("return document.querySelector('.explorer .scroll').scrollTop")
    assert there > 1000
    seen = find(explored, ".explorer .map > rect:not(.small)")[0]
    assert float(seen.get_attribute("y")) == pytest.approx(there, abs=1)
    explored.execute_script(
        "const m = document.querySelector('.explorer .map'), b = m.getBoundingClientRect();"
        "m.dispatchEvent(new PointerEvent('pointerdown', {clientX: b.x + b.width / 2, clientY: b.y + 1}))"
    )
    assert explored.execute_script("return document.querySelector('.explorer .scroll').scrollTop") < 500  # fmt: skip


def test_a_line_follows_its_nodes(wide_browser, large):
    row = find(wide_browser, ".lines tbody tr")[1]
    hover(wide_browser, row, click=True)
    nodes = {*row.get_attribute("data-names").split()}
    assert "layer_norm" in nodes
    found = lit(wide_browser, "[data-way=fused] .stage:not([hidden]) > .pair g")
    assert any("layer_norm" in names.split() for names in found)
    assert not any(names.split()[0].startswith("matmul") for names in found)
