"""Words of docstrings: first lines that say what a thing is, and private words that become fewer."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("aclnn", "graph")
    for path in sorted((ROOT / folder).rglob("*.p*"))
    if path.suffix in (".py", ".pyx", ".pxd")
]
# A noun or a verb is what the field writes: "Number of steps", not "How many steps there are".
QUESTIONS = re.compile(r'"""\s*((?:What|How|Where|Of|Who|Those)\b.*)')
# How often words of our own may stand in sources at most: numbers go down, never up.
PRIVATE = {
    "told": 0,
    "lies": 0,
    "beside": 0,
    "settle": 0,
    "doubt": 11,
    "team": 0,
    "SAME": 0,
    "CROSSING": 0,
    "APART": 0,
}


def test_first_lines_of_docstrings_are_no_questions():
    found = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in SOURCES
        for line in QUESTIONS.findall(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_private_words_become_fewer():
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    for word, most in PRIVATE.items():
        count = len(re.findall(rf"\b{word}\b", text))
        assert count <= most, f"{word}: {count} times, at most {most}; write the field's word"
