"""Views of objects, by functions that are registered for their types.

`aclnn.graph.views` registers them; the classes that are shown know no more than their names.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Self

_VIEWS: dict[tuple[type, str], tuple[str, str]] = {}
_REGISTRARS: list[str] = []


def declare_registrar(module: str) -> None:
    """Name a module that registers views when it is imported, which happens when a view is first used."""
    _REGISTRARS.append(module)


def register_view(kind: type, name: str, module: str, function: str) -> None:
    """Make a function the view of a type by a name; its module is imported when it is first used."""
    _VIEWS[kind, name] = module, function


def view_of(kind: type, name: str) -> Callable[..., Any]:
    """The view that is registered for a type, or for the nearest of those that it derives from."""
    while _REGISTRARS:
        import_module(_REGISTRARS[-1])
        _REGISTRARS.pop()
    for base in kind.__mro__:
        if (base, name) in _VIEWS:
            module, function = _VIEWS[base, name]
            return getattr(import_module(module), function)
    raise TypeError(f"{kind.__name__} has no view {name!r}")


class Viewed:
    """Base class of objects that have a JSON document and show themselves in notebooks."""

    __slots__ = ()

    def _view(self, name: str, *arguments: Any) -> Any:
        """Result of the view by this name."""
        return view_of(type(self), name)(self, *arguments)

    def to_json(self, indent: int | None = None) -> str:
        """A document of the schema that `aclnn.graph.views.json` has for the type.

        Parameters
        ----------
        indent : int, optional
            Spaces for each level; None for a single line.

        Returns
        -------
        str
        """
        return self._view("json", indent)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the document that `to_json` wrote.

        Parameters
        ----------
        text : str

        Returns
        -------
        object
            Equal to the one that was written, and verified; a schedule has no kernels and cannot run.

        Raises
        ------
        ValueError
            Naming the field that does not fit; a `GraphError` or `PlanError` when a graph is not well
            formed or a plan is wrong.
        """
        return view_of(cls, "from_json")(text)

    def _repr_html_(self) -> str:
        return self._view("html")


class Tabled(Viewed):
    """Base class of objects that have tables as well."""

    __slots__ = ()

    def to_text(self, wide: bool = False) -> str:
        """Tables with a summary.

        Parameters
        ----------
        wide : bool
            Whether to show every column, in lines of any length.  Otherwise, lines have at most 100
            characters, and names lose their middle where they have no room.

        Returns
        -------
        str
        """
        return self._view("text", wide)

    def to_rich(self, wide: bool = False) -> Any:
        """The tables of `to_text` for `rich.print`.

        Parameters
        ----------
        wide : bool
            Whether to show every column.

        Returns
        -------
        rich.console.Group

        Raises
        ------
        ModuleNotFoundError
            When the package rich is not installed.
        """
        return self._view("rich", wide)

    def __str__(self) -> str:
        return self.to_text()
