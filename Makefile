# `make demo` and `make test` are all a newcomer needs: they make the virtual environment, build
# the package into it, and go. The demo needs no package for development, and kernels for this CPU only:
# everything else comes with the first target that wants it, and what is there is kept.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SOURCES := setup.py pyproject.toml tools/make_kernels.py tools/split_loops.py $(wildcard aclnn/*.pyx aclnn/*/*.pyx aclnn/*/*.pxd aclnn/*/*/*.pxd aclnn/kernels/*.py aclnn/kernels/*.h aclnn/kernels/*/*.h graph/*/*.pyx graph/*/*.pxd graph/*/*.h)
STAMP := $(VENV)/.built
DEMO_STAMP := $(VENV)/.built-for-demo

# A build of its own, beside the usual one: of one instruction set, as it takes minutes to compile.
SANITIZED := build/sanitize
SANITIZE_ISA ?= v3
# Python is not built for it, so that the libraries come first, and what it keeps until its end is no
# leak; with its own allocator, errors in the memory of Python's objects would go unseen. It is the
# environment's Python without the environment, which would find this folder's usual build.
SANITIZED_PYTHON = LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so.6)" PYTHONMALLOC=malloc PYTHONSAFEPATH=1 \
	PYTHONPATH="$(CURDIR)/$(SANITIZED)/lib:$(CURDIR)/tests/support:$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
	UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
	"$$($(BIN)/python -c 'import sys; print(sys._base_executable)')"
FUZZ_CALLS ?= 20000
# Other calls every day.
FUZZ_SEED ?= $(shell date +%j)

# Tests run in as many processes as there are CPUs; each begins with a part of the files of its own, so
# that what a file keeps for its tests is made once.
WORKERS ?= -n auto --maxprocesses 8 --dist worksteal

# Tests start some hundred processes, each of which would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

# Without a target, the package is built into the environment.
.DEFAULT_GOAL := build

.PHONY: build demo test test-torch quick bench accuracy exhaustive lint pictures docs linkcheck reference wheel clean help sanitize sanitize-capi sanitized-build sanitized-tests fuzz compilers

help:
	@echo "make            the package, built into .venv, with the packages for development"
	@echo "make demo       six functions through both phases, checked, with graph, plan and timings; built for this CPU only"
	@echo "make test       the whole test suite"
	@echo "make test-torch the tests of torch.compile's backend and of the npu device; pip install 'aclnn-cpu[test-models]' first"
	@echo "make quick      one case of each test, in half a minute"
	@echo "make sanitize   a build with AddressSanitizer and UBSan: the suite, then calls made at random"
	@echo "make sanitize-capi  the same build, and the programs in C that tests have"
	@echo "make fuzz       the same build, and only the calls made at random"
	@echo "make lint       ruff, cython-lint, mypy, and what type checkers make of calls"
	@echo "make bench      the benchmark matrix against the peers that are installed, and its picture"
	@echo "make exhaustive functions of one argument on all float32 numbers, each instruction set; FORMULAS='exp gelu' for these only"
	@echo "make accuracy   the tables of accuracy and the page of activations, with its picture; OPERATORS='elu gelu' for theirs only"
	@echo "make pictures   the pictures of the documentation, made anew"
	@echo "make docs       the documentation as a site in build/docs; warnings and broken links are errors"
	@echo "make linkcheck  checks its links to other sites, over the network"
	@echo "make reference  the README's table of operators, the type stub and the JSON Schemas, from declarations"
	@echo "make compilers  steps of programs as each installed compiler makes them: jumps, no stack"
	@echo "make wheel      build sdist and wheel into dist/"

# Without either, the environment would be half made, or the build fail late.
$(BIN)/python:
	@$(PYTHON) -c 'import ensurepip, os, sysconfig; assert os.path.exists(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null \
	|| { echo "$(PYTHON) lacks its headers or its venv module (on Debian: python3-dev, python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# What compiles is installed, as isolated builds would fetch it each time.
$(DEMO_STAMP): export ACLNN_BUILD_ISA := $(or $(ACLNN_BUILD_ISA),native)
$(DEMO_STAMP): $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet $$($(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])')
	@mkdir -p build; echo "compiling for this CPU; compilers' messages go to build/build.log"
	@$(BIN)/python setup.py --quiet build_ext --inplace >build/build.log 2>&1 \
	|| { tail -n 40 build/build.log; echo "the whole log: build/build.log" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --no-build-isolation --editable . >>build/build.log 2>&1 \
	|| { tail -n 40 build/build.log; echo "the whole log: build/build.log" >&2; exit 1; }
	@touch $@

# Packages come while the other instruction sets are compiled.
$(STAMP): $(DEMO_STAMP)
	@$(BIN)/python -m pip install --quiet "aclnn-cpu[dev]" & packages=$$!; \
	echo "installing packages for development, compiling all instruction sets"; \
	$(BIN)/python setup.py --quiet build_ext --inplace >build/build.log 2>&1; compiled=$$?; \
	[ $$compiled = 0 ] || { tail -n 40 build/build.log; echo "the whole log: build/build.log" >&2; }; \
	wait $$packages && exit $$compiled
	@$(BIN)/python tools/make_reference.py
	@touch $@

build: $(STAMP)

demo: $(DEMO_STAMP)
	$(BIN)/aclnn demo

# All of it, or what TESTS names.
test: $(STAMP)
	$(BIN)/python -m pytest $(WORKERS) $(TESTS)

# Those of the compiler's backend and of the device for PyTorch, which have to be installed for them.
test-torch: $(STAMP)
	$(BIN)/python -m pytest $(WORKERS) tests/torch

# One case of each test, in half a minute: for the inner loop, not instead of the suite.
quick: $(STAMP)
	$(BIN)/python -m pytest -q --quick

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(BIN):$$PATH" $(BIN)/cython-lint aclnn/*.pyx aclnn/*/*.pyx aclnn/*/*.pxd aclnn/*/*/*.pxd graph/*/*.pyx graph/*/*.pxd
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/api/test_types.py

# Modules that are gone would be found there still.
sanitized-build: $(STAMP)
	if [ -d $(SANITIZED)/lib ]; then find $(SANITIZED)/lib -name '*.py' -delete; fi
	CC=gcc ACLNN_BUILD_SANITIZE=1 ACLNN_BUILD_ISA=$(SANITIZE_ISA) $(BIN)/python setup.py --quiet build \
		--build-base $(SANITIZED) --build-lib $(SANITIZED)/lib --parallel 2

sanitize: sanitized-build fuzz sanitized-tests

# All of them, or those that TESTS names.
sanitized-tests: sanitized-build
	$(SANITIZED_PYTHON) -m pytest -q -n0 $(TESTS)

# Programs in C with the same build.
sanitize-capi: sanitized-build
	CAPI_HOME="$(CURDIR)/$(SANITIZED)/lib/aclnn/capi/home" CAPI_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined" \
	$(BIN)/python -m pytest -q -n0 tests/capi/test_programs.py -k "assert or end_at_any_time or another_thread"

fuzz: sanitized-build
	$(SANITIZED_PYTHON) tests/support/fuzz_calls.py --calls $(FUZZ_CALLS) --seed $(FUZZ_SEED)

bench: $(STAMP)
	$(BIN)/aclnn bench --threads 1 2 --targets --json build/bench.json --markdown build/bench.md --plot docs/pictures/speed.png

exhaustive: $(STAMP)
	$(BIN)/python tools/exhaustive.py $(FORMULAS) --write

accuracy: $(STAMP)
	$(BIN)/python tools/accuracy.py $(OPERATORS) --write
	$(if $(OPERATORS),,$(BIN)/python tools/make_activations.py)

pictures: $(STAMP)
	$(BIN)/python tools/make_pictures.py
	$(BIN)/python tools/make_tutorial_pictures.py

docs: $(STAMP)
	$(BIN)/sphinx-build -q -W --keep-going -j auto -b html -d build/doctrees docs build/docs
	$(BIN)/python tools/check_site.py build/docs

# Links to other sites too: needs a network.
linkcheck: $(STAMP)
	$(BIN)/sphinx-build -q -W --keep-going -j auto -b linkcheck -d build/doctrees docs build/linkcheck

# What is translated is compiled again by each of them, and its machine code read.
COMPILERS ?= gcc clang
compilers: $(STAMP)
	@for compiler in $(COMPILERS); do \
		if command -v $$compiler >/dev/null; then \
			echo "$$compiler"; CC=$$compiler $(BIN)/python tools/tail_calls.py || exit 1; \
		else echo "$$compiler is not installed"; fi; \
	done

reference: $(STAMP)
	$(BIN)/python tools/make_reference.py
	$(BIN)/python tools/make_derived.py .
	$(BIN)/python tools/make_prototypes.py

wheel: $(STAMP)
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) build dist *.egg-info aclnn/*.so aclnn/*/*.so graph/*/*.so
