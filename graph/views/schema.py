"""JSON Schemas of documents, derived from the dataclasses that the documents hold.

Types and constraints come from annotations, descriptions from the docstrings: of an object the first
paragraph, of a field its entry under "Attributes".
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from ..attrs import Argument, Attrs
from ..constraints import Length, OneOf, Range

DRAFT = "https://json-schema.org/draft/2020-12/schema"
NOT_A_NUMBER = ("nan", "inf", "-inf")  # floats that JSON lacks
_NAMES = {int: "integer", float: "number", bool: "boolean", str: "string", NoneType: "null"}
_SECTION = re.compile(r"^Attributes\n-+\n(.*?)(?=\n\n[A-Z][\w ]+\n-+\n|\Z)", re.M | re.S)
_ENTRY = re.compile(r"^(\w+) : .*\n((?:    .*(?:\n|\Z))+)", re.M)
_FLOAT = {
    "type": "object",
    "properties": {"float": {"enum": list(NOT_A_NUMBER)}},
    "required": ["float"],
    "additionalProperties": False,
}

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Document:
    """A kind of document: its name with a version, such as ``aclnn.graph/2``, and the class it holds.

    `derived` has, for classes inside it, a dataclass of what is written with their fields and follows
    from the rest.
    """

    name: str
    title: str
    kind: type
    derived: Mapping[type, type]

    @property
    def urn(self) -> str:
        """The identifier that other schemas refer to it by."""
        return f"urn:{self.name.replace('.', ':').replace('/', ':')}"


def schema_of(document: Document, others: Mapping[type, Document]) -> Schema:
    """The JSON Schema of a document, which refers to those of the `others` inside it."""
    made = _Maker(document.derived, others).object(document.kind)
    first = {"const": document.name, "description": "Kind of the document, and its version."}
    return {
        "$schema": DRAFT,
        "$id": document.urn,
        "title": document.title,
        **made,
        "properties": {"schema": first, **made["properties"]},
        "required": ["schema", *made["required"]],
    }


@dataclass(frozen=True, slots=True)
class _Maker:
    """Rules for the values that annotations allow."""

    derived: Mapping[type, type]
    others: Mapping[type, Document]

    def object(self, kind: type) -> Schema:
        """The rule for a dataclass: it has all its fields but optional ones, and no others."""
        properties = dict(self._properties(kind))
        return {
            "type": "object",
            "description": summary(kind),
            "properties": properties,
            "required": [name for name in properties if name not in optional_fields(kind)],
            "additionalProperties": False,
        }

    def _properties(self, kind: type) -> Iterator[tuple[str, Schema]]:
        described = descriptions(kind)
        for name, hint in written_fields(kind).items():
            yield name, self.value(hint) | {"description": described[name]}
        if kind in self.derived:
            yield from self._properties(self.derived[kind])

    def value(self, hint: Any) -> Schema:
        if hint is Argument:
            return self._argument()
        if hint in self.others:
            return {"$ref": self.others[hint].urn}
        if hint in _NAMES:
            return {"type": _NAMES[hint]}
        if is_dataclass(hint):
            return self.object(hint)  # type: ignore[arg-type]
        if hint == Attrs:
            return {"type": "object"}
        home, inner = get_origin(hint), get_args(hint)
        if home is Annotated:
            return self.value(inner[0]) | dict(_constraints(inner[1:]))
        if home in (UnionType, Union):
            return self._union(inner)
        if home is dict:
            return {"type": "object", "additionalProperties": self.value(inner[1])}
        return self._array(inner)

    def _array(self, inner: tuple[Any, ...]) -> Schema:
        if inner[-1] is Ellipsis:
            return {"type": "array", "items": self.value(inner[0])}
        rules = [self.value(one) for one in inner]
        return {"type": "array", "prefixItems": rules, "items": False, "minItems": len(rules)}

    def _union(self, inner: tuple[Any, ...]) -> Schema:
        if inner[1:] != (NoneType,):  # the numbers that a kernel takes
            return {"anyOf": [{"type": "number"}, _FLOAT, self._argument()]}
        rule = self.value(inner[0])
        if rule["type"] == "object":
            return {"oneOf": [{"type": "null"}, rule]}
        return rule | {"type": [rule["type"], "null"]}

    def _argument(self) -> Schema:
        """The rule for a run-time number, whose place documents call `argument`."""
        made = self.object(Argument)
        properties = {"argument": made["properties"].pop("place"), **made["properties"]}
        return made | {"properties": properties, "required": list(properties)}


def _constraints(found: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    for one in found:
        if isinstance(one, OneOf):
            yield "enum", list(one.words)
        suffix = "Items" if isinstance(one, Length) else "imum"
        for bound in ("min", "max") if isinstance(one, (Range, Length)) else ():
            if (number := getattr(one, f"{bound}imum")) is not None:
                yield f"{bound}{suffix}", number


@cache
def written_fields(kind: type) -> dict[str, Any]:
    """Names and annotations of the fields that documents have: those that objects are compared by."""
    hints = get_type_hints(kind, include_extras=True)
    return {one.name: hints[one.name] for one in fields(kind) if one.compare}


@cache
def optional_fields(kind: type) -> dict[str, Any]:
    """Fields that documents leave out where they are as by default, with their defaults."""
    return {one.name: one.default for one in fields(kind) if one.metadata.get("optional")}


@cache
def descriptions(kind: type) -> dict[str, str]:
    """The entry of each field under "Attributes" in the docstring, as one line."""
    found = _SECTION.search(inspect.cleandoc(kind.__doc__ or ""))
    entries = _ENTRY.findall(f"{found[1]}\n") if found else ()
    lines = {name: " ".join(text.split()) for name, text in entries}
    return {name: lines.get(name, "") for name in written_fields(kind)}


def summary(kind: type) -> str:
    """The first paragraph of the docstring, as one line."""
    return " ".join(inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].split())
