# Two commands on a fresh machine with Python 3.11 or newer and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench chaos clean

demo: $(VENV)/.installed
	@$(BIN)/eventlog demo

test: $(VENV)/.installed
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks.append
	$(BIN)/python -m benchmarks.history
	$(BIN)/python -m benchmarks.follow
	$(BIN)/python -m benchmarks.groups
	$(BIN)/python -m benchmarks.projections

chaos: $(VENV)/.installed
	CHAOS_SECONDS=$${CHAOS_SECONDS:-300} $(BIN)/python -m chaos

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test,dev]'
	touch $@

clean:
	rm -rf $(VENV)
