# `make demo` and `make test` set everything up by themselves on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo serve bench bench-serve bench-serve-memory test lint docs faults constraints clean

$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev,docs,serve]"
	touch $@

demo: $(VENV)/.installed
	$(BIN)/ttgcd demo --overwrite

# A live page on the embedded model, with IconShift images arriving in it.
serve: $(VENV)/.installed
	$(BIN)/ttgcd serve --model mini --play

bench-serve: $(VENV)/.installed
	$(BIN)/python -m benchmarks.serving

bench-serve-memory: $(VENV)/.installed
	$(BIN)/python -m benchmarks.serving --memory 100000

lint: $(VENV)/.installed
	$(BIN)/ruff check src tests faults benchmarks training docs/*.py
	$(BIN)/ruff format --check src tests faults benchmarks training docs/*.py
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.installed
	$(BIN)/mkdocs build --strict

# What development was done with, for those who want the same. Without the places packages came from.
constraints: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet pip-tools
	$(BIN)/pip-compile --quiet --all-extras --strip-extras --no-header --no-annotate \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options \
	  --output-file constraints.txt pyproject.toml
	sed -i.old -e 's/+cpu$$//' -e '/^#/d' constraints.txt && rm constraints.txt.old

# Speed: every row a ratio measured in one run; writes results/speed.json and docs/performance.md.
bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks.speed --write

faults: $(VENV)/.installed
	$(BIN)/python -m faults

test: lint
	$(BIN)/pytest --numprocesses 2

clean:
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .ruff_cache .mypy_cache
