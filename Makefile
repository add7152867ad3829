# Two commands on a fresh machine with Python 3.11 or newer and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench chaos failovers clean

demo: $(VENV)/.installed
	@$(BIN)/eventlog demo

test: $(VENV)/.installed
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The peers have an environment of their own: `make bench BENCH='append history'` runs some modules only.
BENCH ?=
BENCH_VENV := build/venv-bench

bench: $(BENCH_VENV)/.installed
	$(BENCH_VENV)/bin/python -m benchmarks $(BENCH)

$(BENCH_VENV)/.installed: pyproject.toml benchmarks/requirements.txt benchmarks/peers.txt
	$(PYTHON) -m venv --clear $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(BENCH_VENV)/bin/python -m pip install --quiet --requirement benchmarks/requirements.txt
	$(BENCH_VENV)/bin/python -m pip install --quiet --no-deps --requirement benchmarks/peers.txt
	touch $@

chaos: $(VENV)/.installed
	CHAOS_SECONDS=$${CHAOS_SECONDS:-300} $(BIN)/python -m chaos

failovers: $(VENV)/.installed
	EVENTLOG_REPLICA_TRIES=10 $(BIN)/python -m pytest -s -q tests/replicas

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test,dev]'
	touch $@

clean:
	rm -rf $(VENV) $(BENCH_VENV)
