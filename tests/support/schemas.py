"""The schemas that are shipped, and documents judged by them, references included."""

import json
from pathlib import Path

import aclnn.graph
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

import aclnn

FOLDERS = (
    Path(aclnn.graph.__file__).parent / "views" / "schemas",
    Path(aclnn.__file__).parent / "reports" / "schemas",
)
SCHEMAS = {
    path.stem: json.loads(path.read_text()) for folder in FOLDERS for path in folder.glob("*.json")
}
KNOWN = Registry().with_resources((s["$id"], Resource.from_contents(s)) for s in SCHEMAS.values())
VALIDATORS = {
    name: Draft202012Validator(schema, registry=KNOWN) for name, schema in SCHEMAS.items()
}


def validated(text, name):
    """The document in `text`, which fits the schema of this name."""
    document = json.loads(text)
    VALIDATORS[name].validate(document)
    return document
