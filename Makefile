# The commands of this repository. Each makes the environment it needs (.venv) on first use.
# `make demo` and `make test` are all a newcomer needs; `make help` lists the rest.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
CONFORMANCE ?= ../shared/conformance

.DEFAULT_GOAL := help
.PHONY: help demo demo-spark test test-all soak check format conformance bench nexmark docs site clean

help:  ## list these commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 14

# --- environment: one stamp per set of extras, made again when pyproject.toml changes --------------------------------

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo 'kstreams needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ...' >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@echo 'Installing kstreams and the data of the demo into $(VENV) ...'
	@$(PIP) --editable '.[demo,test]'
	@touch $@

$(VENV)/.spark: pyproject.toml | $(BIN)/python
	@echo 'Installing Spark into $(VENV) (about 450 MB) ...'
	@$(PIP) --editable '.[spark]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo 'Installing kstreams, Spark and the test tools into $(VENV) ...'
	@$(PIP) --editable '.[demo,dev,kafka,spark]'
	@touch $@ $(VENV)/.demo $(VENV)/.spark

# --- commands -------------------------------------------------------------------------------------------------------

FLIGHTS := examples/flights

demo: $(VENV)/.demo  ## run the flights example natively and on Spark, and compare
	$(BIN)/python $(FLIGHTS)/load.py
	$(BIN)/kstreams run $(FLIGHTS)/app.py --until-end --reset
	$(BIN)/python $(FLIGHTS)/results.py
	@if java -version >/dev/null 2>&1; then \
	  $(MAKE) --no-print-directory demo-spark; \
	else \
	  echo 'Spark half skipped: there is no Java here. Install Java 17 and run `make demo` again.'; \
	fi

demo-spark: $(VENV)/.spark
	$(BIN)/kstreams run $(FLIGHTS)/app.py --engine spark --until-end --reset
	@$(BIN)/python $(FLIGHTS)/compare.py

# Three processes share the files (tests/order.py), also on two cores: tests wait for half of their time. What they write is
# kept in memory where there is room for it, so that they do not wait for the disk. Folders of tests that pass are removed
# at once.
SIDE_BY_SIDE := -n 3 --dist loadfile -o tmp_path_retention_policy=failed
IN_MEMORY    := $(shell grep ' /dev/shm ' /proc/mounts 2>/dev/null | grep -vq noexec \
                  && df -Pk /dev/shm | awk 'NR == 2 && $$4 > 4000000 { print "TMPDIR=/dev/shm" }')

# What is compiled once is read by hundreds of processes: bytecode, though the user keeps none elsewhere, and the classes of
# Spark, which a JVM maps where there is an archive of them. It is whole when the JVM that writes it has ended (`cat` waits).
COMPILED := PYTHONDONTWRITEBYTECODE= SPARK_SUBMIT_OPTS='-XX:SharedArchiveFile=$(abspath $(VENV)/spark.jsa) -Xlog:cds*=off'
ON_SPARK := tests/spark/topics/test_delta.py tests/spark/test_relational.py -k '12-windows or merged_table'

$(VENV)/spark.jsa: $(VENV)/.dev
	@echo 'Archiving the classes of Spark for the tests ...'
	@rm -f $@ $@.part
	@SPARK_SUBMIT_OPTS='-XX:ArchiveClassesAtExit=$@.part -Xlog:cds*=off' $(BIN)/python -m pytest -s $(ON_SPARK) 2>&1 | cat >$@.log
	@if [ -e $@.part ]; then mv $@.part $@; else touch $@; fi

test: $(VENV)/.dev $(VENV)/spark.jsa  ## run the tests that take seconds, and the examples in the docstrings
	@$(IN_MEMORY) $(COMPILED) $(BIN)/python -m pytest $(SIDE_BY_SIDE) --doctest-modules -m 'not slow' tests kstreams

test-all: $(VENV)/.dev $(VENV)/spark.jsa  ## run every test
	@$(IN_MEMORY) $(COMPILED) KSTREAMS_TEST_EXAMPLES=all $(BIN)/python -m pytest $(SIDE_BY_SIDE) --doctest-modules tests kstreams

check: $(VENV)/.dev  ## everything a change must pass: format, lint, types, layers, shape, docs, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/shape.py
	$(BIN)/python tools/reference.py --check
	$(BIN)/python tools/dashboard.py --check
	$(BIN)/python tools/pictures.py --check
	$(MAKE) --no-print-directory test

format: $(VENV)/.dev  ## format the code and mend what ruff can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

HOURS ?= 3

soak: $(VENV)/.dev  ## let faults loose on applications for so many hours (HOURS=3)
	@$(IN_MEMORY) $(BIN)/python -m tests.faults.soak $(HOURS)

conformance: $(VENV)/.dev  ## compare all engines with recorded cases of Kafka Streams (CONFORMANCE=folder)
	@KSTREAMS_TEST_CONFORMANCE=$(abspath $(CONFORMANCE)) $(BIN)/python -m tests.conformance

bench: $(VENV)/.dev  ## measure, print and record the ratios
	@$(BIN)/python -m benchmarks

nexmark: $(VENV)/.dev  ## measure the queries of Nexmark over Kafka, compared with DuckDB, in some ten minutes
	@$(BIN)/python -m benchmarks.nexmark

docs: $(VENV)/.dev  ## write the generated pages and pictures of docs/ anew
	@$(BIN)/python tools/reference.py
	@$(BIN)/python tools/dashboard.py
	@$(BIN)/python tools/pictures.py

site: $(VENV)/.dev  ## build the site of the documentation in build/site
	@$(BIN)/python -m tools.site build/site
	@echo 'Open build/site/index.html'

clean:  ## remove the environment and what the examples wrote
	@rm -rf $(VENV) .kstreams .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
