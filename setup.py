"""Build the extension modules: one scheduler, one set of kernels per instruction set.

`graph/` installs as `aclnn.graph`.  The kernels' one Cython source becomes one C
file, compiled once per instruction set into a module of its own; `aclnn.isa`
picks the module at the first use.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).parent
VERSION = next(
    line.split('"')[1]
    for line in (HERE / "aclnn" / "_version.py").read_text().splitlines()
    if line.startswith("__version__")
)

# -fno-trapping-math lets comparisons and selects vectorise; -ffp-contract=off leaves fusing to
# the formulas, so that every instruction set with FMA gives the same bits.  Never -ffast-math:
# it deletes the compensation terms that the float32 results stand on. Copies look at elements of
# any type as integers of their size, and what an empty view would reach may overflow.
COMMON_FLAGS = [
    "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fno-strict-aliasing",
    "-fwrapv", "-g0",
]  # fmt: skip
INCLUDES = ["graph", "aclnn/kernels"]
X86_LEVELS = {
    "v2": ["-march=x86-64-v2"],
    "v3": ["-march=x86-64-v3"],
    "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
}


DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "cdivision": True,  # C's division: no exception for zero, which formulas meet and mean
    "initializedcheck": False,
}


def compiles(flags: list[str], source: str = "int main(void) { return 0; }\n") -> bool:
    """Tell whether the C compiler accepts `flags`, so that an older one builds fewer variants."""
    compiler = os.environ.get("CC", "cc").split()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probe.c"
        path.write_text(source)
        command = [*compiler, *flags, str(path), "-o", str(path.with_suffix(""))]
        try:
            return subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            return False


def openmp_flags() -> list[str]:
    """`-fopenmp` where it works and `ACLNN_OPENMP` is not off; without it one thread does all."""
    if os.environ.get("ACLNN_OPENMP", "").strip().lower() in ("0", "false", "no", "off"):
        return []
    source = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
    return ["-fopenmp"] if compiles(["-fopenmp"], source) else []


def kernel_variants() -> dict[str, list[str]]:
    variants = {"generic": []}
    # What is built for, not on: macOS may build for two architectures at once.
    if sysconfig.get_platform().lower().endswith(("x86_64", "amd64")):
        for name, flags in X86_LEVELS.items():
            # Clang 16 and GCC 11 have the flags, but cannot ask the CPU.
            asks = f'int main(void) {{ return !__builtin_cpu_supports("x86-64-{name}"); }}\n'
            if compiles(flags, asks):
                variants[name] = flags
    return variants


def extension(name: str, source: str, flags: tuple[str, ...] = ()) -> Extension:
    return Extension(
        name,
        [source],
        include_dirs=INCLUDES,
        depends=[
            str(p.relative_to(HERE))
            for pattern in ("graph/*.h", "aclnn/kernels/*.h", "aclnn/*.pxd")
            for p in HERE.glob(pattern)
        ],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        extra_compile_args=[*COMMON_FLAGS, *flags],
    )


def scheduler_and_friends() -> list[Extension]:
    threads = tuple(openmp_flags())
    found = []
    for folder, package in (("aclnn", "aclnn"), ("graph", "aclnn.graph")):
        for path in sorted((HERE / folder).glob("*.pyx")):
            if path.stem == "_kernels":
                continue
            ext = extension(f"{package}.{path.stem}", f"{folder}/{path.name}")
            if path.stem in ("_dlpack", "_functional"):
                ext.include_dirs.append(numpy.get_include())
            if path.stem == "_scheduler":
                ext.extra_compile_args += threads
                ext.extra_link_args = list(threads)
            found.append(ext)
    return found


class BuildKernels(build_ext):
    """Compile the kernels' C file once per instruction set, each into its own module."""

    def build_extension(self, ext):
        # Modules share one C file: keep their objects apart.
        base = self.build_temp
        self.build_temp = os.path.join(base, ext.name)
        try:
            super().build_extension(ext)
        finally:
            self.build_temp = base


def kernel_extensions() -> list[Extension]:
    if not (HERE / "aclnn" / "_kernels.pyx").exists():
        sys.exit(f"{HERE} has no aclnn/_kernels.pyx: without it the package would have no kernels")
    (translated,) = cythonize(
        [extension("aclnn._kernels", "aclnn/_kernels.pyx")],
        build_dir="build/cython",
        compiler_directives=DIRECTIVES,
    )
    found, variants = [], kernel_variants()
    for name, flags in variants.items():
        ext = extension(f"aclnn._kernels_{name}", translated.sources[0], tuple(flags))
        # The C file is written for a module called _kernels; the variant's own name is needed
        # only where the interpreter looks its entry point up.
        ext.define_macros.append(("PyInit__kernels", f"PyInit__kernels_{name}"))
        if len(variants) > 1:  # the compiler can ask which of them the CPU has
            ext.define_macros.append(("ACLNN_X86_LEVELS", "1"))
        found.append(ext)
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    setup(
        version=VERSION,
        packages=[
            *find_packages(include=["aclnn", "aclnn.*"]),
            "aclnn.graph",
            *(f"aclnn.graph.{name}" for name in find_packages("graph")),
        ],
        package_dir={"aclnn": "aclnn", "aclnn.graph": "graph"},
        package_data={
            "aclnn": ["py.typed", "*.pyi", "*.pxd", "kernels/*.h", "templates/*", "schemas/*.json"],
            "aclnn.graph": ["py.typed", "*.pyi", "*.h"],
            "aclnn.graph.views": ["schemas/*.json"],
        },
        include_package_data=False,
        ext_modules=[
            *cythonize(
                scheduler_and_friends(), build_dir="build/cython", compiler_directives=DIRECTIVES
            ),
            *kernel_extensions(),
        ],
        cmdclass={"build_ext": BuildKernels},
    )
