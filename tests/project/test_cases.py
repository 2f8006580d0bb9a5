"""Cases of one test: each is run, and each that fails is told."""

import cases
import pytest
from cases import each


@pytest.fixture(autouse=True)
def all_of_them(monkeypatch):
    """In the quick part of the suite, too."""
    monkeypatch.setattr(cases, "ONE", False)


@each("letter", "ab")
@each("number, square", lambda name: [(n, n * n) for n in range(len(name))])
def squares(name, number, square, letter, seen):
    seen.append((letter, number))
    assert square < 4, "too large"


def test_every_case_is_run():
    seen = []
    squares(name="xy", seen=seen)
    assert seen == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def test_every_case_that_fails_is_told():
    with pytest.raises(BaseExceptionGroup, match="2 of 2 cases") as caught:
        squares(name="wxyz", seen=[])
    assert [one.__notes__ for one in caught.value.exceptions] == [
        ["where letter is a"],
        ["where letter is b"],
    ]
    (first, *_), _ = (one.exceptions for one in caught.value.exceptions)
    assert "too large" in str(first)
    assert first.__notes__ == ["where number is 2, square is 4"]


def test_one_case_stands_for_all_in_the_quick_part(monkeypatch):
    monkeypatch.setattr(cases, "ONE", True)
    seen = []
    squares(name="wx", seen=seen)
    assert len(seen) == 1
