# Each target makes the environment it needs, and only when it is missing or out of date.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-lowest docs bench format wheel clean

demo: $(VENV)/.installed  ## VAE, CVAE_ind and CVAE_corr on a small tree: a table, and a report with pictures
	$(BIN)/corrvae demo

test: $(VENV)/.installed-dev  ## lint, type-check, test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/python -m pytest

test-lowest:  ## the tests, with the lowest versions that pyproject.toml allows
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet uv
	$(VENV)-lowest/bin/uv pip install --python $(VENV)-lowest --resolution lowest-direct -e ".[all]" --group dev
	$(VENV)-lowest/bin/python -m pytest

docs: $(VENV)/.installed-docs  ## the documentation, in site/
	$(BIN)/zensical build --strict

bench: $(VENV)/.installed-bench  ## every benchmark; BENCH="spanning_weights" for one
	@for name in $(or $(BENCH),$(filter-out gallery,$(basename $(notdir $(wildcard benchmarks/[a-z]*.py))))); do \
		grep -q __main__ benchmarks/$$name.py || continue; \
		echo "== $$name"; $(BIN)/python benchmarks/$$name.py || exit 1; done

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

wheel: $(VENV)/.installed-dev
	$(BIN)/python -m build --wheel --outdir dist .

clean:
	rm -rf $(VENV) $(VENV)-lowest dist site .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[cli]"
	@touch $@

$(VENV)/.installed-%: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) "pip>=25.1"  # reads dependency groups
	$(PIP) -e ".[all]" --group $*
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: benchmarks/requirements.txt $(VENV)/.installed-dev
	$(PIP) -r benchmarks/requirements.txt
	@touch $@
