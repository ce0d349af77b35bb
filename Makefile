# make demo   trains the example model from start to finish     make up     runs the service
# make test   runs every check there is                         make help   lists the rest

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
TRL := .venv-trl
QLORA := .venv-qlora
BIN := $(VENV)/bin
# What to install: cpu.lock, or gpu.txt on a machine with CUDA, or api.lock without models.
REQUIREMENTS ?= requirements/cpu.lock
MODEL := .models/SmolLM2-135M-Instruct
SEED ?= 1
PYTEST ?= $(BIN)/python -m pytest
# These keep every core busy by themselves.
MODEL_TESTS := tests/e2e tests/serving/test_vllm.py tests/trainer/test_vllm_engine.py

.DEFAULT_GOAL := help
.PHONY: help setup ready packages project dashboard demo up test test-fast trl qlora lint lock clean
.PHONY: bench-graders bench-api bench-rl bench-learning bench-report

help:  ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup:  ## install what is missing: packages, base model, dashboard
	@$(MAKE) --no-print-directory -j2 ready

ready: project dashboard $(MODEL)/config.json
	@:

packages: $(VENV)/.packages
project: $(VENV)/.project
dashboard: dashboard/dist/index.html

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name it with make PYTHON=…")'
	$(PYTHON) -m venv $(VENV)

# The locks are complete, so nothing is left to resolve.
$(VENV)/.packages: $(REQUIREMENTS) | $(BIN)/python
	@echo "Installing Python packages from $(REQUIREMENTS) (a minute or two)"
	@$(BIN)/python -m pip install -qq --no-deps --requirement $(REQUIREMENTS)
	@touch $@

$(VENV)/.project: pyproject.toml client/pyproject.toml $(VENV)/.packages
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation -e client -e .
	@touch $@

$(MODEL)/config.json: | $(VENV)/.project
	@echo "Converting the base model"
	@TQDM_DISABLE=1 $(BIN)/python -m workers.base_model --out $(MODEL)

# The rest comes from the main environment, behind TRL's own packages on the path.
$(TRL)/.packages: requirements/trl.txt | $(VENV)/.packages
	@echo "Installing TRL into $(TRL) (some 15 seconds)"
	@$(BIN)/python -m venv --clear --without-pip $(TRL)
	@$(BIN)/python -m pip --python $(TRL)/bin/python install -qq --no-deps --requirement $<
	@$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> $$($(TRL)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/main.pth
	@touch $@

$(QLORA)/.packages: requirements/qlora.txt | $(VENV)/.packages
	@echo "Installing bitsandbytes into $(QLORA) (some 5 seconds)"
	@$(BIN)/python -m venv --clear --without-pip $(QLORA)
	@$(BIN)/python -m pip --python $(QLORA)/bin/python install -qq --no-deps --requirement $<
	@$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> $$($(QLORA)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/main.pth
	@touch $@

$(TRL)/.tasks: requirements/tasks.txt $(TRL)/.packages
	@$(BIN)/python -m pip --python $(TRL)/bin/python install -qq --no-deps --requirement $<
	@touch $@

dashboard/node_modules/.package-lock.json: dashboard/package-lock.json
	@echo "Building the dashboard"
	@cd dashboard && npm ci --no-audit --no-fund --loglevel=error

dashboard/dist/index.html: dashboard/node_modules/.package-lock.json dashboard/*.html \
		$(shell find dashboard/src dashboard/public dashboard/*.ts dashboard/*.json -type f 2>/dev/null)
	@cd dashboard && npm run --silent build
	@touch $@

demo: setup  ## run the main job on real servers; SEED=n picks another seed
	@$(BIN)/rft-server demo --seed $(SEED)

up: setup  ## start the service in ./.rft and keep it running
	@$(BIN)/rft-server up

test: setup trl qlora lint  ## every check and every test
	cd dashboard && npm test --silent
	$(PYTEST) -n 2 --dist loadfile $(MODEL_TESTS:%=--ignore %)
	$(PYTEST) $(MODEL_TESTS)

test-fast: setup trl  ## the tests that start no servers and train nothing
	$(PYTEST) -n 2 --dist loadfile -m "not slow"

trl: $(TRL)/.packages  ## install TRL beside ours, to compare with

qlora: $(QLORA)/.packages  ## install bitsandbytes beside ours, for adapters on a base in 4 bits

bench-graders: setup  ## how fast graders are, each figure beside its floor
	$(BIN)/python -m bench.graders

bench-api: setup  ## how fast the API is, each figure beside its floor
	$(BIN)/python -m bench.api

bench-rl: setup trl  ## how fast a reinforcement step is, beside TRL and a plain loop (two hours)
	$(BIN)/python -m bench.rl

bench-learning: setup $(TRL)/.tasks  ## learn four tasks with ours and with TRL (hours; goes on where it was)
	$(BIN)/python -m bench.learning

bench-report: setup  ## write docs/benchmarks.md and its plots from what was measured
	$(BIN)/python -m bench.report

lint: setup  ## style, types, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lock: setup  ## write the locks anew from what is installed
	for name in cpu api; do $(BIN)/python requirements/lock.py $$name > requirements/$$name.lock; done

clean:  ## remove what setup and the tools made; data in .rft stays
	rm -rf $(VENV) $(TRL) $(QLORA) .models dashboard/dist dashboard/node_modules *.egg-info client/*.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
