"""The command line: ``aclnn`` and ``python -m aclnn``."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from aclnn._version import __version__
from aclnn.errors import AclnnError

# Each is a module of this package with `add_arguments(parser)` and `run(options) -> int`.
COMMANDS = {
    "demo": "all six operators through both phases, checked against a reference",
    "ops": "the operators: signatures, dtypes, formulas",
    "inspect": "one executor from every side: graph, passes, plan, schedule, profile",
    "plan": "workspace plans, of operators or of lifetimes of your own",
    "bench": "timings against the peers that are installed",
    "config": "versions, instruction set, threads, product",
}


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="aclnn", description="CANN's aclnn operators on the CPU: run, inspect, plan, measure."
    )
    top.add_argument("--version", action="version", version=f"aclnn-cpu {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        module = importlib.import_module(f"aclnn.cli.{name}")
        one = commands.add_parser(name, help=summary, description=module.__doc__)
        module.add_arguments(one)
        one.set_defaults(run=module.run)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 for success, 1 for a failed run, 2 for bad usage."""
    options = parser().parse_args(arguments)
    try:
        return options.run(options)
    except AclnnError as error:
        print(f"aclnn {options.command}: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        print(f"aclnn {options.command}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1
