"""Words of docstrings: first lines that say what a thing is, and private words that become fewer."""

import collections
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("aclnn", "graph")
    for path in sorted((ROOT / folder).rglob("*.p*"))
    if path.suffix in (".py", ".pyx", ".pxd")
]
# A noun or a verb is what the field writes: "Number of steps", not "How many steps there are".
QUESTIONS = re.compile(r'"""\s*((?:What|How|Where|Of|Who|Those)\b.*)')
# How often words of our own may stand in sources at most, as parts of names too: numbers go down, never up.
PRIVATE = {
    "told": 6,
    "settle": 0,
    "suspect": 0,
    "doubt": 37,
    "team": 13,
    "CROSSING": 0,
    "APART": 3,
    "twin": 0,
    "twins": 0,
    "unlike": 4,
    "alike": 57,
    "behind": 133,
    "apart": 187,
    "scant": 11,
    "blind": 15,
    "spell": 2,
    "remedy": 5,
    "defect": 13,
    "oracle": 0,
    "judge": 4,
}
# Words that documents do without.
NOT_IN_PROSE = ("lies", "twin", "scant", "spell", "told", "settle", "suspect", "alike", "unlike")
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def words_of(text: str) -> collections.Counter[str]:
    """Words of a text; names are divided at underscores."""
    return collections.Counter(re.findall(r"[A-Za-z]+", text))


def test_first_lines_of_docstrings_are_no_questions():
    found = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in SOURCES
        for line in QUESTIONS.findall(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_private_words_become_fewer():
    found = sum(
        (words_of(path.read_text(encoding="utf-8")) for path in SOURCES), collections.Counter()
    )
    for word, most in PRIVATE.items():
        assert found[word] <= most, (
            f"{word}: {found[word]} times, at most {most}; write the field's word"
        )


def test_names_are_divided_at_underscores():
    assert words_of("lies_apart = _told") == {"lies": 1, "apart": 1, "told": 1}


def test_documents_have_the_words_of_the_field():
    if not (ROOT / "docs").exists():
        pytest.skip("run from an installation without sources")
    found = [
        f"{path.name}: {word}"
        for path in PAGES
        for word in NOT_IN_PROSE
        if words_of(re.sub(r"`[^`]*`", "", path.read_text(encoding="utf-8")))[word]
    ]
    assert not found, "\n".join(found)
