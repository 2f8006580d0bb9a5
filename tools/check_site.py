"""Whether every link inside a built site leads to a page, a file or an anchor that exists.

Sphinx checks what it resolves itself; this reads the pages as a browser would. Links to other sites are
left to `make linkcheck`, which needs a network.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links |= {given[name] or "" for name in ("href", "src") if name in given}
        self.anchors |= {given[name] or "" for name in ("id", "name") if name in given}


def broken(folder: Path) -> Iterator[str]:
    """Links that lead nowhere, as `page: link`."""
    pages = {path.resolve(): Page(path) for path in folder.rglob("*.html")}
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            found = target.exists() and (
                not anchor or target not in pages or anchor in pages[target].anchors
            )
            if not found:
                yield f"{path.relative_to(folder.resolve())}: {link}"


def main(folder: str) -> None:
    """Print broken links and the number of pages; end with status 1 if there are any."""
    found = list(broken(Path(folder)))
    print("\n".join(found), end="\n" if found else "")
    print(f"{len(list(Path(folder).rglob('*.html')))} pages, {len(found)} broken links")
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main(sys.argv[1])
