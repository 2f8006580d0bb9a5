"""Put tables that `aclnn bench --markdown` wrote into the page about speed.

A comment before each table there names the file in `build/` and the heading that it is from; what made
the files stands in `tools/README.md`. Tables whose file is missing stay as they are.
"""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
MADE = Path(__file__).parent.parent / "build"
PLACE = re.compile(r"(<!-- (\S+\.md): (.*?) -->\n\n)((?:\|.*\n)+)")


def filled(page: str) -> str:
    """The page with every table that there is now."""
    return PLACE.sub(lambda found: found[1] + (table(found[2], found[3]) or found[4]), page)


def table(file: str, heading: str) -> str | None:
    """The table below a heading of a file that was made."""
    path = MADE / file
    if not path.exists():
        return None
    text = path.read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(heading)}\n\n((?:\|.*\n)+)", text, re.MULTILINE)
    if found is None:
        raise SystemExit(f"{path} has no table below {heading!r}")
    return found[1]


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
