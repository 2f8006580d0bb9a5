"""Shared parts of all pictures: SVG without scripts, light or dark as the reader or the page wants.

Boxes carry `<title>` elements, which browsers show on hovering. A picture may become part of a page:
its rules are for pictures of this class only. There it has the page's colour scheme; as a file, the
reader's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .text import xml_words

# Colours are for light pages, then for dark ones.
_RULES = """
.bg{fill:#fff|#0d1117}.t{fill:#1f2328|#f0f6fc;font:12px ui-monospace,monospace}.b{font-weight:700}
.s{fill:#59636e|#9198a1;font:11px ui-monospace,monospace}
.box{fill:#f6f8fa|#151b23;stroke:#59636e|#9198a1}
.point{fill:#eef6ff|#13233a}.row{fill:#f3effc|#221a38}.opaque{fill:#fff4e0|#33270f}.move{fill:#f6f8fa|#1b2028}
.arg{fill:#ddf4ff|#121d2f;stroke:#0969da|#4493f8}
.out{fill:#dafbe1|#12261e;stroke:#1a7f37|#3fb950}.copy{fill:#fff1e5|#2e1b0e;stroke:#bc4c00|#db6d28}
.edge{fill:none;stroke:#59636e|#9198a1}.head{fill:#59636e|#9198a1}
.loop{fill:none;stroke:#8250df|#ab7df8;stroke-dasharray:6 4}.lt{fill:#8250df|#ab7df8}
.grid{stroke:#d1d9e0|#3d444d}.peak{fill:#ffebe9|#3a1417}
.bound{stroke:#1a7f37|#3fb950;stroke-dasharray:6 4}.pt{fill:#cf222e|#ff7b72}.bt{fill:#1a7f37|#3fb950}
.c0{fill:#b6d7ff|#1f4f8f}.c1{fill:#c8eecf|#1d5a2c}.c2{fill:#ffe0b3|#6b4a12}.c3{fill:#e3d1ff|#4c3486}
.c4{fill:#ffd0dd|#73304a}.c5{fill:#c2ecec|#1c5656}.buf{stroke:#59636e|#9198a1}
.hit{fill:transparent}.again{fill:none;stroke:#0969da|#4493f8;stroke-width:2}
.func{fill:none;stroke:#afb8c1|#4d5561}.over{paint-order:stroke;stroke:#fff|#0d1117;stroke-width:4px}
.hatch{fill:none;stroke:#afb8c1|#57606a;stroke-width:1.5}.page{fill:#fff|#0d1117}
.againt{fill:#0969da|#4493f8}.gap{fill:#eaeef2|#212830}
"""
PICTURE = "aclnn-svg"  # the class of all pictures, which their rules are for
CHAR = 7.3  # width of a monospaced character at 12 px
LINE = 16
MARGIN = 24


_PAIR = re.compile(r"([\w-]+):(#\w+)\|(#\w+)")
_SHEET = re.compile("<style>.*?</style>", re.DOTALL)
_COMMA = re.compile(r",(?![^(]*\))\s*")
_RULE = re.compile(r"([^{}]+)(\{[^{}]*\})")


def rules_for(rules: str) -> str:
    """Rules for pictures alone, of which each colour is a pair; old readers know the first only.

    >>> print(rules_for(".a,.b{fill:#fff|#000}"))
    .aclnn-svg .a,.aclnn-svg .b{fill:#fff;fill:light-dark(#fff,#000)}
    """

    return scoped(_PAIR.sub(r"\1:\2;\1:light-dark(\2,\3)", rules), PICTURE)


def scoped(rules: str, name: str) -> str:
    """Rules for what is inside elements of a class; no selector has commas of its own but in brackets.

    >>> scoped(":is(a,b),c{margin:0}", "part")
    '.part :is(a,b),.part c{margin:0}'
    """
    return _RULE.sub(
        lambda rule: _COMMA.sub(f",.{name} ", f".{name} {rule[1].strip()}") + rule[2],
        rules.replace("\n", ""),
    )


# `:root` is the picture where it is a file.
STYLE = f":root.{PICTURE}{{color-scheme:light dark}}" + rules_for(_RULES)


def words_at(x: float, y: float, words: str, style: str = "t", anchor: str = "start") -> str:
    index = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {index} class="{style}">{xml_words(words)}</text>'


def rect(x: float, y: float, w: float, h: float, style: str, radius: float = 4) -> str:
    box = f'x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"'
    return f'<rect {box} rx="{radius:.3g}" class="{style}"/>'


def hatching(id: str) -> str:
    """A pattern of thin lines, which `fill="url(#id)"` fills a box with.

    >>> hatching("h")[:16]
    '<defs><pattern i'
    """
    return (
        f'<defs><pattern id="{id}" width="8" height="8" patternUnits="userSpaceOnUse">'
        '<rect class="page" width="8" height="8"/><path class="hatch" d="M-2,2l4,-4M0,8l8,-8M6,10l4,-4"/>'
        "</pattern></defs>"
    )


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


def without_rules(picture: str) -> str:
    """A picture for a page that has the rules of all pictures once.

    >>> without_rules("<svg><style>.t{}</style><g/></svg>")
    '<svg><g/></svg>'
    """
    return _SHEET.sub("", picture)


def document(
    width: float, height: float, title: str, body: Sequence[str], style: str = "", rules: str = ""
) -> str:
    """A picture; `style` is its class, `rules` what its style sheet has besides that of all."""
    of = f' class="{PICTURE} {style}"' if style else f' class="{PICTURE}"'
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
