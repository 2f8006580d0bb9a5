"""Generation of the files that the built package derives from its own declarations.

`python tools/make_derived.py FOLDER` imports the package in FOLDER, which is a build's or the sources', and writes
into it the type stub `aclnn/__init__.pyi` (`make_stub.py`), the JSON Schemas of documents, and the index of operators
whose declarations it checked.
"""

import argparse
import importlib.util
import json
import sys
from pathlib import Path


class GraphFinder:
    """Finder of `aclnn.graph` in the sources, where it is no folder of `aclnn`."""

    def __init__(self, folder: Path):
        self.folder = folder

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name != "aclnn.graph":
            return None
        return importlib.util.spec_from_file_location(
            name, self.folder / "__init__.py", submodule_search_locations=[str(self.folder)]
        )


def make(folder: Path) -> list[Path]:
    """Write all files, and return their paths with those of all modules that were imported for them."""
    graph = folder / "aclnn" / "graph"
    if not graph.is_dir():
        graph = folder / "graph"
        sys.meta_path.insert(0, GraphFinder(graph))  # type: ignore[arg-type]
    sys.path[:0] = [str(folder), str(Path(__file__).parent)]
    index = folder / "aclnn" / "operators" / "index.json"
    index.unlink(missing_ok=True)  # declarations are checked where there is none
    import aclnn

    assert Path(aclnn.__file__).parent == folder / "aclnn", f"{aclnn.__file__} is not in {folder}"
    from aclnn.graph.views.json import SCHEMAS_BY_NAME
    from make_stub import stub

    from aclnn import operators
    from aclnn.operators.registry import index_of
    from aclnn.reports.profile_document import PROFILE_SCHEMA

    texts = {
        graph / "views" / "schemas" / f"{name}.json": as_text(schema)
        for name, schema in SCHEMAS_BY_NAME.items()
    }
    texts[folder / "aclnn" / "__init__.pyi"] = stub()
    texts[folder / "aclnn" / "reports" / "schemas" / "profile.json"] = as_text(PROFILE_SCHEMA)
    if not operators.BROKEN:
        checked = index_of(index.parent, operators.names_by_module())
        texts[index] = json.dumps(checked) + "\n"
    for path, text in texts.items():
        write(path, text)
    imported = [
        Path(one.__file__) for one in sys.modules.values() if getattr(one, "__file__", None)
    ]
    inner = [
        path
        for path in imported
        if path.is_relative_to(folder) and "site-packages" not in path.parts
    ]
    return [*texts, *inner]


def as_text(schema: object) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--list", action="store_true", help="print what files depend on, and their own paths"
    )
    given = parser.parse_args()
    files = make(given.folder.resolve())
    if given.list:
        print(*files, sep="\n")
