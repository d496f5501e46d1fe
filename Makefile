# `make demo` and `make test` need git, make, Python >= 3.11 with venv, and a package registry; nothing else.
SHELL  := bash
# The first of these that is new enough; `make PYTHON=...` names another.
PYTHON ?= $(or $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,$(shell \
  $(p) -c 'import sys; sys.version_info >= (3, 11) and print("$(p)")' 2>/dev/null))),python3)
VENV   ?= .venv
ARGS   ?=
# Gigabytes of the one increment that `make test-all` has on Spark.
LARGE  ?= 2.2
py     := $(VENV)/bin/python
ready  := $(VENV)/.ready
# Images of containers set it. Each of hundreds of processes would compile Polars, pyarrow and numba again: 3 s.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup doctor demo said test checked test-all bench lint format typecheck kernels pytest docs serve soak lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(ready)  ## install the locked dependencies into .venv

# Done again only when the lock changes.
$(ready): requirements/dev.txt tools/setup_venv.py
	$(PYTHON) tools/setup_venv.py $(VENV)
	@touch $@

doctor: $(ready)  ## say what this machine has and what is missing
	$(VENV)/bin/tidegate doctor

# Where nothing is installed yet, an environment of its own: without linters and other engines it is there sooner.
demo: $(if $(wildcard $(ready)),$(ready))  ## an operations room for New York's airports (ARGS="--year", ARGS="--embedded", ...)
	@$(if $(wildcard $(ready)),$(py) -m examples.operations_room,$(PYTHON) tools/demo.py $(VENV)-demo) $(ARGS)

test: said lint checked pytest  ## lint, types, import contracts, tests, docs and examples

said:
	@echo "lint, types and some 10,000 tests: about 20 minutes on two quiet cores, longer on busy or slow ones"

# Types on one core, kernels on the other: both take a minute or two in a fresh clone.
checked: $(ready)
	@$(MAKE) --no-print-directory -j 2 --output-sync=target typecheck kernels

lint: $(ready)  ## style, and formatting as it should be
	$(py) -m ruff check .
	$(py) -m ruff format --check .

format: $(ready)  ## put the formatting right
	$(py) -m ruff check --fix-only .
	$(py) -m ruff format .

typecheck: $(ready)  ## mypy --strict, and pyright on a user's code
	$(py) -m mypy
	$(py) -m basedpyright

# Else both processes of `pytest` compile all of them.
kernels: $(ready)
	@$(py) tools/compile_kernels.py

# Two processes; the tests which start Spark share one of them, and its session.
pytest: $(ready)
	@mkdir -p out
	@set -o pipefail; $(py) -m pytest -q -n 2 --dist loadgroup --durations 10 $(ARGS) | tee out/pytest.log; status=$$?; \
	echo; grep -E '^(FAILED|ERROR) |[0-9]+ (passed|failed|error)' out/pytest.log | tail -n 20; exit $$status

# Some hours; started again it goes on after the parts that this code has passed.
test-all: $(ready)  ## `make test`, the long checks, random kills, 8,000 valid random programs, 10,000 in contexts, 20,000 with row patterns, 10,000 interval sequences, 1,000 or more of each other family, 300 with rows by the ten thousand (others for each state of the code), the planted bugs, 1,080 drawn mutants, and an increment of gigabytes
	$(py) tools/test_all.py --gigabytes $(LARGE) $(ARGS)

bench: $(ready)  ## print the figures that the docs quote
	$(py) benchmarks/run.py $(ARGS)

soak: $(ready)  ## run for two hours with files arriving, and fail if anything grows (ARGS="--minutes 5", ARGS="--spark", ARGS="--keep", ...)
	$(py) tools/soak.py $(ARGS)

docs: $(ready)  ## build the manual into out/docs; broken links are errors
	NO_MKDOCS_2_WARNING=1 $(py) -m mkdocs build --strict --quiet --site-dir out/docs
	@echo "out/docs/index.html"

serve: $(ready)  ## show the manual on http://127.0.0.1:8000, anew after each change
	NO_MKDOCS_2_WARNING=1 $(py) -m mkdocs serve

lock: $(ready)  ## resolve the dependencies again (needs the registry; ARGS=--keep adds only what is new)
	$(py) tools/lock.py $(ARGS)

clean:  ## remove .venv and everything that was built
	rm -rf .venv .venv-demo out build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
