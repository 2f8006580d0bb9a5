"""The command line: ``aclnn`` and ``python -m aclnn``."""

from __future__ import annotations

import argparse
import importlib
import io
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NoReturn

from aclnn import environment
from aclnn._version import __version__
from aclnn.acl.arguments import did_you_mean
from aclnn.acl.errors import AclnnError
from aclnn.graph.summaries import printable

# Each is a module of this package with `add_arguments(parser)` and `run(options) -> int`;
# `options.refuse(message)` ends the command as bad usage.
COMMANDS = {
    "demo": "six functions of every family through both phases, checked against float64",
    "ops": "the operators: signatures, dtypes, formulas",
    "inspect": "one executor from every side: graph, passes, plan, schedule, profile",
    "plan": "workspace plans, of operators or of lifetimes of your own",
    "run": "a model in ONNX on arrays of files, with times and memory",
    "compare": "a model in ONNX node by node, with ONNX Runtime or the reference",
    "bench": "timings against the peers that are installed",
    "npu": "an unmodified PyTorch program with an emulated npu device",
    "config": "versions, instruction set, threads, SoC",
}

_NUMBER = r"((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|inf(inity)?|nan)"
_BELOW_ZERO = re.compile(rf"-{_NUMBER}(,\s*-?{_NUMBER})*", re.IGNORECASE)
EXAMPLE_OPERAND = "--self"  # which usages name among the options


class Parser(argparse.ArgumentParser):
    """A parser that guesses misspelt options and choices, and tells of bad usage in two lines."""

    def error(self, message: str) -> NoReturn:
        self.exit(
            2,
            f"usage: {self.prog} --help describes what there is\n"
            + printable(f"{self.prog}: error: {message}{self._meant(message)}\n"),
        )

    def _meant(self, message: str) -> str:
        """A hint for a word that is nearly a known one."""
        if found := _INVALID_CHOICE.search(message):
            return did_you_mean(found[1], re.findall(r"[\w.-]+", found[2]))
        if message.startswith("unrecognized arguments: "):
            words, _, taken = message.partition(";")
            known = [name for name in self._option_string_actions if name.startswith("--")]
            if own := re.findall(r"--[\w-]+", taken):  # operands are those of the operator
                known = [*own, *(flag for flag in known if flag != EXAMPLE_OPERAND)]
            guesses = [did_you_mean(one, known) for one in re.findall(r"--[\w-]+", words)]
            if not guesses and "--operand" in known and "[" in message:
                return "; operands have names, such as --self float32[64,128]"
            return next(filter(None, guesses), "")
        return ""


_INVALID_CHOICE = re.compile(r"invalid choice: '?([\w.-]+)'? \(choose from (.*)\)")


def parser(command: str | None = None, operator: str | None = None) -> Parser:
    """The parser of the command line, with the arguments of one command, perhaps for one operator.

    Only that command is loaded, with all that it needs: what is broken elsewhere must not take
    `--help` along.
    """
    top = Parser(
        prog="aclnn",
        description="CANN's aclnn operators on the CPU: run, inspect, plan, measure.",
        epilog="`aclnn COMMAND --help` describes a command.",
    )
    top.add_argument("--version", action="version", version=f"aclnn-cpu {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        one = commands.add_parser(name, help=summary)
        if name == command:
            module = importlib.import_module(f"aclnn.cli.{name}")
            one.description = module.__doc__
            described = getattr(module, "add_arguments_of", None)
            if operator and described:
                described(one, operator)
            else:
                module.add_arguments(one)
            one.set_defaults(run=module.run, refuse=one.error)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 for success, 1 for a failed run, 2 for bad usage."""
    _print_to_any_encoding()
    args = sys.argv[1:] if arguments is None else arguments
    words = [*args] if args and args[0] == "npu" else with_numbers(args)
    command = next((word for word in words if not word.startswith("-")), None)
    try:
        asks = bool({"-h", "--help"} & set(words)) and command != "npu"
        with environment.ignored() if asks else nullcontext():
            asked = operator_of_help(words)
            options, unknown = parser(command, asked).parse_known_args(words)
        if unknown:
            options.refuse(
                f"unrecognized arguments: {' '.join(unknown)}{_flags_taken(options, unknown)}"
            )
        return options.run(options)
    except BrokenPipeError:
        from aclnn.cli.show import give_up_output

        give_up_output()
        return 1
    except KeyboardInterrupt:
        print(f"\naclnn {command}: interrupted", file=sys.stderr)
        return 130  # as shells say of SIGINT
    except (AclnnError, ModuleNotFoundError) as error:
        return _failed(command, error)
    except MemoryError as error:
        return _failed(command, str(error) or "memory ran out")
    except OSError as error:  # of a file that cannot be read or written
        reason = error.strerror or str(error)
        return _failed(command, f"{error.filename}: {reason}" if error.filename else reason)


def _flags_taken(options: argparse.Namespace, unknown: Sequence[str]) -> str:
    """The flags of the operator that a command was given, besides one that it does not know."""
    named = getattr(options, "operator", None)
    if not named or not any(word.startswith("--") for word in unknown):
        return ""
    from aclnn.cli.calls import flags_words  # loads all operators

    words = flags_words(named)
    return f"; of {named}, {words}" if words else ""


def operator_of_help(words: Sequence[str]) -> str | None:
    """The operator whose help is asked for: the word after the command, besides ``--help``.

    >>> operator_of_help(["inspect", "gelu", "--help"]), operator_of_help(["inspect", "--help"])
    ('gelu', None)
    """
    plain = [word for word in words if not word.startswith("-")]
    asked = {"-h", "--help"} & set(words)
    return plain[1] if asked and len(plain) == 2 else None


def with_numbers(words: Sequence[str]) -> list[str]:
    """Numbers below zero become part of their option: argparse takes ``-1e-3`` for an option.

    >>> with_numbers(["--eps", "-1e-3", "--slope", "-inf", "-0.5", "--dims", "-1,0"])
    ['--eps=-1e-3', '--slope=-inf', '-0.5', '--dims=-1,0']
    """
    found: list[str] = []
    for word in words:
        option = bool(found) and found[-1].startswith("--") and "=" not in found[-1]
        if option and _BELOW_ZERO.fullmatch(word):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


def _print_to_any_encoding() -> None:
    """Formulas and units go beyond ASCII: a question mark for each sign that the output lacks.

    Another way to replace them, as PYTHONIOENCODING may name one, is left alone.
    """
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and out.errors in ("strict", "surrogateescape"):
        out.reconfigure(errors="replace")


def _failed(command: str | None, reason: object) -> int:
    print(printable(f"aclnn {command}: {reason}"), file=sys.stderr)
    return 1
