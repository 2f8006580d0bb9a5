"""What all pictures have: SVG without scripts, light or dark as wanted.

Boxes carry `<title>` elements, which browsers show on hovering.
"""

from __future__ import annotations

from collections.abc import Sequence

from .text import xml_words

STYLE = """
.bg{fill:#fff}.t{fill:#1f2328;font:12px ui-monospace,monospace}.b{font-weight:700}
.s{fill:#59636e;font:11px ui-monospace,monospace}.box{fill:#f6f8fa;stroke:#59636e}
.arg{fill:#ddf4ff;stroke:#0969da}.out{fill:#dafbe1;stroke:#1a7f37}
.copy{fill:#fff1e5;stroke:#bc4c00}.edge{fill:none;stroke:#59636e}.head{fill:#59636e}
.loop{fill:none;stroke:#8250df;stroke-dasharray:6 4}.lt{fill:#8250df}
.grid{stroke:#d1d9e0}.peak{fill:#ffebe9}.bound{stroke:#1a7f37;stroke-dasharray:6 4}
.pt{fill:#cf222e}.bt{fill:#1a7f37}.c0{fill:#b6d7ff}.c1{fill:#c8eecf}.c2{fill:#ffe0b3}
.c3{fill:#e3d1ff}.c4{fill:#ffd0dd}.c5{fill:#c2ecec}.buf{stroke:#59636e}
.hit{fill:transparent}.again{fill:none;stroke:#0969da;stroke-width:2}.againt{fill:#0969da}
.gap{fill:#eaeef2}
@media (prefers-color-scheme:dark){
.bg{fill:#0d1117}.t{fill:#f0f6fc}.s{fill:#9198a1}.box{fill:#151b23;stroke:#9198a1}
.arg{fill:#121d2f;stroke:#4493f8}.out{fill:#12261e;stroke:#3fb950}
.copy{fill:#2e1b0e;stroke:#db6d28}.edge{stroke:#9198a1}.head{fill:#9198a1}
.loop{stroke:#ab7df8}.lt{fill:#ab7df8}.grid{stroke:#3d444d}.peak{fill:#3a1417}
.bound{stroke:#3fb950}.pt{fill:#ff7b72}.bt{fill:#3fb950}.c0{fill:#1f4f8f}.c1{fill:#1d5a2c}
.c2{fill:#6b4a12}.c3{fill:#4c3486}.c4{fill:#73304a}.c5{fill:#1c5656}.buf{stroke:#9198a1}
.again{stroke:#4493f8}.againt{fill:#4493f8}.gap{fill:#212830}}
"""
CHAR = 7.3  # width of a monospaced character at 12 px
LINE = 16
MARGIN = 24


def words_at(x: float, y: float, words: str, style: str = "t", anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} class="{style}">{xml_words(words)}</text>'


def rect(x: float, y: float, w: float, h: float, style: str, radius: float = 4) -> str:
    box = f'x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"'
    return f'<rect {box} rx="{radius:.3g}" class="{style}"/>'


def hover(title: str, content: str, *names: str, style: str = "") -> str:
    """Details on hovering."""
    of = f' class="{style}"' if style else ""
    return f"<g{mark(names)}{of}><title>{xml_words(title)}</title>{content}</g>"


def mark(names: Sequence[str]) -> str:
    """The nodes and values that something shows, for scripts to find."""
    return f' data-names="{xml_words(marked(*names))}"' if names else ""


def marked(*names: str) -> str:
    """Names with a space between them, and none that breaks within them.

    >>> marked("x", "x afterwards", "x").split(" ")
    ['x', 'x\\xa0afterwards']
    """
    return " ".join(name.replace(" ", "\u00a0") for name in dict.fromkeys(names))


def document(
    width: float, height: float, title: str, body: Sequence[str], style: str = "", rules: str = ""
) -> str:
    """A picture; `style` is its class, `rules` what its style sheet has beside that of all."""
    of = f' class="{style}"' if style else ""
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}{of} role="img">',
            f"<title>{xml_words(title)}</title>",
            f"<style>{STYLE}{rules}</style>",
            rect(0, 0, width, height, "bg", 0),
            *body,
            "</svg>",
        ]
    )
