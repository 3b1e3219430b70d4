# Two commands do everything: make report, make test. Needs make, git and Python 3.11+.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= data
REPORTS ?= reports
JOBS ?= 2

.PHONY: report test check lab clean

report: $(VENV)/report.done  ## make every report of DATA in REPORTS
	$(BIN)/patchstudy report $(DATA) -o $(REPORTS) --jobs $(JOBS)

test: $(VENV)/test.done  ## run all tests
	$(BIN)/python -m pytest -q -n $(JOBS)

check: $(VENV)/test.done  ## lint, format, types, floors
	$(BIN)/ruff check lib tests benchmarks notebooks
	$(BIN)/ruff format --check lib tests benchmarks notebooks
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

lab: $(VENV)/lab.done  ## open the notebooks in JupyterLab
	cd notebooks && ../$(BIN)/jupyter lab $$([ "$$(id -u)" = 0 ] && echo --allow-root)

clean:  ## remove what was made here
	rm -rf $(VENV) build dist $(REPORTS)/*/ $(REPORTS)/index.*

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "patchstudy needs Python 3.11 or newer; set PYTHON=python3.12 or so" >&2; \
		exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/report.done: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/test.done: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@ $(VENV)/report.done

$(VENV)/lab.done: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[lab]'
	touch $@ $(VENV)/report.done
