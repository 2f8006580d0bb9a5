"""Count lines of code by room, with the difference to another revision.

`python tools/lines.py [REVISION]` prints a table of the tracked sources: rooms are the folders of `aclnn/` and `graph/`,
and the other folders at the top; two last lines have every tracked text file of `aclnn/` and of `graph/`, scripts and
generated lists included. Without a revision it compares with the parent of the newest commit.
"""

import subprocess
import sys
from collections import Counter

SOURCES = (".py", ".pyx", ".pxd", ".pyi", ".h", ".c", ".cpp", ".md", ".txt", ".sh")
INNER = ("aclnn", "graph")


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], capture_output=True, text=True, check=True, errors="replace"
    ).stdout


def room_of(path: str) -> str:
    """
    >>> room_of("aclnn/operators/elu.py"), room_of("aclnn/isa.py"), room_of("tests/acl/test_soc.py")
    ('aclnn/operators', 'aclnn', 'tests')
    """
    parts = path.split("/")
    if parts[0] in INNER and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0] if len(parts) > 1 else "."


def lines_at(revision: str) -> tuple[Counter[str], Counter[str]]:
    """Lines of sources by room, and lines of all texts by folder at the top."""
    counts: Counter[str] = Counter()
    texts: Counter[str] = Counter()
    # `git grep -c ''` counts lines of every text file of a revision in one process.
    for line in git("grep", "-I", "-c", "", revision).splitlines():
        path, _, count = line.removeprefix(f"{revision}:").rpartition(":")
        texts[path.partition("/")[0]] += int(count)
        if path.endswith(SOURCES):
            counts[room_of(path)] += int(count)
    return counts, texts


def main() -> None:
    before = sys.argv[1] if len(sys.argv) > 1 else "HEAD^"
    try:
        old, old_texts = lines_at(before)
    except subprocess.CalledProcessError:  # a clone without history
        old, old_texts = lines_at("HEAD")
    now, texts = lines_at("HEAD")
    print(f"{'room':24}{'lines':>9}{'change':>9}")
    for room in sorted(now | old):
        print(f"{room:24}{now[room]:9}{now[room] - old[room]:+9}")
    print(f"{'all':24}{now.total():9}{now.total() - old.total():+9}")
    for folder in INNER:
        name = f"{folder}/, every text"
        print(f"{name:24}{texts[folder]:9}{texts[folder] - old_texts[folder]:+9}")


if __name__ == "__main__":
    main()
