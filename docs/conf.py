"""Sphinx's settings, and the few things about our pages that it has to be told."""

import importlib.util
import logging
import re
import runpy
import shutil
from pathlib import Path

from sphinx.addnodes import pending_xref

from aclnn import __version__

ROOT = Path(__file__).parent.parent

project = "aclnn-cpu"
author = "the aclnn-cpu developers"
project_copyright = author
version = release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["pictures"]
highlight_language = "none"  # for blocks that name none

# Docstrings: single backticks are names, and become links where there is something to link to.
default_role = "py:obj"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # types are in the docstrings
autodoc_member_order = "bysource"

myst_heading_anchors = 3

# Notebooks are committed without outputs; the build runs them, in a kernel each.
logging.getLogger("traitlets").setLevel(logging.WARNING)  # what the client that runs them does
NOTEBOOKS = {"inspect_a_call": (), "plan_a_model": ("onnx",), "pytorch": ("torch",)}
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_excludepatterns = [
    f"notebooks/{name}.ipynb"
    for name, packages in NOTEBOOKS.items()
    if not all(map(importlib.util.find_spec, packages))
]
nb_merge_streams = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"aclnn-cpu {release}"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]

# Files beside this folder, and the pages that include them.
PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "tools/README.md": "benchmarks.md",
}


def write_reference(app):
    """The pages of the reference, before Sphinx looks which pages there are."""
    runpy.run_path(str(ROOT / "tools" / "make_reference.py"))["write"]()


def copy_notebooks(app):
    """The notebooks, which are programs beside this folder, as pages in it."""
    folder = ROOT / "docs" / "notebooks"
    folder.mkdir(exist_ok=True)
    for name in NOTEBOOKS:
        shutil.copy2(
            ROOT / "examples" / f"{name}.ipynb", folder
        )  # with its time: none is read twice


def link_pages(text):
    """Links to files as links to pages: a repository shows files, the site shows pages."""
    for path, page in PAGES.items():
        text = re.sub(rf"\]\((\.\./)?{re.escape(path)}", f"]({page}", text)
    text = re.sub(r"\]\((\.\./)?examples/(\w+\.ipynb)", r"](notebooks/\2", text)
    return re.sub(r"\]\((\.\./)?docs/", "](", text)


def read_source(app, name, source):
    source[0] = link_pages(source[0])


def read_included(app, path, parent, content):
    content[0] = link_pages(content[0])
    if parent == "adding-an-operator":  # a section that is a page: its sections move up a level
        content[0] = content[0].replace("\n### ", "\n## ")


RULE = re.compile(r"( *)(\d+\.) ")  # numbers are those of messages; a form may leave some out


def tidy_docstring(app, what, name, obj, options, lines):
    """What people read in a terminal, as reStructuredText: rules are list items."""
    tidied, indent = [], None
    for line in lines:
        if found := RULE.match(line):
            indent = found[1]
            line = RULE.sub(r"\1* \\\2 ", line)
            tidied.append("")
        elif indent is not None and line.startswith(indent + " "):
            line = f"{indent}  {line.lstrip()}"
        else:
            indent = None
        tidied.append(line if "``" in line else line.replace("|", r"\|"))
    lines[:] = tidied


def split_lines(app, what, name, obj, options, lines):
    """What napoleon makes of a Raises section is one line with breaks in it."""
    lines[:] = "\n".join(lines).split("\n")


def unlink_words(app, doctree):
    """The type `dtype` of a parameter is NumPy's, not the attribute of that name that several classes have."""
    for node in list(doctree.findall(pending_xref)):
        if node.get("refdomain") == "py" and node.get("reftarget") == "dtype":
            node.replace_self(node.children)


def own_nodes(app, doctree):
    """What `eval-rst` parses has a document of its own, whose settings hold the environment.

    A page's file would hold all pages known so far: writing and reading these took most of the build.
    """
    for node in doctree.findall():
        if node.document is not doctree:
            node.document = doctree


def navigate_once(app, pagename, templatename, context, doctree, trees={}):  # noqa: B006
    """The navigation of operators' pages, which takes longest of all, made once.

    It has no entries for these pages, which are in folders of one depth, so all of them show the same.
    """
    if doctree is None or "orphan" not in (context.get("meta") or {}):
        return
    make, depth = context["toctree"], pagename.count("/")

    def toctree(**options):
        key = (depth, *sorted(options.items()))
        if key not in trees:
            trees[key] = make(**options)
        return trees[key]

    context["toctree"] = toctree


def setup(app):
    app.connect("builder-inited", write_reference)
    app.connect("builder-inited", copy_notebooks)
    app.connect("source-read", read_source)
    app.connect("include-read", read_included)
    app.connect("autodoc-process-docstring", tidy_docstring, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", split_lines, priority=600)  # after napoleon
    app.connect("doctree-read", unlink_words)
    app.connect("doctree-read", own_nodes)
    app.connect("html-page-context", navigate_once, priority=400)  # before the theme
    return {"parallel_read_safe": True}
