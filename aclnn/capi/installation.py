"""Installation of the C interface: its folders, flags for compilers, and the library's interpreter.

An installed package has no headers, which would be 1,800 files, and no libraries of other names: they follow from
what it has. The first command that tells where they are makes them in the cache folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

from aclnn import measurements
from aclnn._version import __version__
from aclnn.acl.constants import ACLNN_ERR_INNER
from aclnn.acl.errors import AclnnError
from aclnn.capi import generator

HOME = Path(__file__).parent / "home"
_ABI = f"{sys.version_info[0]}.{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
LIBPYTHON = f"libpython{_ABI}.so.1.0"


def library() -> Path:
    """The shared library.

    Raises
    ------
    AclnnError
        If the package was built without it.
    """
    found = sorted((HOME / "lib64").glob("libaclnn_cpu.so.*"))
    if not found:
        raise AclnnError(
            ACLNN_ERR_INNER,
            f"there is no library of the C interface in {HOME / 'lib64'}: packages have one on Linux only",
        )
    return found[-1]


def further_library() -> Path:
    """The library of further operators."""
    found = library()
    return found.with_name(found.name.replace(".so", "_further.so"))


@cache
def home() -> Path:
    """The folder that is laid out as an installation of CANN.

    Raises
    ------
    AclnnError
        If the package was built without a library, or headers cannot be written.
    """
    library()
    if (HOME / "include").is_dir():  # of a build in place
        return HOME
    texts = generator.headers()
    key = json.dumps([str(HOME), __version__, texts])
    made = measurements.folder() / f"cann-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    if not made.is_dir():
        try:
            _make(made, texts)
        except OSError as error:
            raise AclnnError(
                ACLNN_ERR_INNER,
                f"headers of the C interface cannot be written: {error}; ACLNN_CACHE_DIR names another folder",
            ) from None
    return made


def _make(made: Path, headers: dict[str, str]) -> None:
    """Write headers, and links to libraries and to what else there is, all at once."""
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=made.parent) as folder:
        new = Path(folder) / made.name
        generator.write_headers(new / "include", headers)
        (new / "share").symlink_to(HOME / "share")
        (new / "lib64").mkdir()
        for path in (HOME / "lib64").iterdir():
            (new / "lib64" / path.name).symlink_to(path)
        for name, target in generator.LINKS.items():
            with contextlib.suppress(FileExistsError):
                (new / "lib64" / name).symlink_to(target)
        with contextlib.suppress(OSError):  # where another process was first
            new.rename(made)
    if not made.is_dir():
        raise FileNotFoundError(f"{made} is no folder")


def cann_home() -> str:
    """The path of the folder that is laid out as an installation of CANN."""
    return str(home())


def cflags() -> str:
    """The compiler's flags."""
    include = home() / "include"
    folders = (include, include / "aclnnop", include / "aclnn")
    return " ".join(f"-I{shlex.quote(str(one))}" for one in folders)


def libs() -> str:
    """The linker's flags, for both libraries: programs start without `LD_LIBRARY_PATH`."""
    found = library()
    folder = shlex.quote(str(found.parent))
    return f"-L{folder} -l:{found.name} -l:{further_library().name} -Wl,-rpath,{folder}"


def _homes(executable: Path) -> list[Path]:
    """Folders of executables whose installation may have libpython: of the virtual environment's base
    first."""
    found = []
    settings = executable.parent.parent / "pyvenv.cfg"
    if settings.exists():
        for line in settings.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "home":
                found.append(Path(value.strip()))
    return [*found, executable.resolve().parent]


def _libpython_of(executable: Path) -> Path | None:
    multiarch = sysconfig.get_config_var("MULTIARCH") or "lib"
    for home in _homes(executable):
        for folder in ("lib", "lib64", f"lib/{multiarch}"):
            path = home.parent / folder / LIBPYTHON
            if path.exists():
                return path
    return None


def _candidates() -> list[Path]:
    """Interpreters in the order in which the library looks for them."""
    if requested := os.environ.get("ACLNN_PYTHON", ""):
        return [Path(requested)]
    found = []
    note = HOME / "interpreter"
    if note.exists():
        found.append(Path(note.read_text(encoding="utf-8").strip()))
    above = HOME.resolve().parents[2:]  # where the package is, then the folders above
    prefix = above[min(3, len(above) - 1)]  # of lib/python3.x/site-packages
    if (prefix / "pyvenv.cfg").exists():
        found.append(prefix / "bin" / "python")
    else:
        found.append(prefix / "bin" / f"python{_ABI}")
    folders = os.environ.get("PATH", "/usr/bin").split(":")
    return [*found, *(Path(folder) / f"python{_ABI}" for folder in folders if folder)]


def interpreter() -> tuple[Path, Path] | None:
    """The interpreter that the library starts where none runs, and its libpython."""
    for executable in _candidates():
        if os.access(executable, os.X_OK) and (found := _libpython_of(executable)):
            return executable, found
    return None


def described() -> str:
    """Description of what the library will use, or why programs in C cannot start an interpreter.

    Examples
    --------
    >>> from aclnn.capi.installation import described
    >>> described().splitlines()[0].startswith("library")
    True
    """
    lines = [
        f"library       {library()}",
        f"operators     {further_library()}, further ones",
        f"package       {HOME.parents[1]}",
    ]
    found = interpreter()
    if found is None:
        looked = ", ".join(dict.fromkeys(map(str, _candidates())))
        lines.append(
            f"interpreter   none: no {LIBPYTHON} for {looked}. The library works inside a running "
            "Python only; a Python that is built with --enable-shared, or ACLNN_PYTHON=/path/to/python, "
            "lets programs start one"
        )
    else:
        lines += [f"interpreter   {found[0]}", f"libpython     {found[1]}"]
    return "\n".join(lines)
