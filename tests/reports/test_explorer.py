"""The report's graph whose groups open and close: it tells the truth in every state."""

import json
import random
from pathlib import Path

import browsers
import cases
import pytest
from aclnn.graph.views.explorer import explorer_data
from pictures import Picture, assert_true, inside, random_graph

import aclnn

FOLDER = Path(aclnn.__file__).parent / "reports"
DRAW = """
const [data, closed] = JSON.parse(arguments[0]);
const view = explorer(data);
return closed.map((some) => {
  view.open.clear();
  view.groups.forEach((_, group) => { if (!some.includes(group)) view.open.add(group); });
  return `<svg xmlns="http://www.w3.org/2000/svg">${view.draw().inner}</svg>`;
});
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    found, reason = browsers.start()
    if found is None:
        assert not browsers.REQUIRED, reason
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("explorer")
    scripts = [FOLDER / "vendored" / "dagre.min.js", FOLDER / "templates" / "explorer.js"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in scripts)
    text = text.replace("const explorer", "globalThis.explorer", 1)
    (folder / "page.html").write_text(f"<meta charset=utf-8><script>{text}</script>", "utf-8")
    found.get((folder / "page.html").as_uri())
    yield found
    found.quit()


def drawn(page, data, closed):
    """A picture for each list of groups that are closed."""
    return [Picture(text) for text in page.execute_script(DRAW, json.dumps([data, closed]))]


@pytest.mark.parametrize("part", range(5))
def test_random_graphs_are_drawn_as_they_are(page, part):
    for seed in cases.some(range(30 * part, 30 * part + 30), 12, part):
        graph, draw = random_graph(seed), random.Random(seed)
        data = explorer_data(graph)
        groups = range(len(data["groups"]))
        some = [group for group in groups if draw.random() < 0.4]
        opened, closed = drawn(page, data, [[], some])
        for picture in (opened, closed):
            assert_true(picture)
        assert len(opened.frames) == len(groups)
        held = {}
        for place, box in enumerate(data["boxes"]):
            around = box["g"]
            while around >= 0:
                held.setdefault(around, set()).add(place)
                around = data["groups"][around]["p"]
        boxes = [
            opened.boxes[tuple(name.replace(" ", "\u00a0") for name in box["n"])]
            for box in data["boxes"]
        ]
        found = [
            {place for place, box in enumerate(boxes) if inside(box, frame)}
            for frame in opened.frames
        ]  # fmt: skip
        assert sorted(map(sorted, found)) == sorted(map(sorted, held.values()))
        # Of what is closed, everything is in one box, and edges lead to that.
        names = {name for box in data["boxes"] for name in box["n"]}
        assert {name for box in closed.boxes for name in box} == names
        hidden = {g for g in groups if any(up in some for up in _around(data, g))}
        assert len(closed.frames) == len(groups) - len({*some} | hidden)


def _around(data, group):
    """The groups around one."""
    while (group := data["groups"][group]["p"]) >= 0:
        yield group
