# make study   set everything up, run the default study, show the result
# make test    set everything up, run the whole test suite
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: study test venv system lint types faults bench clean

study: venv
	$(BIN)/paceline study mnist-scaling

test: venv system lint
	$(BIN)/python -m pytest

venv: $(VENV)/installed

# The constraints pin what is installed here; pyproject states the ranges that work.
$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Paceline needs Python 3.11 or newer; this is %d.%d. Name another with: make PYTHON=python3.12 ..." % sys.version_info[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

# The report is tested in a real browser. Without root on Debian those tests are skipped, with the reason shown.
system:
	@if ! command -v chromium >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		echo "Installing Chromium for the browser tests"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	fi

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: venv
	$(BIN)/pyright

# The fault tests with 25 times their counts: more than an hour.
faults: venv
	FAULTS=25 $(BIN)/python -m pytest tests/faults tests/multiproc --timeout 7200

# Nothing else may run beside it.
bench: venv
	$(BIN)/python -m bench --write

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
