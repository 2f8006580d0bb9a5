"""Environment variables: their meaning, validation and defaults.

A variable is read once, when its setting is first used, which is at the latest when the first call is
planned. An empty value counts as unset. An invalid value raises an `AclnnError` at that point, whose
message has the variable, the value and the rule: warnings are easily overlooked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from aclnn.acl import socs
from aclnn.acl.arguments import did_you_mean, shown
from aclnn.acl.errors import AclnnError, invalid
from aclnn.graph.planner.strategies import STRATEGIES
from aclnn.graph.runtime.abi import MAX_THREADS

T = TypeVar("T")

MOST_PLANS = 2**31 - 1  # kept as a C int
LOGS = ("stderr", "logger")
FALLBACKS = ("count", "warn", "forbid")
INSTRUCTION_SETS = ("generic", "neon", "v3", "v4")  # that kernels are built for, best last
_OTHERS = ("ACLNN_BUILD_", "ACLNN_REQUIRE_")  # of the build and of tests
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class Variable(Generic[T]):
    """One variable.

    Attributes
    ----------
    name, meaning, values : str
        For people: `values` are those that it may have.
    default : object
        What holds when the variable is not set, or empty.
    parse : callable
        Makes the value of the text, or raises `ValueError` with the rule that it breaks.
    otherwise : str
        The default in words, where `default` says too little.
    """

    name: str
    meaning: str
    values: str
    default: T
    parse: Callable[[str], T]
    otherwise: str = ""

    @property
    def without(self) -> str:
        """Default in words."""
        return self.otherwise or f"`{self.default}`"

    @property
    def text(self) -> str:
        """Text of the variable, empty when it is not set."""
        return os.environ.get(self.name, "").strip()

    def read(self) -> T:
        """The value.

        Raises
        ------
        AclnnError
            If the text makes no sense.

        Examples
        --------
        >>> os.environ["ACLNN_NUM_THREADS"] = "many"
        >>> NUM_THREADS.read()
        Traceback (most recent call last):
        ...
        aclnn.AclnnError: ACLNN_NUM_THREADS is 'many', must be an integer from 1 to 1024
        >>> del os.environ["ACLNN_NUM_THREADS"]
        """
        text = self.text
        if not text:
            return self.default
        try:
            return self.parse(text)
        except ValueError as rule:
            raise self.refused(rule) from None

    def refused(self, rule: object) -> AclnnError:
        """The error that says which rule the text breaks."""
        return invalid(f"{self.name} is {shown(self.text)}, {rule}")


_WHOLE = re.compile("([+-]?)([0-9]+)")


def whole(text: str, low: int, high: int) -> int:
    """An integer from `low` to `high`, in plain digits.

    What else `int` reads, such as ``1_0`` or ``²``, is more likely a slip.

    >>> whole("012", 0, 99), whole("-3", -5, 5)
    (12, -3)
    >>> whole("1_0", 0, 99)
    Traceback (most recent call last):
    ...
    ValueError: must be an integer from 0 to 99
    """
    if found := _WHOLE.fullmatch(text):
        sign, digits = found[1], found[2].lstrip("0") or "0"
        # Python converts no more than some thousand digits.
        if len(digits) <= len(str(max(-low, high))) and low <= int(sign + digits) <= high:
            return int(sign + digits)
    raise ValueError(f"must be an integer from {low} to {high}")


def truth(text: str) -> bool:
    """Yes or no, in the words for it.

    >>> truth("Yes"), truth("off")
    (True, False)
    """
    if text.lower() not in (*_TRUE, *_FALSE):
        raise ValueError(f"must be one of {', '.join(_TRUE)}, or of {', '.join(_FALSE)}")
    return text.lower() in _TRUE


def _one_of(text: str, names: Sequence[str]) -> str:
    if text.lower() not in names:
        raise ValueError(f"must be one of {', '.join(names)}{did_you_mean(text, names)}")
    return text.lower()


def _product(text: str) -> str:
    try:
        return socs.family(text)
    except AclnnError:
        raise ValueError(socs.RULE) from None


MOST_COUNTED = 10**18 - 1  # everything that counts bytes or elements takes it
_UNITS = {"": 1, "B": 1} | {
    f"{letter}{form}": base**power
    for power, letter in enumerate("KMGT", 1)
    for form, base in (("iB", 1024), ("B", 1000), ("", 1024))
}
_SIZE = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([KMGT]?(?:i?B)?)\s*", re.IGNORECASE)


def size_in_bytes(text: str) -> int:
    """A number of bytes, perhaps with a unit.

    >>> size_in_bytes("64GiB") == 64 << 30, size_in_bytes("1.5 kB")
    (True, 1500)
    """
    units = {unit.lower(): factor for unit, factor in _UNITS.items()}
    found = _SIZE.fullmatch(text)
    if not found or found[2].lower() not in units:
        raise ValueError("must be a number of bytes from 0 to 999999999999999999, or such as 3KiB")
    count = int(Decimal(found[1]) * units[found[2].lower()])
    if count > MOST_COUNTED:
        raise ValueError(f"must be at most {MOST_COUNTED} bytes")
    return count


def _soc_name(text: str) -> str:
    _product(text)
    return text


def _absolute(text: str) -> Path:
    if not Path(text).is_absolute():
        raise ValueError("must be an absolute path")
    return Path(text)


def _in_a_folder(text: str) -> Path:
    if not Path(text).absolute().parent.is_dir():
        raise ValueError("must be a file in a folder that exists")
    return Path(text)


def _executable(text: str) -> str:
    if not os.access(text, os.X_OK):
        raise ValueError("must be an executable file")
    return text


ISA: Variable[str | None] = Variable(
    "ACLNN_ISA",
    "The instruction set whose kernels run.",
    f"{', '.join(f'`{name}`' for name in INSTRUCTION_SETS)}, as far as the CPU has them",
    None,
    partial(_one_of, names=INSTRUCTION_SETS),
    "the best that the CPU has",
)
NUM_THREADS: Variable[int | None] = Variable(
    "ACLNN_NUM_THREADS",
    "How many threads a run may use; see `aclnn.set_num_threads`.",
    f"1 to {MAX_THREADS}",
    None,
    partial(whole, low=1, high=MAX_THREADS),
    "the CPUs that the process may use, at most 64",
)
SOC_VERSION = Variable(
    "ACLNN_SOC_VERSION",
    "The product whose dtype rules hold; see `aclnn.set_soc_version`.",
    "a product or its family, such as `Ascend310P3` or `Ascend910B`",
    "Ascend910B",
    _product,
)
PLANNER = Variable(
    "ACLNN_PLANNER",
    "How workspaces are planned; see `aclnn.executor`.",
    ", ".join(f"`{name}`" for name in STRATEGIES),
    "default",
    partial(_one_of, names=tuple(STRATEGIES)),
)
MATERIALIZE = Variable(
    "ACLNN_MATERIALIZE",
    "Whether every intermediate is stored in full, for inspection; see `aclnn.executor`.",
    "; ".join(", ".join(f"`{word}`" for word in words) for words in (_TRUE, _FALSE)),
    False,
    truth,
    "`0`",
)
PLAN_CACHE = Variable(
    "ACLNN_PLAN_CACHE",
    "How many plans are kept for calls of the same description; 0 keeps none.",
    f"0 to {MOST_PLANS}",
    1024,
    partial(whole, low=0, high=MOST_PLANS),
)
VERBOSE = Variable(
    "ACLNN_VERBOSE",
    "Write a line for every call (1), and the plan of every phase one (2); see `aclnn.set_verbose`.",
    "`0`, `1`, `2`",
    0,
    partial(whole, low=0, high=2),
)
VERBOSE_TO = Variable(
    "ACLNN_VERBOSE_TO",
    "Where these lines go: standard error, or Python's logger `aclnn`.",
    ", ".join(f"`{name}`" for name in LOGS),
    "stderr",
    partial(_one_of, names=LOGS),
)
CACHE_DIR: Variable[Path | None] = Variable(
    "ACLNN_CACHE_DIR",
    'The folder of measurements on this machine, by which `torch.compile(backend="aclnn")` chooses.',
    "an absolute path",
    None,
    _absolute,
    "`aclnn` in `$XDG_CACHE_HOME`, or in `~/.cache`",
)
RECORD: Variable[Path | None] = Variable(
    "ACLNN_RECORD",
    "A file for the calls of a program in C, as lines of Python that reproduce them.",
    "a path",
    None,
    _in_a_folder,
    "nothing is recorded",
)
REPORT: Variable[Path | None] = Variable(
    "ACLNN_REPORT",
    "A file for a page about what a program in C ran: graphs, plans and times, written at its end.",
    "a path",
    None,
    _in_a_folder,
    "no page is written",
)
MOST_DEVICES = 64
NPU_DEVICES = Variable(
    "ACLNN_NPU_DEVICES",
    "How many devices `aclrtGetDeviceCount` counts: all share this machine's memory, and have separate streams.",
    f"1 to {MOST_DEVICES}",
    1,
    partial(whole, low=1, high=MOST_DEVICES),
)
NPU = Variable(
    "ACLNN_NPU",
    "Enable the emulated npu device of PyTorch in every process that imports PyTorch; see `aclnn.torch.npu`.",
    "`0`, `1`",
    False,
    truth,
    "`0`",
)
NPU_SOC = Variable(
    "ACLNN_NPU_SOC",
    "What that device says that it is.",
    "a name such as `Ascend910B3`",
    "Ascend910B3",
    _soc_name,
)
NPU_MEMORY = Variable(
    "ACLNN_NPU_MEMORY",
    "Memory of each such device, beyond which `torch.OutOfMemoryError` is raised.",
    "bytes, such as `32GiB`",
    64 << 30,
    size_in_bytes,
    "`64GiB`",
)
NPU_FALLBACK = Variable(
    "ACLNN_NPU_FALLBACK",
    "What happens besides counting where PyTorch's kernel for the CPU computes an operator of that device.",
    ", ".join(f"`{name}`" for name in FALLBACKS),
    "count",
    partial(_one_of, names=FALLBACKS),
)
DEBUG = Variable(
    "ACLNN_DEBUG",
    "Refuse calls on streams that may run at once with others whose memory or workspace they share.",
    "`0`, `1`",
    False,
    truth,
    "`0`",
)
PYTHON: Variable[str | None] = Variable(
    "ACLNN_PYTHON",
    "The interpreter that programs in C start.",
    "a path",
    None,
    _executable,
    "the one that the package is installed for",
)

VARIABLES: tuple[Variable[Any], ...] = (
    ISA, NUM_THREADS, SOC_VERSION, PLANNER, MATERIALIZE, PLAN_CACHE, CACHE_DIR, RECORD, REPORT, NPU_DEVICES, NPU, NPU_SOC, NPU_MEMORY,
    NPU_FALLBACK, DEBUG, PYTHON, VERBOSE, VERBOSE_TO,
)  # fmt: skip


def given() -> dict[str, str]:
    """The variables that the environment sets, with their texts."""
    return {variable.name: variable.text for variable in VARIABLES if variable.text}


def unknown() -> dict[str, str]:
    """Variables that look like ours and are none, with what is probably meant.

    >>> os.environ["ACLNN_THREADS"] = "1"
    >>> unknown()
    {'ACLNN_THREADS': "; did you mean 'ACLNN_NUM_THREADS'?"}
    >>> del os.environ["ACLNN_THREADS"]
    """
    known = [variable.name for variable in VARIABLES]
    return {
        name: did_you_mean(name, known)
        for name in sorted(os.environ)
        if name.startswith("ACLNN_") and name not in known and not name.startswith(_OTHERS)
    }


@contextmanager
def ignored() -> Iterator[None]:
    """A block in which no variable is set, whatever sense the environment makes."""
    kept = {variable.name: os.environ.pop(variable.name, None) for variable in VARIABLES}
    try:
        yield
    finally:
        os.environ.update({name: text for name, text in kept.items() if text is not None})


def described() -> list[str]:
    """Variables and their values, for terminals.

    >>> print("\\n".join(described()[-2:]))
    ACLNN_VERBOSE_TO   Where these lines go: standard error, or Python's logger aclnn.
                       stderr, logger; default stderr
    """
    lines = []
    for one in VARIABLES:
        lines += [f"{one.name:18} {one.meaning}", f"{'':18} {one.values}; default {one.without}"]
    return [line.replace("`", "") for line in lines]


def to_markdown() -> str:
    """Variables, as a table.

    >>> print(to_markdown().splitlines()[-1])
    | `ACLNN_VERBOSE_TO` | Where these lines go: standard error, or Python's logger `aclnn`. | `stderr`, `logger` | `stderr` |
    """
    from aclnn.graph.views import tables  # whoever only calls operators needs no views

    rows = [(f"`{one.name}`", one.meaning, one.values, one.without) for one in VARIABLES]
    headers = "variable", "what it sets", "values", "default"
    return tables.to_markdown((tables.make(headers, rows),))
