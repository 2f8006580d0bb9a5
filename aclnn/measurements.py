"""Times that were measured on this machine, kept in files of a cache folder.

What is chosen by speed is chosen by the speed of the machine that it runs on: each choice is measured when it is
first needed, and later processes read it. Another build of the kernels measures anew, and removes what the one before
it has measured. A folder that cannot be written keeps nothing; processes measure anew then.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import stat
import tempfile
import threading
from collections.abc import Mapping
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aclnn import environment, isa
from aclnn._version import __version__

Times = tuple[float, ...]
MOST_BYTES = 16 << 20  # of a file: a hundred thousand times take less


class Measurements:
    """Times by what was measured, of one configuration.

    Parameters
    ----------
    subject : str
        The beginning of the file's name.
    facts : mapping
        What times depend on besides the machine and the build: versions of libraries, threads. Others have files
        of their own.

    Examples
    --------
    >>> found = Measurements("example", {"threads": 1})
    >>> found.put("relu float32[1024]", (1.5, 2.0))
    >>> found.get("relu float32[1024]")
    (1.5, 2.0)
    """

    def __init__(self, subject: str, facts: Mapping[str, Any]):
        self._facts = {**_machine(), **facts}
        digest = hashlib.sha256(json.dumps(self._facts, sort_keys=True).encode()).hexdigest()
        self._path = folder() / f"{subject}-{digest[:16]}.json"
        self._times: dict[str, Times] | None = None
        self._new: dict[str, Times] = {}
        self._lock = threading.RLock()

    def get(self, what: str) -> Times | None:
        """The times of something, or None where it was not measured."""
        with self._lock:
            if self._times is None:
                self._times = read(self._path)
            return self._times.get(what)

    def items(self) -> list[tuple[str, Times]]:
        """All that was measured."""
        with self._lock:
            self.get("")
            return list((self._times or {}).items())

    def put(self, what: str, times: Times) -> None:
        """Keep times, in the file after the next `save`."""
        with self._lock:
            self.get(what)
            assert self._times is not None
            self._times[what] = self._new[what] = times

    def save(self) -> None:
        """Write what is new, besides what other processes wrote."""
        with self._lock:
            if not self._new:
                return
            times = read(self._path) | self._new
            self._new = {}
            document = {"facts": self._facts, "microseconds": {k: times[k] for k in sorted(times)}}
            if not self._path.exists():
                self._remove_those_of_other_builds()
            _replace(self._path, json.dumps(document, indent=1))

    def _remove_those_of_other_builds(self) -> None:
        for path in files():
            if _facts_in(path) | {"build": build()} == self._facts:
                path.unlink(missing_ok=True)


def folder() -> Path:
    """Folder of the measurements."""
    value = environment.CACHE_DIR.read()
    if value is not None:
        return value
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "aclnn"


def files() -> list[Path]:
    """The files that there are."""
    return sorted(folder().glob("*-" + "[0-9a-f]" * 16 + ".json"))


def clear() -> int:
    """Remove all files, and tell how many there were."""
    found = files()
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)


def read(path: Path) -> dict[str, Times]:
    """The times in a file; none of one that is missing or broken, which is measured anew."""
    try:
        facts = path.stat()
        return dict(_times_in(path, facts.st_mtime_ns, facts.st_size, facts.st_ino))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


@lru_cache(4)
def _times_in(path: Path, *version: int) -> dict[str, Times]:
    """Parsed contents of a version of a file: every part of every graph asks for them."""
    times = json.loads(_text(path))["microseconds"]
    return {str(k): tuple(map(float, v)) for k, v in times.items()}


def _facts_in(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(_text(path))["facts"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return {}


def _text(path: Path) -> str:
    """The content of a plain file of a sane size; anything else in the folder is none of ours.

    A pipe or device that took the file's place would keep a reader waiting, or never end.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path} is no plain file")
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"{path} has more than {MOST_BYTES} bytes")
    return content.decode("utf-8")


@lru_cache(1)
def build() -> str:
    """Fingerprint of the compiled modules: their names, sizes and times of modification."""
    found = []
    suffix = EXTENSION_SUFFIXES[0]
    for path in sorted({one for top in _packages() for one in top.rglob("*" + suffix)}):
        facts = path.stat()
        found.append((path.name, facts.st_size, facts.st_mtime_ns))
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def _packages() -> list[Path]:
    """Folders of this package; in a checkout that of graphs is not in it."""
    found = [find_spec(name) for name in ("aclnn", "aclnn.graph")]
    return [Path(one.origin).parent for one in found if one is not None and one.origin]


def _replace(path: Path, text: str) -> None:
    """Write a file as a whole: readers see the old one or the new one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except OSError:
        return  # a cache is no promise


@lru_cache(1)
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    named = {name.strip(): value.strip() for name, value in facts.items()}
    names = ("model name", "cpu family", "model", "stepping", "CPU implementer", "CPU part")
    return " ".join(named[name] for name in names if name in named)


def _machine() -> dict[str, Any]:
    return {
        "processor": _processor(),
        "processors": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "isa": isa.name(),
        "aclnn-cpu": __version__,
        "build": build(),
    }
