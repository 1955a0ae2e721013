# `make demo` and `make test` set everything up by themselves on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint faults clean

$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

demo: $(VENV)/.installed
	$(BIN)/ttgcd demo --overwrite

lint: $(VENV)/.installed
	$(BIN)/ruff check src tests faults benchmarks training
	$(BIN)/ruff format --check src tests faults benchmarks training
	$(BIN)/mypy
	$(BIN)/lint-imports

faults: $(VENV)/.installed
	$(BIN)/python -m faults

test: lint
	$(BIN)/pytest --numprocesses 2

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache
