# `make demo` and `make test` are all a newcomer needs: they make the virtual environment, build
# the package into it, and go.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SOURCES := setup.py pyproject.toml $(wildcard aclnn/*.pyx aclnn/*/*.pyx aclnn/*/*.pxd aclnn/kernels/*.pxi.in aclnn/kernels/*.h graph/*.pyx graph/*/*.pyx graph/*.pxd graph/*.h)
STAMP := $(VENV)/.built

.PHONY: demo test bench lint pictures reference wheel clean help

help:
	@echo "make demo       six functions through both phases, checked, with graph, plan and timings"
	@echo "make test       the whole test suite"
	@echo "make lint       ruff, cython-lint and mypy"
	@echo "make bench      the benchmark matrix against the peers that are installed, and its picture"
	@echo "make pictures   the pictures of the documentation, made anew"
	@echo "make reference  the reference pages and the type stub, made anew from docstrings and declarations"
	@echo "make wheel      build sdist and wheel into dist/"

# Without either, the environment would be half made, or the build fail late.
$(BIN)/python:
	@$(PYTHON) -c 'import ensurepip, os, sysconfig; assert os.path.exists(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null \
	|| { echo "$(PYTHON) lacks its headers or its venv module (on Debian: python3-dev, python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(STAMP): $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/aclnn demo

test: $(STAMP)
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(BIN):$$PATH" $(BIN)/cython-lint aclnn/*.pyx aclnn/*/*.pyx aclnn/*/*.pxd graph/*.pyx graph/*/*.pyx graph/*.pxd
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/aclnn bench --threads 1 2 --targets --json build/bench.json --markdown build/bench.md --plot docs/pictures/speed.svg

pictures: $(STAMP)
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_tutorial_pictures.py

reference: $(STAMP)
	$(BIN)/python docs/make_reference.py
	$(BIN)/python docs/make_stub.py

wheel: $(STAMP)
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) build dist *.egg-info aclnn/*.so aclnn/*/*.so graph/*.so
