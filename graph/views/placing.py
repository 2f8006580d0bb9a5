"""Places of boxes: rows by their distance from the inputs, each box below what it reads."""

from __future__ import annotations

from collections import deque

from .boxes import Box
from .collapse import targets_of

GAP_X, GAP_Y = 28, 44
GAP_REPEAT = 40  # more, where a repeated sequence begins or ends
WIDEST = 1500  # pixels of a row of boxes: what does not fit goes into another one
MOST_BENDS = 4  # ranks that an arrow goes around; longer ones go straight, behind the boxes


def ranked(boxes: list[Box]) -> list[list[Box]]:
    """Boxes by their distance from the inputs, with bends where an arrow crosses a rank."""
    _rank(boxes)
    ranks: list[list[Box]] = [[] for _ in range(max((b.rank for b in boxes), default=0) + 1)]
    for box in boxes:
        ranks[box.rank].append(box)
    for box in boxes:
        for place, (source, names) in enumerate(box.sources):
            if 1 < box.rank - source.rank <= MOST_BENDS + 1:
                for rank in range(source.rank + 1, box.rank):
                    source = Box(rank=rank, sources=[(source, names)])
                    ranks[rank].append(source)
                box.sources[place] = (source, names)
    return ranks


def _rank(boxes: list[Box]) -> None:
    """Give every box its rank, behind all that it reads; arguments stand above who reads them.

    What goes round, because something is written after it was read, begins with its first box.
    """
    targets = targets_of(boxes)
    missing = {box: len({source for source, _ in box.sources}) for box in boxes}
    ready = deque(box for box in boxes if not missing[box])
    rest = iter(boxes)
    for _ in boxes:
        box = ready.popleft() if ready else next(box for box in rest if box.rank < 0)
        box.rank = max((source.rank + 1 for source, _ in box.sources), default=0)
        for target in targets[box]:
            missing[target] -= 1
            if not missing[target] and target.rank < 0:
                ready.append(target)
    for box in boxes:
        if not box.sources and targets[box]:
            box.rank = max(0, min(target.rank for target in targets[box]) - 1)


def rows_of(ranks: list[list[Box]]) -> list[list[Box]]:
    """Ranks cut into rows that are not too wide."""
    rows = []
    for rank in ranks:
        row: list[Box] = []
        width = 0.0
        for box in rank:
            if row and width + box.width > WIDEST:
                rows.append(row)
                row, width = [], 0.0
            row.append(box)
            width += box.width + GAP_X
        rows.append(row)
    return rows


def place(rows: list[list[Box]], left: float, top: float) -> float:
    """Give every box its place below `top`, right of `left`, each row centred and ordered after
    what it reads; the right end of the widest row."""
    widths = [sum(b.width + GAP_X for b in row) - GAP_X for row in rows]
    total = max([*widths, 160])
    y, first, last = top, _first_rows(rows), _first_rows(rows[::-1])
    for number, (row, width) in enumerate(zip(rows, widths, strict=True)):
        y += GAP_REPEAT * (number in first) + GAP_REPEAT * (len(rows) - number in last)
        row.sort(key=_pull)
        x = left + (total - width) / 2
        height = max((box.height for box in row), default=0)
        for box in row:
            box.x, box.y, box.bend = x, y, height
            x += box.width + GAP_X
        y += height + GAP_Y
    return left + total


def _first_rows(rows: list[list[Box]]) -> set[int]:
    """The rows in which repeated sequences begin."""
    found: dict[int, int] = {}
    for number, row in enumerate(rows):
        for box in row:
            if box.repeat is not None:
                found.setdefault(box.repeat, number)
    return {*found.values()}


def _pull(box: Box) -> float:
    if not box.sources:
        return 0
    return sum(source.middle for source, _ in box.sources) / len(box.sources)
