"""The C interface's libraries, and the folder laid out as a CANN installation that programs build with.

The build calls `make_home` once the headers are generated (`aclnn/capi/generator.py`). The library needs
Python's headers for their structs, but is not linked with libpython. Functions beyond CANN's programs are in
a second one, which is linked with the first and has no state.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parents[1]
SOURCES = HERE / "aclnn" / "capi" / "source"
FURTHER = "further_operators"  # the folder of what the further library has
OBJECTS = HERE / "aclnn" / "acl" / "runtime"  # whose structs programs and Python share
FLAGS = [
    "-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-g0", "-Wall", "-Wextra", "-Werror=implicit-function-declaration",
    "-Wno-format-truncation",
]  # fmt: skip
# Libraries of other names have symbols and no code that runs: no tables of frames, a build's number or pages of their
# own, and a table of names that packs to less than the usual one. Eight of them are 82 kB of a wheel, not 166.
SMALL = [
    "-Os", "-fno-asynchronous-unwind-tables", "-Wl,-z,noseparate-code", "-Wl,--build-id=none",
    "-Wl,--hash-style=sysv",
]  # fmt: skip

PKG_CONFIG = """prefix=${{pcfiledir}}/../..
includedir=${{prefix}}/include
libdir=${{prefix}}/lib64

Name: aclnn-cpu
Description: CANN's aclnn interface on the CPU
Version: {version}
Cflags: -I${{includedir}} -I${{includedir}}/aclnnop -I${{includedir}}/aclnn
Libs: -L${{libdir}} -l:{library} -l:{further} -Wl,-rpath,${{libdir}}
"""
CMAKE = """get_filename_component(_aclnn_home "${{CMAKE_CURRENT_LIST_DIR}}/../../.." ABSOLUTE)
if(NOT TARGET aclnn::aclnn)
  add_library(aclnn::aclnn SHARED IMPORTED)
  set_target_properties(aclnn::aclnn PROPERTIES
    IMPORTED_LOCATION "${{_aclnn_home}}/lib64/{library}"
    IMPORTED_SONAME "{library}"
    INTERFACE_INCLUDE_DIRECTORIES
      "${{_aclnn_home}}/include;${{_aclnn_home}}/include/aclnnop;${{_aclnn_home}}/include/aclnn"
    INTERFACE_LINK_LIBRARIES "${{_aclnn_home}}/lib64/{further}")
endif()
set(aclnn-cpu_VERSION {version})
set(aclnn-cpu_HOME "${{_aclnn_home}}")
unset(_aclnn_home)
"""
CMAKE_VERSION = """set(PACKAGE_VERSION {version})
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
"""


def compiler() -> list[str]:
    return (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()


def run(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"the C interface's library cannot be built: {error}")


def is_newer(path: Path, than: list[Path]) -> bool:
    """Whether a file is there and as new as all others."""
    return path.exists() and all(path.stat().st_mtime >= one.stat().st_mtime for one in than)


def make_home(
    generator: ModuleType, generated: Path, home: Path, flags: list[str], interpreter: str | None
) -> None:
    """Headers, libraries and the files of build tools.

    Parameters
    ----------
    generator : module
        ``aclnn/capi/generator.py``, which has written to `generated`.
    generated : Path
        With ``include`` and ``capi``.
    home : Path
        What is made: ``include``, ``lib64``, ``share``. Builds that are installed have no ``include``, and no
        libraries of other names that can be links: `aclnn.capi.installation` makes both.
    flags : list of str
        Further flags of the compiler and the linker, for builds that look for errors.
    interpreter : str or None
        Of a build in place, as the library finds others by its own place.
    """
    libraries = home / "lib64"
    libraries.mkdir(parents=True, exist_ok=True)
    is_complete = bool(interpreter or flags)
    if is_complete:
        copy_headers(generated / "include", home / "include")
    else:  # as wheels would be a tenth larger
        shutil.rmtree(home / "include", ignore_errors=True)
    capi = generated / "capi"
    built = generated / "objects"
    first, further = libraries / generator.LIBRARY, libraries / generator.FURTHER_LIBRARY
    objects = compile_sources(generated, [SOURCES, capi], built, flags)
    # Once loaded it stays: threads have destructors in it.
    link_library(
        first, objects, capi / "symbols.map", ["-Wl,-z,nodelete", "-pthread", "-lm"], flags
    )
    objects = compile_sources(
        generated, [SOURCES / FURTHER, capi / FURTHER], built / FURTHER, flags
    )
    beside = [f"-L{libraries}", f"-l:{generator.LIBRARY}", "-Wl,-rpath,$ORIGIN"]
    link_library(further, objects, capi / FURTHER / "symbols.map", beside, flags)
    linked = () if is_complete else generator.LINKS
    for name in linked:
        (libraries / name).unlink(missing_ok=True)
    names = [name for name in generator.OTHER_NAMES if name not in linked]
    make_other_names(generator, generated, libraries, names)
    write_descriptions(generator, home)
    note = home / "interpreter"
    if interpreter is None:
        note.unlink(missing_ok=True)
    else:
        note.write_text(f"{interpreter}\n", encoding="utf-8")


def copy_headers(source: Path, target: Path) -> None:
    wanted = {path.relative_to(source) for path in source.rglob("*.h")}
    for path in [one for one in target.rglob("*.h") if one.relative_to(target) not in wanted]:
        path.unlink()
    for name in wanted:
        if not is_newer(target / name, [source / name]):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, target / name)


def link_library(
    library: Path, objects: list[Path], script: Path, more: list[str], flags: list[str]
) -> None:
    """A shared library that exports what the version script lists."""
    if is_newer(library, [*objects, script]):
        return
    link = ["-shared", f"-Wl,-soname,{library.name}", f"-Wl,--version-script={script}"]
    link += ["-Wl,-z,defs", "-Wl,-Bsymbolic-functions", *([] if flags else ["-Wl,-s"])]
    run([*compiler(), *link, *flags, *map(str, objects), "-o", str(library), *more, "-ldl"])


def compile_sources(
    generated: Path, sources: list[Path], folder: Path, flags: list[str]
) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    includes = [
        *sources,
        SOURCES,
        OBJECTS,
        HERE / "graph" / "runtime",
        generated / "include",
        generated / "capi",
        generated,
    ]
    multiarch = sysconfig.get_config_var("MULTIARCH") or "lib"
    given = [*FLAGS, *flags, *(f"-I{one}" for one in includes)]
    given += [f"-I{sysconfig.get_path('include')}", f"-DACLNN_MULTIARCH={multiarch}"]
    settings = folder / "settings"
    if not settings.exists() or settings.read_text() != repr((compiler(), given)):
        settings.write_text(repr((compiler(), given)))
    headers = [*SOURCES.rglob("*.h"), *OBJECTS.glob("*.h"), *generated.rglob("*.h"), settings]
    found = []
    for source in sorted([path for one in sources for path in one.glob("*.c")]):
        path = folder / f"{source.stem}.o"
        if not is_newer(path, [source, *headers]):
            run([*compiler(), *given, "-c", str(source), "-o", str(path)])
        found.append(path)
    return found


def make_other_names(
    generator: ModuleType, generated: Path, libraries: Path, names: list[str]
) -> None:
    """Libraries of other names, which have the library's functions in the place of their own.

    Wheels know no links, and copies of the library would each have a state.
    """
    for name in names:
        has_both = name in generator.OPERATOR_NAMES
        source = generated / "capi" / "filters" / ("operators.c" if has_both else "runtime.c")
        path = libraries / name
        if is_newer(path, [source, Path(__file__)]):
            continue
        link = [f"-Wl,-soname,{name}", f"-Wl,-F,{generator.LIBRARY}"]
        link += [f"-Wl,-f,{generator.FURTHER_LIBRARY}"] if has_both else []
        link += ["-Wl,-rpath,$ORIGIN", "-Wl,-s", "-nostdlib", "-fPIC", "-w"]
        run([*compiler(), "-shared", *SMALL, *link, str(source), "-o", str(path)])


def write_descriptions(generator: ModuleType, home: Path) -> None:
    text = (HERE / "aclnn" / "_version.py").read_text(encoding="utf-8")
    version = text.partition("__version__ = ")[2].split('"')[1]
    words = {
        "version": version,
        "library": generator.LIBRARY,
        "further": generator.FURTHER_LIBRARY,
    }
    files = {
        "lib64/pkgconfig/aclnn-cpu.pc": PKG_CONFIG,
        "share/cmake/aclnn-cpu/aclnn-cpu-config.cmake": CMAKE,
        "share/cmake/aclnn-cpu/aclnn-cpu-config-version.cmake": CMAKE_VERSION,
    }
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(**words), encoding="utf-8")
