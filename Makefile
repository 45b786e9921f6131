# Every target makes and fills .venv itself. All paths are relative, so `make -C "some folder" test` works too.
# Another interpreter: make PYTHON=python3.13 test        More for pytest: make test PYTEST_ARGS="-k kernels -x"
# Some benchmarks only: make bench BENCH="bench_foundation bench_sphere"

PYTHON ?= python3
PYTEST_ARGS ?=
BENCH ?=
# Test processes side by side; each computes with one thread, so that they do not compete for the cores.
WORKERS ?= auto

VENV := .venv
RUN := $(VENV)/bin/python
INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt
STAMP := $(VENV)/.orthodrome-installed
DOCS_STAMP := $(VENV)/.orthodrome-docs-installed
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
TEST := SCIPY_ARRAY_API=1 MPLBACKEND=Agg $(ONE_THREAD) $(RUN) -m pytest -n $(WORKERS) --dist worksteal

# "ok", or nothing where python3 is absent, too old, or (Debian) split from its venv package.
python_state = $(shell $(PYTHON) -c 'import sys, venv, ensurepip; print("ok" if sys.version_info >= (3, 11) else "")' 2>/dev/null)
check_python = $(if $(filter ok,$(python_state)),,$(error orthodrome needs python3 >= 3.11 with venv (Debian: apt install python3-venv), or PYTHON=/path/to/another/python3))

.DEFAULT_GOAL := help
.PHONY: demo test test-all test-wheel test-oldest coverage lint format bench bench-full bench-r reproduce reproduce-full docs clean help moved

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(STAMP) ## run the demonstration, write report/index.html and print its path
	@$(RUN) -m orthodrome demo --out report

test: $(STAMP) ## run the test suite without the slow batteries
	$(TEST) -m "not slow" $(PYTEST_ARGS)

test-all: $(STAMP) ## run every test, with new random examples
	$(TEST) --hypothesis-profile=explore $(PYTEST_ARGS)

test-wheel: $(STAMP) ## test the wheel in an empty environment, without optional packages
	$(RUN) -m nox -s wheel -- $(PYTEST_ARGS)

test-oldest: $(STAMP) ## the same with the oldest supported versions of the required packages
	$(RUN) -m nox -s oldest -- $(PYTEST_ARGS)

coverage: $(STAMP) ## run the quick tests and report lines and branches that none of them runs
	$(TEST) -m "not slow" --cov --cov-report=term $(PYTEST_ARGS)

lint: $(STAMP) ## check style, format and types
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: $(STAMP) ## rewrite the source in the house format
	$(RUN) -m ruff check --fix-only --quiet .
	$(RUN) -m ruff format .

bench: $(STAMP) ## compare with other packages, quickly, and write benchmarks/RESULTS.md
	@$(RUN) benchmarks/run.py $(BENCH)

bench-full: $(STAMP) ## measure everything: a million points, all of MNIST, growth over N
	@$(RUN) benchmarks/run.py --full $(BENCH)

bench-r: $(STAMP) ## compare with R's kernlab::kha as well (says how to install it)
	@$(RUN) benchmarks/run.py r_kernlab

reproduce: $(STAMP) ## run every paper's experiments quickly and write reproduction/index.html
	@export ORTHODROME_DATA="$${ORTHODROME_DATA:-../shared/data}"; $(RUN) experiments/reproduce.py

reproduce-full: $(STAMP) ## run what is missing of the papers' protocols (hours), and write experiments/RESULTS.md
	@export ORTHODROME_DATA="$${ORTHODROME_DATA:-../shared/data}"; $(RUN) experiments/reproduce.py --full

docs: $(DOCS_STAMP) ## build the documentation with its gallery into docs/_build/html
	@rm -rf docs/api/generated  # pages of names that are gone
	$(ONE_THREAD) MPLBACKEND=Agg $(RUN) -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean: ## remove .venv, reports, caches and builds
	rm -rf $(VENV) docs/_build docs/gallery docs/repository docs/api/generated docs/api/backreferences
	rm -rf benchmarks/.peers .nox .coverage* report reproduction build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# An editable install remembers its folder: after the checkout has been moved or copied, install again.
ifneq ($(wildcard $(STAMP)),)
ifneq ($(shell cat $(STAMP)),$(CURDIR))
$(STAMP): moved
endif
endif

$(STAMP): pyproject.toml constraints.txt
	@$(check_python)rm -f $(STAMP)
	@echo "Filling $(VENV); the first time downloads the dependencies."
	@$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(INSTALL) "pip>=25.1"  # older ones know no --group
	@$(INSTALL) -e ".[cli]" --group dev
	@printf '%s\n' "$(CURDIR)" > $(STAMP)

$(DOCS_STAMP): $(STAMP)
	@$(INSTALL) --group docs
	@touch $(DOCS_STAMP)
