# The one place that says how to set up, try, test and check. GNU make >= 3.81, Python >= 3.11, nothing else.
#
#   make demo DEMO_ARGS="--messages talk.jsonl --keep"
#   make test TEST_ARGS="tests/outbox -k chain"
#   make demo PYTHON=/opt/python3.12/bin/python3.12     (otherwise the newest found on PATH)

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PACKAGES := gateway stateroom outbox auth spark
DEMO_ARGS ?=
TEST_ARGS ?=
TEST_JOBS ?= 2
SOAK_SEEDS ?= 3000
SOAK_RUNS ?= 1 2 3 4 5 6 7 8
export PYTHON
# Tests start hundreds of gateways; without compiled modules each would compile them anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(STAMP) ## Run three gateways, a conversation, a crash and the SLA report
	$(BIN)/gateway demo $(DEMO_ARGS)

test: $(STAMP) ## Run the test suite, in two processes when it is all of it
	$(BIN)/pytest $(or $(TEST_ARGS),-n $(TEST_JOBS))

test-long: $(STAMP) ## Run the tests that take minutes
	$(BIN)/pytest -m long $(TEST_ARGS)

soak: $(STAMP) ## Simulate thousands of worlds, then run real gateways under all faults, for about an hour
	$(BIN)/gateway harness sim --seeds $(SOAK_SEEDS)
	for seed in $(SOAK_RUNS); do \
	  $(BIN)/gateway harness run --nodes 5 --duration 300 --faults all --seed $$seed || exit 1; \
	done

coverage: $(STAMP) ## Run the test suite and show what it leaves out of the cores
	$(BIN)/coverage run -m pytest $(TEST_ARGS)
	$(BIN)/python scripts/core_coverage.py

check: lint $(STAMP) ## Everything a change must pass before its tests run: lint, types, layers, dependencies
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .

lint: $(STAMP) ## Check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP) ## Repair what can be repaired by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## Run the benchmarks: ratios to peers and to the raw limits of this machine
	@sh scripts/bench-peers $(VENV)
	$(BIN)/pytest -s -m bench --ignore=tests/bench/test_report.py tests/bench $(TEST_ARGS)

bench-spark: $(STAMP) ## Measure the report beside DuckDB, on a million and on ten million generated events
	@sh scripts/bench-peers $(VENV)
	$(BIN)/pytest -s -m "bench and not long" tests/bench/test_report.py $(TEST_ARGS)

docs: $(STAMP) ## Rewrite what is made from the code in docs/PROTOCOL.md and docs/incidents.schema.json
	$(BIN)/python scripts/render_protocol.py

lock: ## Renew the lock files (needs uv; LOCK_ARGS=--upgrade takes newer releases)
	sh scripts/lock $(LOCK_ARGS)

install: $(STAMP) ## Make the environment only

clean: ## Remove the environment and everything that was built
	rm -rf $(VENV) build dist .coverage .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	rm -rf tests/interop/node_modules spark-warehouse metastore_db derby.log
	find $(PACKAGES) tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): requirements.lock requirements-build.lock pyproject.toml scripts/setup scripts/find-python
	@sh scripts/setup $(VENV)
	@touch $@

.PHONY: help demo test test-long soak coverage check lint format bench bench-spark docs lock install clean
