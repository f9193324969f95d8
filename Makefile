# Two commands for a fresh machine: `make demo` sets up and runs the main study, `make test` sets up and passes the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup demo test test-slow lint types clean

help:
	@echo "make setup | demo | test | test-slow | lint | types | clean"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "habitus needs Python 3.11 or newer, found $$($(PYTHON) --version); set PYTHON=/path/to/python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[data,dev]"
	touch $@

demo: setup
	$(BIN)/habitus run quickstart --out results/quickstart

test: setup
	$(BIN)/python -m pytest -n 2 -q

test-slow: setup
	$(BIN)/python -m pytest -n 2 -q -m slow

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy wants the package under its own name; the root is reached through a link.
types: setup
	mkdir -p build/types && ln -sfn ../.. build/types/habitus
	cd build/types && MYPYPATH=. ../../$(BIN)/mypy --config-file habitus/pyproject.toml -p habitus.envs -p habitus.cognition -p habitus.agents -p habitus.scenarios -p habitus.experiments

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
