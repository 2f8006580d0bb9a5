"""Run an unmodified program with the emulated npu device: a script, or a module as `python -m` does.

What follows the script or the module are its own arguments. At the end a report tells which operators this package
computed, which fell back to PyTorch's kernels for the CPU, and which calls were refused.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from pathlib import Path

from aclnn.acl import files
from aclnn.acl.errors import AclnnError, invalid
from aclnn.cli.values import natural, size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--soc", metavar="NAME", help="what the device says that it is (default: Ascend910B3)"
    )
    parser.add_argument(
        "--devices", type=natural, metavar="N", help="how many there are (default: 1)"
    )
    parser.add_argument(
        "--memory",
        type=size,
        metavar="BYTES",
        help="memory of each, such as 32GiB (default: 64GiB)",
    )
    parser.add_argument(
        "--forbid-fallback", action="store_true", help="make each fallback an error"
    )
    parser.add_argument(
        "--report", metavar="FILE", help="write the report there as JSON instead of printing it"
    )
    parser.add_argument(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        metavar="MODULE",
        help="run a module, with its arguments",
    )
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="SCRIPT", help="a script, with its arguments"
    )


def run(options: argparse.Namespace) -> int:
    words = options.module or options.program
    if not words:
        options.refuse("name a script, or -m and a module")
    _set_variables(options)
    try:
        from aclnn.torch import npu
    except ImportError as error:
        raise invalid(str(error)) from None
    try:
        npu.enable_from_environment()
    except AclnnError:
        raise
    except (RuntimeError, ValueError) as error:
        raise invalid(str(error)) from None
    try:
        return _status(words, is_module=bool(options.module))
    finally:
        report = npu.report()
        if options.report:
            files.write(Path(options.report), report.to_json() + "\n")
        else:
            print(report, file=sys.stderr)


def _set_variables(options: argparse.Namespace) -> None:
    """Settings as environment variables, which processes that the program starts see, too."""
    os.environ["ACLNN_NPU"] = "1"
    arguments = {"SOC": options.soc, "DEVICES": options.devices, "MEMORY": options.memory}
    arguments["FALLBACK"] = "forbid" if options.forbid_fallback else None
    os.environ.update({f"ACLNN_NPU_{k}": str(v) for k, v in arguments.items() if v is not None})


def _status(words: list[str], is_module: bool) -> int:
    """Run the program; its exit status."""
    before, sys.argv = sys.argv, list(words)
    folder = "" if is_module else str(Path(words[0]).resolve().parent)
    sys.path.insert(0, folder)
    try:
        if is_module:
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    finally:
        sys.argv = before
        if folder in sys.path:
            sys.path.remove(folder)
    return 0
