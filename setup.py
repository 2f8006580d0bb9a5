"""Build the extension modules: one scheduler, one set of kernels per instruction set.

`graph/` installs as `aclnn.graph`.  Loops over formulas are made from the kernels' records
(`tools/make_kernels.py`).  A kernel module's one Cython source becomes a C file with what Python sees, compiled once,
and files of loops, compiled once per instruction set (`tools/split_loops.py`); `aclnn.isa` picks one at each call.
"""

import contextlib
import copy
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy
from setuptools import Extension, find_packages, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

HERE = Path(__file__).parent

# -fno-trapping-math lets comparisons and selects vectorise; -ffp-contract=off leaves fusing to
# the formulas, so that every instruction set with FMA gives the same bits.  Never -ffast-math:
# it deletes the compensation terms that the float32 results stand on. Copies look at elements of
# any type as integers of their size, and what an empty view would reach may overflow. Short loops take
# up to 1.7 times as long where they happen to lie across 32 bytes of code. Nothing in C is thrown through these
# modules, for which tables of frames would be a twentieth of the wheel. What GCC 14 refuses by default, of
# pointers above all, older compilers must not let pass.
COMMON_FLAGS = [
    "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fno-strict-aliasing",
    "-fwrapv", "-falign-loops=32", "-g0", "-fno-asynchronous-unwind-tables", "-Werror=incompatible-pointer-types",
    "-Werror=int-conversion", "-Werror=implicit-function-declaration",
]  # fmt: skip
# Modules that a call passes through: `rep stos`, with which GCC clears arrays of some hundred bytes, takes
# as long to start as a call takes to read its arguments.
CALL_FLAGS = ("-fno-builtin-memset",)
# Modules that take no longer with less inlined, or run once a plan: the wheel is 0.2 MB smaller. Calls
# of functional forms took 1.1 times as long with -O2, 1.3 times with -Os.
SIZE_FLAGS = {
    "_buffer": "-Os", "_captures": "-Os", "_cpu": "-Os", "_dlpack": "-Os", "_flag": "-Os", "_frames": "-Os", "_lists": "-Os",
    "_placing": "-Os", "_program": "-Os", "_python_kernel": "-Os",
    "_call_table": "-O2", "_python_objects": "-Os",
    "_executor": "-O2", "_joined": "-O2", "_launch": "-O2", "_prepared_call": "-O2",
    "_rebinding": "-O2", "_runtime": "-O2", "_tensor": "-O2",
    "_two_phase": "-O2", "_workspace": "-O2",
}  # fmt: skip
# The generic set is for processors from before 2013 and for tests: what is long is made small there, not fast.
PLAIN = ("-O2", "-fno-tree-vectorize")  # half of the bytes and of the time to compile
GENERIC_FLAGS = {
    "_kernels": PLAIN, "_row_kernels": ("-Os",), "_product_kernels": ("-Os",),
    "_attention_kernels": ("-Os",), "_convolution_kernels": ("-Os",), "_image_kernels": ("-Os",),
    "_sorting_kernels": ("-Os",),
    # With -Os, roundings are calls of the C library.
    "_quantized_kernels": ("-O2",), "_formula_kernels": PLAIN,
}  # fmt: skip
# These loops are as fast without the copies that -O3 makes of them, and a fifth to a quarter shorter; what vectors they
# get, a cost model of -O3 decides. Sums of rows, pooling, attention and transposed operands took 1.1 to 1.6 times as
# long, gathers 1.1 to 1.2 times, and four loops of formulas had no vectors.
SHORT_FLAGS = ("-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic")
SHORT = ("_product_kernels", "_convolution_kernels", "_quantized_kernels")
# A file of loops declares what Cython adds to its module, which others of that module use.
LOOP_WARNINGS = ("-Wno-unused-function", "-Wno-unused-variable")
OVER_VECTORS = ("_simd_kernels", "_fused_kernels")
# Modules that an instruction set takes from another one, where its own gain less than a tenth: comparisons, gathers
# and conversions that wait for memory. `_kernels` reads the masks of the loops over vectors, one for each vector of
# the set's own length, and cannot be borrowed.
BORROWED = {
    "v3": {"_sorting_kernels": "generic"},
    "v4": {"_sorting_kernels": "generic", "_image_kernels": "v3", "_quantized_kernels": "v3"},
}
# Errors of memory and undefined behaviour end the process. Little is optimised, so that it builds soon.
SANITIZE_FLAGS = [
    "-O1", "-g1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
]  # fmt: skip
GENERATED = "build/cython"
DIVIDED = "build/loops"  # what is compiled of modules with loops, by module
# Into how many files their loops go, where it is not one: of a formula that changes, one of them is compiled.
PARTS = {"_formula_kernels": 4, "_simd_kernels": 5, "_fused_kernels": 3}
SHARED = "aclnn._cyutility"  # what Cython adds to modules, once for all of them
ALONE = ("aclnn.graph.", "aclnn.acl._frames")  # as the graph loads nothing else of the package
CAPI_GENERATED = "build/capi"  # headers and sources of the C interface
INCLUDES = ["graph/runtime", "aclnn/kernels", numpy.get_include()]
RUNTIME_INCLUDES = ["aclnn/acl/runtime", CAPI_GENERATED]
READERS = ("acl", "api", "execution", "capi")  # rooms that read CANN's objects
CAPI_INCLUDES = ["aclnn/capi/source", f"{CAPI_GENERATED}/include"]
# Sources that are compiled once per instruction set. What takes longest comes first, where several are
# compiled at a time.
KERNELS = (
    "_kernels", "_simd_kernels", "_formula_kernels", "_row_kernels", "_fused_kernels", "_quantized_kernels",
    "_sorting_kernels", "_attention_kernels", "_product_kernels", "_image_kernels",
    "_convolution_kernels",
)  # fmt: skip
# A build of x86-64-v2 has no vector forms either: it made the wheel a tenth larger, for plain loops that are 1.2
# times as fast on processors from before 2013.
X86_LEVELS = {
    "v3": ["-march=x86-64-v3"],
    "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
}
VECTOR_BYTES = {"v3": 32, "v4": 64}
# Every CPU of AArch64 has NEON: what the flag adds are the fast paths over vectors.
NEON = {"neon": ["-DACLNN_NEON"]}
SETS = ("generic", "neon", "v3", "v4")
VECTORS = SETS[1:]  # instruction sets with vectors that `simd.h` has operations for
# Loops over vectors are generic functions that are specialised by being inlined, all of them, and loops that
# call a formula do not vectorise. What is tested in a loop over vectors is predicted: copies of it, one for each
# outcome, made leaky_relu 1.05 times as slow.
INLINED_FLAGS = ["-DCYTHON_INLINE=inline __attribute__((always_inline))"]
SIMD_FLAGS = [*INLINED_FLAGS, "-fno-unswitch-loops"]
# GCC inlines as long as a module grows by less than 40 %: in this one it left out what softmax calls for each
# vector, which then took 1.1 times as long.
ROW_FLAGS = ["--param=inline-unit-growth=60"]
# Loops over a block's formula have no vectors of half the length for what is left at the end: they were a
# fourteenth of the module.
FORMULA_FLAGS = ["--param=vect-epilogues-nomask=0"]
OWN_FLAGS = {
    "_simd_kernels": SIMD_FLAGS, "_row_kernels": ROW_FLAGS, "_fused_kernels": INLINED_FLAGS,
    "_formula_kernels": [*INLINED_FLAGS, *FORMULA_FLAGS],
}  # fmt: skip


DIRECTIVES = {
    "language_level": 3,
    "boundscheck": True,  # of lists and tuples: an IndexError, where a process would end; arrays of C have none
    "cdivision": True,  # C's division: no exception for zero, which formulas meet and mean
    "initializedcheck": False,
    "auto_pickle": False,  # classes that have pickles say what is in them
}


def processors() -> int:
    """How many of them the build may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def say(text: str) -> None:
    """Tell how far the build is: on the terminal, as pip keeps the output of a build to itself."""
    try:
        with open("/dev/tty", "w") as terminal:
            terminal.write(f"\r\x1b[Kaclnn-cpu: {text}\n")  # over what pip's spinner left
    except OSError:
        print(f"aclnn-cpu: {text}", flush=True)


@contextlib.contextmanager
def messages_in(path: Path):
    """Send what compilers write to a file, whose end is shown where one of them fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w+", encoding="utf-8", errors="replace") as file:
        sys.stderr.flush()
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        except BaseException:
            sys.stderr.flush()
            file.seek(0)
            lines = list(file)
            errors = [line for line in lines if "error" in line][:10]
            os.write(kept, "".join([*errors, "...\n", *lines[-30:]]).encode())
            os.write(kept, f"aclnn-cpu: all messages of the compiler: {path}\n".encode())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)


class Progress:
    """So many of the files are compiled: said four times in a build."""

    def __init__(self, modules: int):
        self.modules = modules
        self.done = 0
        self.begin = time.monotonic()
        self.lock = threading.Lock()

    def one_more(self) -> None:
        with self.lock:
            self.done += 1
            if self.done * 4 // self.modules > (self.done - 1) * 4 // self.modules:
                seconds = time.monotonic() - self.begin
                say(f"compiled {self.done} of {self.modules} files, {seconds:.0f} s")


def compiles(
    flags: list[str], source: str = "int main(void) { return 0; }\n", run: bool = False
) -> bool:
    """Tell whether the C compiler accepts `flags`, so that an older one builds fewer variants; with
    `run` also whether the program ends well."""
    return _compiles(tuple(os.environ.get("CC", "cc").split()), tuple(flags), source, run)


@functools.cache
def _compiles(compiler: tuple[str, ...], flags: tuple[str, ...], source: str, run: bool) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probe.c"
        path.write_text(source)
        program = str(path.with_suffix(""))
        commands = [[*compiler, *flags, str(path), "-o", program], *([[program]] if run else [])]
        try:
            return not any(
                subprocess.run(command, capture_output=True, check=False).returncode
                for command in commands
            )
        except OSError:
            return False


# A step of a program on registers, as `_fused_kernels` has them: it computes with what it is passed in vectors,
# and calls the next one with them.
STEP = """
typedef float vec __attribute__((vector_size(VECTOR)));
typedef struct step step;
struct step { void (*run)(const step *, void *, vec, vec, vec, vec, vec, vec, vec, vec); };
void probe(const step *s, void *f, vec a, vec b, vec c, vec d, vec e, vec g, vec h, vec i) {
    s[1].run(s + 1, f, a + a, b + b, c + c, d + d, e + e, g + g, h + h, i + i);
}
"""


def makes_jumps(flags: list[str], vector: int) -> bool:
    """Tell whether the C compiler ends a step of a program with a jump to the next one: in a call, it would keep
    a frame for each step, and spill the vectors. `vector`: bytes of one."""
    compiler = [os.environ.get("CC", "cc"), os.environ.get("CFLAGS", "")]
    return _makes_jumps(" ".join(compiler), tuple(flags), vector)


@functools.cache
def _makes_jumps(compiler: str, flags: tuple[str, ...], vector: int) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path, made = Path(folder) / "step.c", Path(folder) / "step.s"
        path.write_text(STEP)
        command = [
            *compiler.split(),
            *flags,
            f"-DVECTOR={vector}",
            "-S",
            str(path),
            "-o",
            str(made),
        ]
        try:
            subprocess.run(command, capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return False
        return re.search(r"^\s*call", made.read_text(), re.MULTILINE) is None


def runs_programs(isa: str, flags: list[str]) -> bool:
    """Whether loops of several nodes become programs on registers. Without, their tiles are blocks in the nearest
    cache, which each node's kernel goes over; results are the same."""
    if isa not in X86_LEVELS:
        return False
    # Sanitizers are for the steps too; those need no jumps to be right.
    if is_on("ACLNN_BUILD_SANITIZE", "0") or makes_jumps(
        [*COMMON_FLAGS, *flags], VECTOR_BYTES[isa]
    ):
        return True
    say(
        f"{isa}: this compiler does not turn calls at the end into jumps; fused loops go over blocks in cache"
    )
    return False


def is_on(variable: str, default: str) -> bool:
    """Whether a variable of the build is set to what does not mean no."""
    value = os.environ.get(variable, "").strip().lower() or default
    return value not in ("0", "false", "no", "off")


def openmp_flags() -> list[str]:
    """`-fopenmp` where it works and `ACLNN_OPENMP` is not off: runs obey the limits of OpenMP then."""
    if not is_on("ACLNN_OPENMP", "1"):
        return []
    source = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
    return ["-fopenmp"] if compiles(["-fopenmp"], source) else []


def asks_for(flags: list[str]) -> str:
    """A program that asks the CPU for a level: Clang 16 and GCC 11 have the flags, but cannot ask."""
    level = flags[0].removeprefix("-march=")
    return f'int main(void) {{ return !__builtin_cpu_supports("{level}"); }}\n'


def has_x86_levels() -> bool:
    return all(compiles([], asks_for(flags)) for flags in X86_LEVELS.values())


def kernel_variants() -> dict[str, list[str]]:
    """The compiler's flags for each instruction set that kernels are built for."""
    variants: dict[str, list[str]] = {"generic": []}
    # What is built for, not on: macOS may build for two architectures at once.
    platform = sysconfig.get_platform().lower()
    if platform.endswith(("aarch64", "arm64")):
        variants |= NEON
    if platform.endswith(("x86_64", "amd64")):
        variants |= {
            name: flags for name, flags in X86_LEVELS.items() if compiles(flags, asks_for(flags))
        }
    return chosen_variants(variants)


def chosen_variants(variants: dict[str, list[str]]) -> dict[str, list[str]]:
    """Those that `ACLNN_BUILD_ISA` lists, such as `v4`, `generic,v3` or `native`; all where it is unset."""
    chosen = os.environ.get("ACLNN_BUILD_ISA", "").replace(",", " ").split()
    if unknown := [name for name in chosen if name not in (*variants, "native")]:
        sys.exit(f"ACLNN_BUILD_ISA: {', '.join(unknown)} is none of {', '.join(variants)}, native")
    if "native" in chosen:
        chosen.append(native(variants))
    return {name: flags for name, flags in variants.items() if not chosen or name in chosen}


def native(variants: dict[str, list[str]]) -> str:
    """The best that this CPU has: the one that it will select when it runs."""
    return next(
        name
        for name in reversed(variants)
        if name not in X86_LEVELS or compiles([], asks_for(X86_LEVELS[name]), run=True)
    )


def compiler_flags() -> list[str]:
    """Those of every extension: with `ACLNN_BUILD_SANITIZE=1` for AddressSanitizer and UBSan."""
    return [*COMMON_FLAGS, *(SANITIZE_FLAGS if is_on("ACLNN_BUILD_SANITIZE", "0") else ())]


def linker_flags() -> list[str]:
    if is_on("ACLNN_BUILD_SANITIZE", "0"):
        return ["-fsanitize=address,undefined"]
    return ["-Wl,-s"] if sys.platform == "linux" else []  # no symbols that only debuggers read


def headers(folder: Path) -> list[str]:
    """The files that objects in a folder were compiled from."""
    return sorted({name for path in folder.rglob("*.d") for name in headers_of(path)})


def headers_of(path: Path) -> list[str]:
    """The files that an object was compiled from, as the compiler told in a file; of these, what is still there."""
    if not path.exists():
        return []
    made_of = path.read_text(encoding="utf-8").partition(":")[2].replace("\\\n", " ")
    names = [name.replace("\\ ", " ") for name in re.findall(r"(?:\\ |\S)+", made_of)]
    return [name for name in names if os.path.exists(name)]


def extension(name: str, source: str, flags: tuple[str, ...] = ()) -> Extension:
    return Extension(
        name,
        [source],
        include_dirs=INCLUDES,
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        extra_compile_args=[*compiler_flags(), "-MMD", *flags],  # writes what it includes
        extra_link_args=linker_flags(),
    )


def translate(extensions: list[Extension], shared: str | None = SHARED) -> list[Extension]:
    """Cython to C, where its sources changed, and of that, which functions are compiled for size.

    `shared`: the module that has what Cython adds; without it each has its own, which calls pass faster.
    """
    declare_graph()
    notes = kept("translated")
    settings = repr([version("cython"), sys.version_info[:2], DIRECTIVES, shared])
    changed = [
        ext
        for ext in extensions
        if not (notes.is_done(ext.name, settings) and (HERE / c_file(ext)).exists())
    ]
    if changed:
        say(f"translating {len(changed)} of {len(extensions)} Cython sources to C")
        for ext, files in translated_now(changed, shared).items():
            notes.done(ext, settings, files)
    for ext in extensions:
        ext.sources = [c_file(ext)]
    return extensions


def c_file(ext: Extension) -> str:
    """Where Cython's C file of a module is, which is named after its source."""
    source = ext.sources[0] if ext.sources else f"{ext.name.replace('.', '/')}.c"
    return str(Path(GENERATED, source).with_suffix(".c"))


def translated_now(extensions: list[Extension], shared: str | None) -> dict[str, list[Path]]:
    """Translate modules, and tell which files those of each name were made of."""
    from Cython.Build import cythonize
    from Cython.Build.Dependencies import create_dependency_tree
    from Cython.Compiler import Options

    Options.emit_code_comments = (
        False  # of the sources' lines, which move where nothing else changes
    )
    before = {ext.name: take(HERE / c_file(ext)) for ext in extensions}  # Cython goes by times
    read = {ext.name: ext.sources[:1] for ext in extensions}
    with messages_in(HERE / "build" / "cython.log"):
        translated = cythonize(
            extensions,
            nthreads=processors(),
            quiet=True,
            build_dir=GENERATED,
            include_path=[".", GENERATED],
            compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=shared,
        )
    tool = HERE / "tools" / "mark_cold.py"
    mark = load(str(tool)).mark
    found = {}
    for ext in translated:
        path = HERE / ext.sources[0]
        mark(path, is_kernel=path.stem.endswith("kernels"))
        if (earlier := before[ext.name]) and earlier[0] == path.read_bytes():
            os.utime(path, ns=(earlier[1], earlier[1]))  # nothing to compile
        sources = read[ext.name]
        found[ext.name] = [tool]
        for source in map(Path, sources):  # with declarations of its own, which may be new
            inner = create_dependency_tree().all_dependencies(str(source))
            found[ext.name] += [source, source.with_suffix(".pxd"), *map(Path, inner)]
    return found


def declare_graph() -> None:
    """Write the declarations of `graph/` where Cython finds them under the names that they install as."""
    folder, paths = HERE / GENERATED, (HERE / "graph").rglob("*.pxd")
    names = {f"aclnn.{'.'.join(path.relative_to(HERE).parts)}": path for path in paths}
    for stale in {path.name for path in folder.glob("aclnn.graph.*.pxd")} - names.keys():
        (folder / stale).unlink()
    for name, path in names.items():
        if not (folder / name).exists() or (folder / name).read_bytes() != path.read_bytes():
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / name)


def take(path: Path) -> tuple[bytes, int] | None:
    """The contents and the time of a file, which is removed; None where there is none."""
    if not path.exists():
        return None
    taken = path.read_bytes(), path.stat().st_mtime_ns
    path.unlink()
    return taken


def longest_first(extensions: list[Extension]) -> list[Extension]:
    """What takes longest begins first, where several are built at a time."""
    return sorted(extensions, key=lambda ext: -(HERE / ext.sources[0]).stat().st_size)


def extensions() -> list[Extension]:
    generate_interface()
    threads = ("-pthread", *openmp_flags())
    found = []
    for folder, package in (("aclnn", "aclnn"), ("graph", "aclnn.graph")):
        for path in sorted((HERE / folder).rglob("*.pyx")):
            if path.stem in KERNELS:
                continue
            inner = path.relative_to(HERE / folder)
            name = ".".join([package, *inner.with_suffix("").parts])
            smaller = SIZE_FLAGS.get(path.stem)
            flags = (*CALL_FLAGS, smaller) if smaller else CALL_FLAGS
            ext = extension(name, f"{folder}/{inner.as_posix()}", flags)
            if path.stem == "_cpu" and not has_x86_levels():
                ext.define_macros.append(("ACLNN_NO_X86_LEVELS", "1"))
            if inner.parent.name in READERS:
                ext.include_dirs = [*ext.include_dirs, *RUNTIME_INCLUDES]
            if inner.parent.name == "capi":
                ext.include_dirs += CAPI_INCLUDES
            if path.stem == "_runtime":
                ext.extra_compile_args.append("-pthread")
                ext.extra_link_args.append("-pthread")
            if path.stem == "_scheduler":
                ext.extra_compile_args += threads
                ext.extra_link_args += threads
            found.append(ext)
    return found


def translated_extensions() -> list[Extension]:
    """All extensions but the kernels', in C."""
    every = extensions()
    sharing = [
        one
        for one in every
        if one.name.rpartition(".")[2] in SIZE_FLAGS and not one.name.startswith(ALONE)
    ]
    others = [one for one in every if one not in sharing]
    return [*translate([*sharing, shared_extension()]), *translate(others, None)]


def shared_extension() -> Extension:
    """What Cython adds to modules, which it writes."""
    made = extension(SHARED, "", ("-Os",))
    made.sources = []
    return made


def settings_file(ext: Extension, folder: str) -> str:
    """A file in `folder` that is newer than a module that was compiled in another way."""
    settings = [os.environ.get("CC", ""), ext.extra_compile_args, ext.extra_link_args]
    settings += [os.environ[name] for name in ("CFLAGS", "LDFLAGS") if os.environ.get(name)]
    text = repr([*settings, ext.include_dirs, ext.define_macros])
    path = Path(folder, "settings", ext.name)
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(path)


def module_of(stem: str) -> str:
    """The name of a kernel module: of the sources beside the records of its family, but for the first one."""
    return "aclnn._kernels" if stem == "_kernels" else f"aclnn.kernels.{stem}"


def source_of_kernels(stem: str) -> str:
    return f"{module_of(stem).replace('.', '/')}.pyx"


def remove_unbuilt(names: set[str], folder: Path) -> None:
    """Remove kernels' modules from `folder` that earlier builds made and this one does not: `aclnn.isa` would take what
    is there. `names`: modules of this build."""
    for stem in KERNELS:
        compiled = f"{stem}{sysconfig.get_config_var('EXT_SUFFIX')}"
        stale = [path for isa in SETS for path in (folder / "aclnn").glob(f"{stem}_{isa}.*")]
        if stem != "_kernels":
            stale.append(folder / "aclnn" / compiled)
        if module_of(stem) not in names:
            stale.append((folder / module_of(stem).replace(".", "/")).with_name(compiled))
        for path in stale:
            path.unlink(missing_ok=True)


class BuildKernels(build_ext):
    """Compile the kernels' loops once per instruction set, and all else of their modules once."""

    progress: Progress | None = None

    def finalize_options(self):
        if self.editable_mode:  # what is compiled is kept, as with `build_ext --inplace`
            usual = build(self.distribution)
            usual.finalize_options()
            self.build_lib, self.build_temp = usual.build_platlib, usual.build_temp
        super().finalize_options()
        self.parallel = self.parallel or processors()

    def build_extensions(self):
        loops = [one for ext in self.extensions for one in getattr(ext, "loops", [])]
        for ext in (*self.extensions, *loops):
            made = Path(self.build_temp, ext.name)
            ext.depends = [*headers(made), settings_file(ext, self.build_temp)]
        parts = [(ext, source) for ext in loops for source in ext.sources]
        count = len(self.extensions) + len(parts)
        say(f"compiling what changed of {count} files, {self.parallel} at a time")
        self.progress = Progress(count)
        with messages_in(HERE / "build" / "compiler.log"):
            with ThreadPoolExecutor(self.parallel) as pool:
                made = pool.map(self.build_loops, parts)
                for (ext, _), path in zip(parts, made, strict=True):
                    ext.extra_objects.append(path)
            super().build_extensions()

    def run(self):
        # Here, as setuptools compiles into its own folder, whatever `inplace` said, and copies from there.
        folders = {Path(self.build_lib), *([HERE] if self.inplace or self.editable_mode else ())}
        for folder in folders:
            remove_unbuilt({ext.name for ext in self.extensions}, folder)
        super().run()
        self.build_library()
        self.derive_files()

    def build_library(self):
        """The C interface: a library with headers, as package data that is compiled."""
        if sys.platform != "linux":
            return
        folder = HERE if self.inplace or self.editable_mode else Path(self.build_lib)
        sanitize = SANITIZE_FLAGS if is_on("ACLNN_BUILD_SANITIZE", "0") else []
        load("tools/make_library.py").make_home(
            load("aclnn/capi/generator.py"), HERE / CAPI_GENERATED, folder / "aclnn" / "capi" / "home", sanitize,
            sys.executable if folder == HERE else None,
        )  # fmt: skip

    def derive_files(self):
        """The type stub and the JSON Schemas, which the package derives from its declarations.

        A build that this interpreter cannot import has them from the sources, where they were made before.
        """
        folder = HERE if self.inplace or self.editable_mode else Path(self.build_lib).resolve()
        if is_on("ACLNN_BUILD_SANITIZE", "0") or "_PYTHON_HOST_PLATFORM" in os.environ:
            copy_derived(folder)
            return
        notes, settings = kept("derived"), repr([sys.version_info[:2], modules(folder)])
        if notes.is_done(str(folder), settings):
            return
        # Without bytecode, which would be packed with the modules that are imported there.
        make = [sys.executable, "-B", HERE / "tools" / "make_derived.py", folder, "--list"]
        listed = subprocess.run(make, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
        made_of = [source_of(Path(line), folder) for line in listed.splitlines()]
        notes.done(str(folder), settings, [*made_of, *(HERE / "tools").glob("make_*.py")])

    def build_extension(self, ext):
        # Modules share one C file: keep their objects apart, also where several are built at a time.
        one = copy.copy(self)
        one.build_temp = os.path.join(self.build_temp, ext.name)
        if loops := getattr(ext, "loops", []):
            ext.extra_objects = [one.build_part(ext, ext.sources[0])]
            ext.sources = []
            ext.extra_objects += [made for part in loops for made in part.extra_objects]
            ext.depends = ext.extra_objects
        build_ext.build_extension(one, ext)
        if self.progress:
            self.progress.one_more()

    def build_loops(self, part):
        """Compile one of the files of an instruction set's loops, and return the object's path."""
        ext, source = part
        one = copy.copy(self)
        one.build_temp = os.path.join(self.build_temp, ext.name)
        made = one.build_part(ext, source)
        self.progress.one_more()
        return made

    def build_part(self, ext, source):
        """Compile one of a module's files where it or a header changed, and return the object's path."""
        (made,) = self.compiler.object_filenames([source], output_dir=self.build_temp)
        depends = [source, ext.depends[-1], *headers_of(Path(made).with_suffix(".d"))]
        if self.force or newer_group(depends, made, "newer"):
            self.compiler.compile(
                [source], self.build_temp, ext.define_macros, ext.include_dirs, self.debug,
                extra_postargs=ext.extra_compile_args,
            )  # fmt: skip
        return made


DERIVED = [
    "aclnn/__init__.pyi",
    "aclnn/operators/index.json",
    "aclnn/reports/schemas/profile.json",
    *(f"graph/views/schemas/{name}.json" for name in ("graph", "passes", "plan", "plan_diff", "schedule")),
]  # fmt: skip


def copy_derived(folder: Path) -> None:
    """Copy what the sources' own build derived to another build."""
    for name in DERIVED:
        if not (HERE / name).exists():
            sys.exit(
                f"{name} is missing: run `setup.py build_ext --inplace` first, for this machine"
            )
        if folder != HERE:
            place = folder / (f"aclnn/{name}" if name.startswith("graph/") else name)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(HERE / name, place)


def modules(folder: Path) -> list[str]:
    """The names of Python's modules in a folder."""
    return sorted(
        str(path.relative_to(folder))
        for top in ("aclnn", "graph")
        for path in (folder / top).rglob("*.py")
    )


def source_of(path: Path, folder: Path) -> Path:
    """The source of a compiled module, which says as much of what it documents; other files are their own."""
    if path.suffix != ".so":
        return path
    name = path.relative_to(folder).with_name(f"{path.name.partition('.')[0]}.pyx")
    return HERE / Path(*name.parts[1:]) if name.parts[:2] == ("aclnn", "graph") else HERE / name


def kept(name: str):
    """What earlier builds noted of a kind of steps."""
    return load("tools/incremental.py").Notes(HERE / "build" / "notes" / f"{name}.json")


def load(path: str):
    """A module of the sources by its path: the package is not built yet."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, HERE / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def generate_interface() -> None:
    """Headers of the C interface, and what modules and its library include."""
    folder = HERE / CAPI_GENERATED
    load("aclnn/capi/generator.py").write(folder / "capi", folder / "include")
    make = [sys.executable, HERE / "tools" / "make_runtime_table.py", folder]
    subprocess.run(make, check=True)


def kernel_extensions() -> list[Extension]:
    for stem in KERNELS:
        if not (HERE / source_of_kernels(stem)).exists():
            sys.exit(
                f"{HERE} has no {source_of_kernels(stem)}: without it the package would have no kernels"
            )
    load("tools/make_kernels.py").write(HERE / GENERATED)
    translate([extension(module_of(stem), source_of_kernels(stem)) for stem in KERNELS])
    divided = divided_loops()
    found = []
    for stem, files in divided.items():
        if sets := sets_of(stem):
            found.append(kernel_extension(stem, files, sets))
    return found


def divided_loops() -> dict[str, list[Path]]:
    """The files of each kernel module, divided again where Cython wrote another one."""
    tool, notes = HERE / "tools" / "split_loops.py", kept("divided")
    divide, found = load(str(tool)).write, {}
    for stem in KERNELS:
        source, folder, parts = (
            Path(GENERATED, source_of_kernels(stem)).with_suffix(".c"),
            Path(DIVIDED, stem),
            PARTS.get(stem, 1),
        )
        if notes.is_done(stem, repr(parts)):
            found[stem] = [
                Path(one) for one in notes.get(stem)["files"] if Path(one).parent == folder
            ]
            continue
        found[stem] = divide(source, folder, parts)
        notes.done(stem, repr(parts), [tool, source, *found[stem]])
    return found


def sets_of(stem: str) -> list[str]:
    """The instruction sets that a family has loops of."""
    variants, found = kernel_variants(), []
    for isa, flags in variants.items():
        if stem == "_simd_kernels" and isa not in VECTORS:
            continue
        if stem == "_fused_kernels" and not runs_programs(isa, flags):
            continue
        if BORROWED.get(isa, {}).get(stem) not in variants:
            found.append(isa)
    return found


def kernel_extension(stem: str, files: list[Path], sets: list[str]) -> Extension:
    """A family's module: what Python sees once, and its loops once for each instruction set."""
    # What Python sees of these has declarations with vectors.
    flags = kernel_variants()[sets[0]] if stem in OVER_VECTORS else ()
    ext = extension(module_of(stem), str(files[0]), (*flags, "-Os", *LOOP_WARNINGS))
    tables = extension(f"{module_of(stem)}.sets", str(files[-1]))
    tables.define_macros += [(f"ACLNN_HAS_{isa.upper()}", None) for isa in sets]
    ext.loops = [tables]
    for isa in sets:
        loops = extension(f"{module_of(stem)}.{isa}", "", loop_flags(stem, isa))
        loops.sources = [str(path) for path in files[1:-1]]
        loops.define_macros.append(("ACLNN_SET", isa))
        ext.loops.append(loops)
    return ext


def loop_flags(stem: str, isa: str) -> tuple[str, ...]:
    """The compiler's flags for the loops of a family and an instruction set, besides those of all modules."""
    if isa == "generic":
        flags = GENERIC_FLAGS.get(stem, ())
    else:
        flags = (*kernel_variants()[isa], *(SHORT_FLAGS if stem in SHORT else ()))
    return *flags, *OWN_FLAGS.get(stem, ()), *LOOP_WARNINGS


# Commands that compile. All others pack or describe the sources, for which translating these would take
# minutes and change nothing.
COMPILING = {"bdist", "bdist_wheel", "build", "build_ext", "develop", "editable_wheel", "install"}


def all_extensions(arguments: list[str]) -> list[Extension]:
    """The extensions, if one of the commands needs them."""
    if not COMPILING & set(arguments):
        return []
    return [*kernel_extensions(), *longest_first(translated_extensions())]


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    setup(
        packages=[
            *find_packages(
                include=["aclnn", "aclnn.*"], exclude=["aclnn.benchmark"]
            ),  # for developers
            "aclnn.graph",
            *(f"aclnn.graph.{name}" for name in find_packages("graph")),
        ],
        py_modules=["aclnn_npu_autoload"],
        package_dir={"aclnn": "aclnn", "aclnn.graph": "graph"},
        package_data={
            "aclnn": ["py.typed", "*.pyi", "*/*.pyi"],
            "aclnn.capi": ["interface/*.txt", "interface/include/*.h", "interface/include/*/*/*.h"],
            "aclnn.operators": ["*.json"],
            "aclnn.torch": ["*.json"],
            "aclnn.torch.npu": ["*.cpp"],
            "aclnn.reports": ["templates/*", "schemas/*.json", "vendored/*"],
            "aclnn.graph": ["py.typed", "*/*.pyi", "*/*.h"],
            "aclnn.graph.views": ["schemas/*.json"],
        },
        include_package_data=False,
        ext_modules=all_extensions(sys.argv[1:]),
        cmdclass={"build_ext": BuildKernels},
    )
