"""The HTML report: one file, readable without scripts, and what its script adds in a browser."""

import os
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest

import aclnn

pytest.importorskip("jinja2")
REQUIRED = os.environ.get("ACLNN_REQUIRE_BROWSER", "0") not in ("", "0")


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
    stages = len(executor.passes) + 2
    assert len([a for a in elements.named("article") if a.get("class") == "stage"]) == stages
    assert len(elements.named("svg")) == stages + 1
    rows = {a["data-names"] for a in elements.named("tr") if "data-names" in a}
    boxes = {n for a in elements.named("g") for n in a.get("data-names", "").split()}
    for buffer in executor.plan.buffers:
        assert buffer.name in rows
        assert buffer.name in boxes
    for step in executor.passes:
        for note in step.notes:
            assert str(note) in text


def test_both_ways_are_compared(page, executor):
    text = page.read_text()
    ways = text[text.index('id="ways"') :].split("</table>")[0]
    rows = re.findall(r"<tr><td>(.*?)<td class=\"n\">(.*?)<td class=\"n\">(.*?)<td", ways)
    assert rows[0] == (
        "materialized, this executor", str(len(executor.plan.steps)),
        f"{executor.workspace_size:,}",
    )  # fmt: skip
    assert rows[1] == ("fused", "1", "0")


def test_names_are_escaped():
    from aclnn.graph.views import svg

    assert svg._hover("a < b", "", 'x"y').startswith('<g data-names="x&quot;y"><title>a &lt; b')


def test_operators_without_elements_have_a_report():
    empty = aclnn.executor("elu", np.zeros((0, 3), np.float32))
    assert "nothing to do" in empty.to_html()


# --- In a browser --------------------------------------------------------------------------------


def start():
    """A headless Chromium, or the reason why there is none."""
    driver, browser = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or browser is None:
        return None, "no chromium and chromedriver on this machine"
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ModuleNotFoundError:
        return None, "selenium is not installed"
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.add_argument("--window-size=1280,900")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver)), ""


@pytest.fixture(scope="module")
def chromium():
    browser, reason = start()
    if browser is None:
        (pytest.fail if REQUIRED else pytest.skip)(reason)
    yield browser
    browser.quit()


@pytest.fixture
def browser(chromium, page):
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    chromium.get(page.as_uri())
    return chromium


def find(browser, selector):
    return browser.find_elements("css selector", selector)


def lit(browser, selector):
    return [part.get_attribute("data-names") for part in find(browser, f"{selector}.lit")]


def hover(browser, part):
    from selenium.webdriver import ActionChains

    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", part)
    ActionChains(browser).move_to_element(part).perform()


def test_no_errors_and_no_requests(browser):
    assert browser.get_log("browser") == []
    entries = browser.execute_script("return performance.getEntriesByType('resource').length")
    assert entries == 0


def test_hovering_shows_details_and_follows_the_value(browser):
    box = find(browser, '#plan g[data-names~="self_broadcast"]')[0]
    card = find(browser, "#card")[0]
    assert not card.is_displayed()
    hover(browser, box)
    assert card.is_displayed()
    assert "made by self_broadcast, read by gelu_backward" in card.text
    assert lit(browser, "#buffers tr") == ["self_broadcast"]
    hover(browser, find(browser, "h1")[0])
    assert not card.is_displayed()
    assert lit(browser, "#buffers tr") == []


def test_clicking_pins_a_value_in_all_views(browser):
    from selenium.webdriver.common.keys import Keys

    box = find(browser, '#plan g[data-names~="self_broadcast"]')[0]
    hover(browser, box)
    box.click()
    hover(browser, find(browser, "h1")[0])
    assert lit(browser, "#buffers tr") == ["self_broadcast"]
    assert lit(browser, "#profile tr") == ["self_broadcast"]
    for part in ("#plan g", ".stage:not([hidden]) g"):
        assert any("self_broadcast" in names for names in lit(browser, part)), part
    find(browser, "body")[0].send_keys(Keys.ESCAPE)
    assert lit(browser, "tr") == []


def test_stages_one_at_a_time(browser, executor):
    from selenium.webdriver.common.keys import Keys

    def shown():
        return [part.get_attribute("id") for part in find(browser, ".stage:not([hidden])")]

    last = len(executor.passes) + 1
    assert shown() == [f"stage-{last}"]
    find(browser, "#previous")[0].click()
    assert shown() == [f"stage-{last - 1}"]
    find(browser, 'button[data-stage="0"]')[0].click()
    assert shown() == ["stage-0"]
    find(browser, "body")[0].send_keys(Keys.ARROW_LEFT)
    assert shown() == ["stage-0"]
    find(browser, "body")[0].send_keys(Keys.ARROW_RIGHT)
    assert shown() == ["stage-1"]
    find(browser, "#next")[0].click()
    assert shown() == [f"stage-{min(2, last)}"]


def test_tables_sort_by_number_both_ways(browser, executor):
    column = "#buffers tbody td:nth-child(8)"
    (head,) = find(browser, "#buffers th:nth-child(8)")
    sizes = sorted(buffer.nbytes for buffer in executor.plan.buffers)
    for expected in (sizes, sizes[::-1]):
        browser.execute_script("arguments[0].click()", head)
        assert [int(cell.text.replace(",", "")) for cell in find(browser, column)] == expected


def background(browser):
    return browser.execute_script("return getComputedStyle(document.body).backgroundColor")


def box_colour(browser):
    script = "return getComputedStyle(document.querySelector('#plan svg .bg')).fill"
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
    find(browser, "#theme")[0].click()
    assert (background(browser), box_colour(browser)) == dark
    find(browser, "#theme")[0].click()
    assert (background(browser), box_colour(browser)) == light


def test_without_scripts_everything_is_there_to_read(browser, page, executor):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(page.as_uri())
    assert all(part.is_displayed() for part in find(browser, ".stage"))
    assert len(find(browser, ".stage")) == len(executor.passes) + 2
    assert find(browser, "#plan svg")[0].is_displayed()
    assert len(find(browser, "#buffers tbody tr")) == len(executor.plan.buffers)
    assert not find(browser, "#theme")[0].is_displayed()
