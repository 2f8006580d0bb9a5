"""Prototypes in C of all C-shaped functions that CANN's own list of them lacks, from the declarations.

``aclnn/capi/interface/further_operators.txt`` has a line for each, of which headers and the library of further operators
are made. Lines that fit the declarations are kept as they are: C tells ``int`` from ``int64_t`` and knows
constants, which declarations do not. What is missing is added with the types that most functions have.
"""

from __future__ import annotations

import re
from pathlib import Path

FILE = (
    Path(__file__).resolve().parents[1] / "aclnn" / "capi" / "interface" / "further_operators.txt"
)
TYPES = {
    "input": "T", "output": "T&", "inout": "T&", "inputs": "T[]", "single": "T[]", "outputs": "T[]&",
    "scalar": "S", "ints": "I[]", "bools": "B[]", "float": "f64", "bool": "bool", "str": "char*",
    "dtype": "dtype", "int": "i64", "zero": "i64", "ignored": "i64", "absent": "T", "later": "T",
}  # fmt: skip


def header_of(name: str) -> str:
    """The header of a function, without ``aclnn_`` and ``.h``.

    >>> header_of("InplaceIndexAdd"), header_of("Erfc")
    ('index_add', 'erfc')
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.removeprefix("Inplace"))
    return words.lower()


def prototypes(text: str) -> str:
    """The file's right contents, given those that it has."""
    from aclnn.capi import function_pairs
    from aclnn.operators import ENTRIES

    kept = {line.partition("(")[0].split()[-1]: line for line in text.splitlines()}
    first = {one.name for one in function_pairs.FIRST}
    lines = []
    for entry_name, (_, entry) in ENTRIES.items():
        name = entry_name.removeprefix("aclnn")
        if name in first:
            continue
        names = [parameter.name for parameter in entry.parameters]
        line = kept.get(name, "")
        if re.findall(r"(\w+)[,)]", line) != names:
            listed = ", ".join(f"{TYPES[one.kind]} {one.name}" for one in entry.parameters)
            line = f"{header_of(name)}: {name}({listed})"
        lines.append(line)
    return "\n".join(sorted(lines)) + "\n"


if __name__ == "__main__":
    FILE.write_text(prototypes(FILE.read_text(encoding="utf-8")), encoding="utf-8")
