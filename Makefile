# Everything a contributor or a pipeline runs. `make` alone lists it.
# `make install` makes .venv once; every other target sees to that first, at the price of three checksums.

.DEFAULT_GOAL := help
SHELL := /bin/sh

# Where it is set, each of the thousands of commands that tests start would compile all of us anew.
unexport PYTHONDONTWRITEBYTECODE

bin := .venv/bin
python := $(bin)/python

# Extra words for pytest: make test ARGS="-k tunnel -x"
ARGS ?=

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: install
install: ## make .venv with the locked dependencies and the project itself, or bring it up to date
	@scripts/bootstrap

.PHONY: demo
demo: install ## play the product's story against a sandbox, with real commands
	@$(python) examples/quickstart/demo.py build/demo

# Two workers a core: many tests wait for a process or a server. Whole stretches of tests to each, since they share servers.
workers = $$($(python) -c 'import os; print(2 * (os.cpu_count() or 1))')

.PHONY: test
test: install ## run the whole test suite on all cores (ARGS="…" for pytest)
	@$(python) -m pytest -n $(workers) --dist worksteal $(ARGS)

.PHONY: soak
soak: install ## the long form of the tests that play with fire: a million histories, every kill (ARGS as above)
	@$(python) -m pytest -n auto -m soak $(ARGS)
	@$(python) -m pytest -n auto --hypothesis-profile=roam tests/kinds tests/laws tests/planning tests/project tests/rendering

.PHONY: test-postgres
test-postgres: install ## the store's tests on a PostgreSQL server of their own (installed if root runs this; ARGS as above)
	@scripts/test-postgres $(ARGS)

.PHONY: test-browser
test-browser: install ## look at the HTML pages in a Chromium (installed if root runs this; ARGS as above)
	@scripts/test-browser $(ARGS)

.PHONY: test-editor
test-editor: install ## check the schemas in the YAML language server of editors (needs Node.js and npm; ARGS as above)
	@scripts/test-editor $(ARGS)

.PHONY: mutants
mutants: install ## plant known bugs, one after the other, and see that the tests catch each of them
	@$(python) -m tests.simulation.mutants $(ARGS)

# Ratios are compared with those of docs/performance/bench.json; absolute times are of the machine.
.PHONY: bench
bench: install ## measure speed and memory, with terraform beside us if it is installed: a few minutes (ARGS="--only plan")
	@$(python) -m tests.bench --check docs/performance/bench.json $(ARGS)

.PHONY: bench-full
bench-full: install ## the same up to 100,000 resources: a quarter of an hour
	@$(python) -m tests.bench --full $(ARGS)

.PHONY: check
check: lint types imports locked generated test ## all of the following, then the tests

.PHONY: lint
lint: install ## ruff: rules and format
	$(bin)/ruff check
	$(bin)/ruff format --check

.PHONY: types
types: install ## mypy, strict
	$(bin)/mypy

.PHONY: imports
imports: install ## which layer may import which
	$(bin)/lint-imports

.PHONY: locked
locked: install ## do the locks hold all that pyproject.toml asks for?
	$(python) -m pip check

.PHONY: generated
generated: install ## are the generated files those that the kinds give?
	$(python) -m reconciler.cli.dev.generate --check

.PHONY: generate
generate: install ## write schemas and reference pages anew from the kinds
	$(python) -m reconciler.cli.dev.generate

.PHONY: format
format: install ## let ruff lay out the code and mend what it can
	$(bin)/ruff check --fix
	$(bin)/ruff format

.PHONY: docs
docs: install ## build the documentation as a site, in build/site
	@scripts/docs

# The locks keep what they pin unless asked: make lock UPGRADE=--upgrade, or UPGRADE='--upgrade-package httpx'.
# One set of files serves every platform and Python from 3.11 on. The locker itself lives and dies in a temporary folder.
.PHONY: lock
lock: ## resolve requirements/ anew from pyproject.toml (UPGRADE=--upgrade to move the pins)
	@set -eu; \
	tool=$$(mktemp -d); trap 'rm -rf "$$tool"' EXIT; \
	$${PYTHON:-python3} -m venv "$$tool"; "$$tool/bin/pip" install --quiet --disable-pip-version-check uv==0.13.8; \
	compile() { \
	  "$$tool/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --no-emit-find-links --annotation-style line --custom-compile-command 'make lock' \
	    $(UPGRADE) "$$@" >/dev/null; \
	}; \
	compile pyproject.toml --output-file requirements/run.txt; \
	compile pyproject.toml --extra dev --constraint requirements/run.txt --output-file requirements/dev.txt; \
	compile --group pyproject.toml:docs --output-file requirements/docs.txt

.PHONY: clean
clean: ## remove .venv, caches and build output
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .schemathesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
