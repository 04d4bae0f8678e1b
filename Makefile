.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format fuzz lock clean

PYTHON ?= python3
PYTEST_FLAGS ?= -n 2 --dist loadgroup
export PYTHON

# Spark would start its workers with the python3 on PATH, which knows nothing of .venv.
export PYSPARK_PYTHON := $(CURDIR)/.venv/bin/python

# Set-up may make this Java during the same run of make, so each recipe looks for it anew.
JAVA = if [ -x .venv/java/bin/java ]; then export JAVA_HOME="$(CURDIR)/.venv/java"; fi;

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

setup: .venv/.ready ## Make .venv and install everything into it (the other targets do this by themselves)

.venv/.ready: pyproject.toml constraints.txt scripts/setup.sh
	@scripts/setup.sh

demo: .venv/.ready ## Run a job on Spark on made-up payments: matches, plan and a report
	@$(JAVA) .venv/bin/cepheid run examples/payments.yaml --show 8 --plan --report build/demo/report.html

test: lint ## Run all checks and tests
	$(JAVA) .venv/bin/pytest $(PYTEST_FLAGS)

lint: .venv/.ready ## Check style, types and the layers
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo

format: .venv/.ready ## Rewrite the code in the project's style
	.venv/bin/ruff check --fix
	.venv/bin/ruff format

fuzz: .venv/.ready ## Test the language with many random inputs (long)
	HYPOTHESIS_PROFILE=long .venv/bin/pytest tests/language/test_fuzz.py

# Does not ask for an up-to-date .venv: when pyproject.toml contradicts the old lock there can be none.
lock: ## Remake constraints.txt, keeping its pins where they fit (make lock LOCK_FLAGS=--upgrade: the newest)
	@test -x .venv/bin/python || scripts/setup.sh
	.venv/bin/python -m pip install --quiet uv
	.venv/bin/uv pip compile --quiet --universal --python-version 3.10 $(LOCK_FLAGS) \
		--extra kafka --extra plot --extra spark --group dev --group setup --group java \
		--custom-compile-command "make lock" --output-file constraints.txt pyproject.toml

clean: ## Remove .venv and everything else that was made
	rm -rf .venv .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
