# Two commands set everything up on a fresh machine.
#
#   make demo    installs, trains the default recipe and shows what it can do
#   make test    installs with the test extras, checks format, lint and types, and runs the tests
#
# A third one installs Coq, checks the theorem of formal/README.md and prints it with its axioms.
#
#   make formal
#
# The committed page of a certified run is built again from the run:
#
#   make example
#
# The documentation becomes a site that opens without a server, in build/docs/site:
#
#   make docs

PYTHON ?= python3
# One more than there are processors, since some tests wait for a browser or a cluster.
TEST_PROCESSES ?= $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 1)")
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test types suite formal example docs clean

demo: .venv/installed
	.venv/bin/abacist train add --out runs/demo --overwrite

test: .venv-test/installed
	.venv-test/bin/ruff format --check .
	.venv-test/bin/ruff check .
	$(MAKE) --no-print-directory --jobs 2 types suite

types: .venv-test/installed
	.venv-test/bin/mypy

# Many tests start Python anew; bytecode spares each of them from compiling the package. One thread for each
# process, since there are more processes than processors, and threads would wait for each other. Tests
# that call make have nothing to do with the jobs of this one. To capture the output of file descriptors as
# well, which no test needs, would take a twentieth of the time.
suite: .venv-test/installed
	MAKEFLAGS= PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 .venv-test/bin/pytest --capture sys --numprocesses $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder

formal:
	formal/install
	$(MAKE) --no-print-directory --directory formal

example: .venv/installed
	rm -f examples/calculator.html
	.venv/bin/abacist export examples/add-tiny --to html --out examples/calculator.html

docs: .venv-docs/installed
	.venv-docs/bin/python site/build.py

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --constraint constraints.txt --editable .
	touch $@

# The packages have 18,000 files, and to compile them all takes half a minute. Tests import a part of
# them, which is compiled here once instead of by every process of the tests.
.venv-test/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-test
	.venv-test/bin/pip install --quiet --no-compile --constraint constraints.txt --editable ".[test]"
	PYTHONDONTWRITEBYTECODE= .venv-test/bin/pytest --collect-only > /dev/null || true
	touch $@

# The site has an environment of its own, which needs neither PyTorch nor the package.
.venv-docs/installed: site/requirements.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/pip install --quiet --requirement site/requirements.txt
	touch $@

clean:
	rm -rf .venv .venv-test .venv-docs build
