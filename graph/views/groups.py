"""Groups of boxes: repeated sequences, calls of functions, tile loops, operators, one in another.

A group is a stretch of nodes that run after each other, so that nothing which runs between them is
outside of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import Any

from .boxes import Box, Group

REPEAT, FUNCTION, LINE, LOOP, CALL = "repeat", "function", "line", "loop", "call"
Key = tuple[str, object]


def give_groups(boxes: Sequence[Box], repeat_words: Callable[[int], str]) -> None:
    """Tell every box which groups it is in; `repeat_words` titles a repeat by its number."""
    nodes = [box for box in boxes if box.is_node]
    known: tuple[Group, ...] = ()
    for _, step in groupby(nodes, lambda box: id(box) if box.loop is None else box.loop):
        inside = list(step)
        for box, keys in zip(inside, _keys(inside), strict=True):
            path: list[Group] = []
            for index, key in enumerate(keys):
                again = index < len(known) and known[index].key == key and path == [*known[:index]]
                path.append(
                    known[index] if again else Group(key[0], _words(key, repeat_words), key)
                )
            box.path = known = tuple(path)
            lines = [group for group in path if group.kind in (FUNCTION, LINE)]
            for group in lines[:-1]:  # lines that call functions
                group.kind = FUNCTION
    place_the_rest(boxes)


def place_the_rest(boxes: Sequence[Box]) -> None:
    """Put what is no node into the innermost group that holds all that writes and reads it.

    What only the caller reads, and what it gives, stay outside, unless each repetition has its own.
    """
    readers: dict[Box, list[Box]] = {box: [] for box in boxes}
    for box in boxes:
        for source, _ in box.sources:
            readers[source].append(box)
    for box in boxes:
        near = [*readers[box], *[source for source, _ in box.sources]]
        inner = bool(readers[box]) and (bool(box.sources) or len(box.names) > 1)
        if not box.is_node:
            box.path = common_start([one.path for one in near if one.is_node]) if inner else ()


def _keys(step: Sequence[Box]) -> list[list[Key]]:
    """The groups of the nodes of a step by what they are known by, the outermost first."""
    loop = step[0].loop
    shared = common_start([box.origin for box in step])
    one_call = len({box.call for box in step}) == 1 and bool(step[0].call)
    found = []
    for box in step:
        keys: list[Key] = [] if box.repeat is None else [(REPEAT, box.repeat)]
        keys += [(LINE, line) for line in shared]
        own = [(CALL, box.call)] if box.call else []
        if loop is None:
            keys += own
        elif one_call:
            keys += [*own, (LOOP, loop)]
        else:
            inner = [(LINE, line) for line in box.origin[len(shared) :]]
            keys += [(LOOP, loop), *inner, *own]
        found.append(keys)
    return found


def _words(key: Key, repeat_words: Callable[[int], str]) -> str:
    """The title of a group."""
    kind, what = key
    if kind == REPEAT:
        assert isinstance(what, int)
        return repeat_words(what)
    return f"tile loop {what}" if kind == LOOP else str(what).partition("#")[0]


def framed(boxes: Sequence[Box], kinds: Sequence[str]) -> None:
    """Leave only groups of these kinds that say something: not those of one box or one group."""
    for box in boxes:
        box.path = tuple(group for group in box.path if group.kind in kinds)
    members: dict[Group, dict[Box | Group, None]] = {}
    for box in boxes:
        chain: list[Group | Box] = [*box.path, box]
        for group, inside in pairwise(chain):
            assert isinstance(group, Group)
            members.setdefault(group, {})[inside] = None
    gone = {_spare(group, [*inside]) for group, inside in members.items() if len(inside) == 1}
    for box in boxes:
        box.path = tuple(group for group in box.path if group not in gone)
        if box.path and box.path[-1].kind == CALL and box.lines[0] == box.path[-1].words:
            del box.lines[0]  # which the frame says


def _spare(group: Group, inside: Sequence[Box | Group]) -> Group | None:
    """The one of a group and all that it holds of which no frame is drawn."""
    (only,) = inside
    if group.kind == REPEAT:
        return only if isinstance(only, Group) and only.kind == FUNCTION else None
    if isinstance(only, Group) and group.kind == only.kind == FUNCTION:
        return group if _is_module_in(only.words, group.words) else only
    if isinstance(only, Box) and group.kind == LOOP and only.is_node:
        only.lines.append(group.words)
    return group


def _is_module_in(words: str, around: str) -> bool:
    """Whether a group is named by a path that begins with the name of the one around it.

    >>> _is_module_in("m/encoder/layer.0", "m/encoder"), _is_module_in("m.py:2: g()", "m.py:3: f()")
    (True, False)
    """
    name = around.partition(": ")[0]
    return words.startswith((f"{name}/", f"{name}."))


def common_start(paths: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
    """Common start of all paths."""
    found = []
    for items in zip(*paths, strict=False):
        if any(item is not items[0] and item != items[0] for item in items):
            break
        found.append(items[0])
    return tuple(found)
