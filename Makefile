# make study     set everything up, run the default study, show the result
# make check     lint, types and unit tests: under two minutes
# make test      set everything up, run lint, types and the whole test suite
# make release   build sdist and wheel, install the wheel elsewhere, use it there
#
# Programs are called as modules of the interpreter: the first line of an entry script breaks where the path has spaces.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: study check test release venv engines system lint types faults docs bench clean

study: venv
	$(BIN)/python -m paceline study mnist-scaling

# Without the unit tests that load Keras, which are slow.
check: venv lint types
	$(BIN)/python -m pytest tests/unit tests/test_architecture.py --ignore tests/unit/training/test_keras_networks.py \
		--numprocesses 2 --dist loadfile

# Three files at a time: many tests wait more than they work. Compiled first, or every rank would do it again.
test: venv engines system lint types
	$(BIN)/python -m compileall -q src tests bench
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder --durations 20 --durations-min 10

venv: $(VENV)/installed

# The constraints pin what is installed here; pyproject states the ranges that work.
$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Paceline needs Python 3.11 or newer; this is %d.%d. Name another with: make PYTHON=python3.12 ..." % sys.version_info[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

# What ranks are put to work with besides this machine's own processes, and frameworks whose scripts are tested: a study
# needs them only where it asks for them. What the documentation is made with is among them.
engines: $(VENV)/engines

$(VENV)/engines: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,mpi,ray,vision,track,docs,frameworks]'
	@touch $@ $(VENV)/docs

# The report is tested in a real browser, launchers on a real SLURM, on Open MPI and on hosts that are network
# namespaces. Without root on Debian those tests are skipped, with the reason shown.
PROGRAMS := chromium slurmctld slurmd munged sbatch mpiexec.openmpi ip tc
PACKAGES := chromium slurmctld slurmd munge slurm-client openmpi-bin iproute2
system:
	@if ! (for p in $(PROGRAMS); do command -v $$p >/dev/null || exit 1; done) && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		echo "Installing for the tests: $(PACKAGES)"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(PACKAGES) >/dev/null; \
	fi

lint: venv
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .

types: venv
	$(BIN)/python -m pyright

# Into dist/. Torch is downloaded once more: the environment in which the wheel is tried is empty.
release: venv
	$(BIN)/python .ci/release.py

# The fault tests with 25 times their counts: more than an hour.
faults: venv
	FAULTS=25 $(BIN)/python -m pytest tests/faults tests/multiproc --timeout 7200

# The documentation as a site that opens from a disk, its search included: site/index.html. What it is made with is
# installed once; from then on a build needs no network.
docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

$(VENV)/docs: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,docs]'
	@touch $@

# Nothing else may run beside it.
bench: venv engines
	$(BIN)/python -m bench --write
	$(BIN)/python -m bench.engines --write
	$(BIN)/python -m bench.overhead --write
	$(BIN)/python -m bench.faults --write
	$(BIN)/python -m bench.analysis --write
	$(BIN)/python -m bench.augment --write

clean:
	rm -rf $(VENV) dist site .pytest_cache .ruff_cache .hypothesis
