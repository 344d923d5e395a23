# Two commands: `make demo` trains on Cora, `make test` checks everything. Both set up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test bench clean

demo: $(INSTALLED)
	@$(BIN)/kryograph demo

test: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 $(if $(CI),--durations=30)

# What docs/benchmarks.md reports, and the page itself; takes half an hour.
bench: $(INSTALLED)
	@for name in $$($(BIN)/python -c 'from kryograph import bench; print(*bench.benchmark_summaries())'); \
		do echo "kryograph bench $$name"; \
		$(BIN)/kryograph bench $$name --json > results/bench/$$name.new || exit; \
		mv results/bench/$$name.new results/bench/$$name.json || exit; done
	$(BIN)/python docs/make_benchmarks.py

# Installs once; again only when what is to be installed has changed.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "kryograph needs Python 3.11 or newer: make PYTHON=python3.12 …" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --disable-pip-version-check -q -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
