# Everything that a contributor or a pipeline runs. `make` alone lists the targets.
# Every target first brings .venv up to date, which costs three checksums if it is.

.DEFAULT_GOAL := help
SHELL := /bin/sh

# If it were set, each of the commands that tests start would compile the whole package again.
unexport PYTHONDONTWRITEBYTECODE

bin := .venv/bin
python := $(bin)/python

# Extra arguments for pytest: make test ARGS="-k tunnel -x"
ARGS ?=

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: install
install: ## create .venv with the locked dependencies and the project itself, or update it
	@scripts/bootstrap

.PHONY: demo
demo: ## run plan, apply, drift and destroy against a local sandbox
	@scripts/bootstrap run
	@PYTHONPATH="$(CURDIR)" $(python) examples/quickstart/demo.py build/demo

# One worker a core: each collects all tests, which takes longer than what tests that wait leave idle. A worker runs
# whole stretches of tests, whose servers and folders are made once for all of them.
workers = $$($(python) -c 'import os; print(os.cpu_count() or 1)')
pytest = $(python) -m pytest -n $(workers) --dist worksteal

.PHONY: test
test: install ## every promise once, in minutes (ARGS="…" for pytest; ARGS=--durations=20 lists the slowest tests)
	@$(pytest) $(ARGS)

.PHONY: test-full
test-full: install ## every case of every promise: all points of a kill, 10,000 histories, more examples (ARGS as above)
	@$(pytest) -m "not soak and not postgres and not editor and not clients" --hypothesis-profile=full $(ARGS)

.PHONY: soak
soak: install ## the long tests: a million histories, real kills at each point, new examples (ARGS as above)
	@$(pytest) -m soak $(ARGS)
	@$(pytest) -m "not soak and not postgres and not editor and not clients" --hypothesis-profile=roam \
	  tests/kinds tests/languages tests/laws tests/planning tests/project tests/rendering

.PHONY: test-postgres
test-postgres: install ## the store's tests on a PostgreSQL server of their own (installed if root runs this; ARGS as above)
	@scripts/test-postgres $(ARGS)

.PHONY: test-browser
test-browser: install ## test the HTML pages in Chromium (installed if root runs this; ARGS as above)
	@scripts/test-browser $(ARGS)

.PHONY: test-editor
test-editor: install ## check the schemas in the YAML language server of editors (needs Node.js and npm; ARGS as above)
	@scripts/test-editor $(ARGS)

.PHONY: test-clients
test-clients: install ## run the public service's own clients on the sandbox (needs Node.js, npm, Java and Maven; ARGS as above)
	@scripts/test-clients $(ARGS)

.PHONY: mutants
mutants: install ## inject known bugs, one after the other, and check that the tests detect each
	@$(python) -m tests.simulation.mutants $(ARGS)

# Changes the source at random places. It takes one to two hours on two cores; an interrupted run goes on where it stopped.
# PATHS are packages or files: make mutation PATHS="reconciler/planning reconciler/store" ARGS="--count 200"
PATHS ?=
.PHONY: mutation
mutation: install ## mutation score: the share of random changes of the source that the tests catch (PATHS, ARGS="--count N")
	@$(python) -m tests.mutation $(PATHS) $(ARGS)

# Compares ratios with those of docs/performance/bench.json; absolute times depend on the machine.
.PHONY: bench
bench: install ## measure speed and memory, beside Terraform if it is installed: a few minutes (ARGS="--only plan")
	@$(python) -m tests.bench --check docs/performance/bench.json $(ARGS)

.PHONY: bench-full
bench-full: install ## the same up to 100,000 resources: a quarter of an hour
	@$(python) -m tests.bench --full $(ARGS)

.PHONY: bench-fleet
bench-fleet: install ## plan a fleet of 10,000 accounts in one process: ten minutes (ARGS="--members 1000")
	@$(python) -m tests.bench.fleet $(ARGS)

.PHONY: check
check: lint types imports locked generated test ## all of the following checks, then the tests

.PHONY: lint
lint: install ## ruff: rules and format
	$(bin)/ruff check
	$(bin)/ruff format --check

.PHONY: types
types: install ## mypy, strict
	$(bin)/mypy

.PHONY: imports
imports: install ## check which layer imports which
	$(bin)/lint-imports

.PHONY: locked
locked: install ## check that the locks contain all dependencies of pyproject.toml
	$(python) -m pip check

.PHONY: generated
generated: install ## check that the generated files are up to date
	$(python) -m reconciler.cli.dev.generate --check

.PHONY: generate
generate: install ## generate schemas and reference pages from the kinds
	$(python) -m reconciler.cli.dev.generate

.PHONY: format
format: install ## format the code and fix what ruff can fix
	$(bin)/ruff check --fix
	$(bin)/ruff format

.PHONY: docs
docs: install ## build the documentation as a site, in build/site
	@scripts/docs

.PHONY: dist
dist: install ## build the wheel and the source distribution in dist/
	@scripts/build dist

.PHONY: release
release: install ## check, build and tag a release: make release VERSION=0.1.0
	@scripts/release $(VERSION)

# Pins stay as they are unless UPGRADE is set: make lock UPGRADE=--upgrade, or UPGRADE='--upgrade-package httpx'.
# One set of files serves every platform and Python from 3.11 on. uv is installed in a temporary folder.
.PHONY: lock
lock: ## resolve requirements/ from pyproject.toml (UPGRADE=--upgrade to move the pins)
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
