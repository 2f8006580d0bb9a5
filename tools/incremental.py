"""What a build may keep of an earlier one, told by the contents of the files that it was made of.

A step of the build notes what it read; the next build repeats it only where one of these files has other contents, or
the step other settings.  `Notes` is a file of such steps.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def digest(paths: Iterable[Path]) -> str:
    """The digest of files' names and contents; a file that is missing has none.

    Parameters
    ----------
    paths : iterable of Path

    Examples
    --------
    >>> digest([]) == digest([Path("no such file")])
    False
    """
    found = hashlib.sha256()
    for path in sorted(set(paths)):
        found.update(str(path).encode())
        if path.is_file():
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


class Notes:
    """Steps of a build, kept in a file.

    Parameters
    ----------
    path : Path
        The file, which need not exist.
    """

    def __init__(self, path: Path):
        self._path = path
        self._lock = threading.Lock()
        try:
            self._steps: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self._steps = {}

    def get(self, step: str) -> Any:
        """What was noted for a step, None where nothing was."""
        return self._steps.get(step)

    def set(self, step: str, value: Any) -> None:
        """Note the value of a step, and write the file."""
        with self._lock:
            self._steps[step] = value
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps(self._steps, indent=0), encoding="utf-8")

    def is_done(self, step: str, settings: str) -> bool:
        """Whether a step was done with the same settings, and of files with the same contents."""
        noted = self.get(step)
        return (
            isinstance(noted, dict)
            and noted["settings"] == settings
            and noted["contents"] == digest(map(Path, noted["files"]))
        )

    def done(self, step: str, settings: str, files: Iterable[Path]) -> None:
        """Note that a step was done, and the files that it read or wrote."""
        paths = sorted(map(str, set(files)))
        contents = digest(map(Path, paths))
        self.set(step, {"settings": settings, "contents": contents, "files": paths})
