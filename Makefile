# Everything runs in .venv, which the first target you call creates. `make help` lists the targets.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JAVA_CHECK := src/contrada/cli/java.py
JITLESS_TESTS := tests
BENCHMARKS := relate relate.growth distance lines match match.devices match.templates mixed cover network broker simplify spark stream stream.tracked tracking
PYTEST_ARGS ?=
DIST ?= dist

# Real polygons for tests, benchmarks and verification; what needs them is skipped where they are absent.
SAMPLE_DATA := $(abspath ../shared/data)
ifneq ($(wildcard $(SAMPLE_DATA)),)
export CONTRADA_DATA ?= $(SAMPLE_DATA)
endif

# Tests start hundreds of processes: without bytecode each would compile the sources that it imports.
unexport PYTHONDONTWRITEBYTECODE

# `make PYTHON=/path/to/python setup` chooses the interpreter; otherwise the first of these that works.
PYTHON ?=
CANDIDATES := $(or $(PYTHON),python3.13 python3.12 python3.11 python3)

define FIND_PYTHON
found=""; \
for candidate in $(CANDIDATES); do \
    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
        found="$$candidate"; break; \
    fi; \
done; \
if [ -z "$$found" ]; then \
    echo "Contrada needs Python 3.11 or newer and found none (tried: $(CANDIDATES)); install it from https://www.python.org/downloads, or name it: make PYTHON=/path/to/python $(firstword $(MAKECMDGOALS) setup)" >&2; \
    exit 1; \
fi
endef

.DEFAULT_GOAL := help
.PHONY: help setup java web demo pictures test test-all check format verify bench bench-sedona docs wheel clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(READY)  ## prepare the environment in .venv, nothing else

$(READY): pyproject.toml constraints.txt
	@$(FIND_PYTHON); \
	if ! "$$found" -c 'import ensurepip, venv' >/dev/null 2>&1; then \
	    echo "$$found cannot make virtual environments; on Debian and Ubuntu: sudo apt-get install -y python3-venv" >&2; \
	    exit 1; \
	fi; \
	$(BIN)/python -m pip --version >/dev/null 2>&1 || \
	    { echo "creating $(VENV) with $$("$$found" --version)"; "$$found" -m venv $(VENV); }  # or half of it was made
	@echo "installing into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,spark,connect,broker,postgres,kafka,nats,mqtt,otel,experiments,plot]'
	@touch $@

# Runs before anything is installed: standard library only. One sentence and a stop when Java is missing or old.
java:
	@$(FIND_PYTHON); "$$found" -I $(JAVA_CHECK)

# Built pages are kept until a source in web/ changes. Needs the npm registry the first time.
web: $(READY)  ## build the live map and the script of the report
	@$(BIN)/python web/build.py

# DATA=dir takes your own data in place of the made-up district; `contrada demo --help` says what it should hold.
demo: java $(READY) web  ## ingest, compile, match and report on embedded Spark
	$(BIN)/contrada demo --output build/demo $(if $(DATA),--data $(DATA))

# Chromium comes from PATH, or from Debian's packages.
pictures: demo  ## run the demonstration, and take pictures of its report and of the live map
	$(BIN)/python -m benchmarks.pictures.report_page build/demo/report.html docs/images/report.png
	$(BIN)/python -m benchmarks.pictures.map_page

test: java $(READY) web  ## the test suite
	$(BIN)/python -m pytest -n 2 --dist loadfile --max-worker-restart 1 -m "not slow" $(PYTEST_ARGS)

# Coverage takes the folder: given the package's name it would import NumPy twice.
test-all: java $(READY) web  ## what takes longer or needs more, and a pass without compilation for the coverage of the kernels
	$(BIN)/python -m pytest -n 2 --dist loadfile --max-worker-restart 1 -m slow $(PYTEST_ARGS)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -n 2 -m jitless $(JITLESS_TESTS) \
	    --cov=src/contrada/kernels --cov-report=term

check: $(READY)  ## ruff and mypy; tsc and ESLint if web/ changed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@$(BIN)/python web/build.py check

format: $(READY)  ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Properties get ten times the examples that they get in `make test`.
verify: java $(READY)  ## a million pairs of regions and of distances against the oracles, thousands of damaged files, 100,000 hostile inputs, a broker killed 200 times
	CONTRADA_EFFORT=full $(BIN)/python -m pytest -n 2 --dist loadfile --timeout 0 -o faulthandler_timeout=0 -m "hypothesis or effort"
	$(BIN)/python -m verification.verify
	$(BIN)/python -m verification.distances
	$(BIN)/python -m verification.damage
	$(BIN)/python -m verification.kills
	PYTHONPATH=tests/doors $(BIN)/python -m hostile --inputs 100000
	PYTHONPATH=tests/doors $(BIN)/python -m hostile --commands --inputs 0 --step 20

bench: java $(READY)  ## speed against Shapely, PySpark with Shapely and, where they are installed, other engines
	for name in $(BENCHMARKS); do $(BIN)/python -m benchmarks.$$name || exit 1; done

# Needs Maven and a network the first time: it makes an environment of its own in build/peers/sedona.
bench-sedona: java $(READY)  ## speed against a spatial join of Apache Sedona
	$(BIN)/python -m benchmarks.sedona

docs: $(READY)  ## build the documentation into build/site
	$(BIN)/zensical build --strict --clean
	@echo "documentation: build/site/index.html"

# Other builds make a wheel of pure Python, which compiles kernels when they are first used.
wheel: $(READY) web  ## build a wheel with compiled kernels for CPUs like this one and the installed versions into dist
	$(BIN)/contrada doctor --warm >/dev/null
	CONTRADA_CARRIED_KERNELS="$$($(BIN)/python -c 'from contrada import jit; print(jit.cache_directory())')" \
	    $(BIN)/python -m build --wheel --outdir $(DIST)

clean:  ## remove the environment and everything that was built
	rm -rf $(VENV) build dist src/contrada/web/built web/build web/basemap web/node_modules .cache .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
