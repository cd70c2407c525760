# Everything a user or a developer types. `make test` is what CI runs.
SHELL := /bin/bash
PYTHON ?= python3
LAYOUT ?= cycle-4
JOBS ?= 2

VENV := $(CURDIR)/.venv
COLLECTIONS := .cache/collections
LINK := $(COLLECTIONS)/ansible_collections/sparkring/cluster
LAB_INVENTORY := .lab/inventory/hosts.yml
PLUGINS := $(LINK)/plugins

export PATH := $(VENV)/bin:$(PATH)
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
export PYTHONDONTWRITEBYTECODE := 1
MAKEFLAGS += --no-print-directory

STAGES := python3 tests/ci/stages.py
SCENARIOS := prepare survey plan hairpin nccl serve
RING_SCENARIOS := lab fabric verify

.PHONY: help setup lab lab-down serve-demo test test-lab test-faults test-ring test-engine lint lint-ansible lint-yaml lint-ruff lint-format lint-mypy \
	sanity build unit schemas bench-plan bench-recipes molecule molecule-ring clean

help:  ## Show the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' Makefile

setup: $(VENV)/.ready $(LINK)  ## Python environment in .venv, and the checkout linked so that FQCNs resolve

$(VENV)/.ready: requirements.txt requirements-dev.txt constraints.txt
	@$(PYTHON) -c 'import sys; (3, 11) <= sys.version_info[:2] <= (3, 13) or sys.exit("Python 3.11 to 3.13 is needed, \
	and $(PYTHON) is " + sys.version.split()[0] + ": name another with `make setup PYTHON=python3.11`.")'
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
	echo "Python cannot make virtual environments here: run \`apt-get install -y python3-venv\`." >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt -c constraints.txt
	@touch $@

$(LINK):
	@mkdir -p $(@D)
	ln -sfn ../../../.. $@

lab: setup  ## A virtual ring of LAYOUT, prepared, set up and verified
	bin/sparkring lab-up -e sparkring_lab_layout=$(LAYOUT)
	bin/sparkring prepare -i $(LAB_INVENTORY)
	bin/sparkring mesh-setup -i $(LAB_INVENTORY)

lab-down: setup  ## Stop the virtual ring
	bin/sparkring lab-down

serve-demo: setup  ## A real vLLM for CPUs, served over two and over four container hosts
	PYTHONPATH=.:$(COLLECTIONS) python3 tests/serving/demo.py

test: setup  ## What CI runs: linters, sanity, artefact, tests, scenarios on container hosts, one pass of a ring
	@$(STAGES) lint sanity build unit molecule test-engine test-ring

test-lab: setup  ## Every test and scenario that needs a virtual ring
	@$(STAGES) test-rings molecule-ring

lint: setup  ## Every linter
	@$(STAGES) lint-yaml lint-ruff lint-format lint-mypy lint-ansible

lint-yaml:
	yamllint --strict .

lint-ruff:
	ruff check --quiet .

lint-format:
	ruff format --check --quiet .

lint-mypy:
	mypy $(PLUGINS)/module_utils $(PLUGINS)/plugin_utils $(PLUGINS)/modules $(PLUGINS)/action $(PLUGINS)/callback bin/sparkring

lint-ansible:
	ansible-lint --offline --profile production

sanity: setup  ## ansible-test sanity, without its network
	python3 tests/ci/sanity.py

build: setup  ## The collection's artefact, installed and resolved
	python3 tests/ci/build.py

unit: setup  ## Unit, property, golden and negative tests
	pytest -n $(JOBS) --ignore tests/lab --ignore tests/faults --ignore tests/engine tests

test-ring: setup  ## One cycle-4 pass of a virtual ring, and a few faults on it
	pytest -m "ring or fast" tests/lab tests/faults

test-engine: setup  ## Ranks as containers of a real engine
	pytest tests/engine

test-faults: setup  ## Every fault that a ring must survive, on a virtual ring
	pytest tests/faults

test-rings: setup
	pytest tests/lab

molecule: setup  ## The scenarios that container hosts carry
	@$(STAGES) $(SCENARIOS:%=molecule-%)

molecule-ring: setup  ## The scenarios that need the kernel of a virtual ring, which is ended afterwards
	@$(STAGES) $(RING_SCENARIOS:%=molecule-%) lab-down

molecule-%: setup
	molecule test -s $*

schemas: setup  ## Write the JSON Schemas of the documents
	PYTHONPATH=.:$(COLLECTIONS) python3 tests/schemas.py

bench-plan: setup  ## Time the planning of 1,000 rings of eight
	PYTHONPATH=.:$(COLLECTIONS) python3 tests/bench_plan.py

bench-recipes: setup  ## Time the rendering of every recipe
	PYTHONPATH=.:$(COLLECTIONS) python3 tests/bench_recipes.py

clean:  ## Remove what make made, but for a running lab
	rm -rf .venv .cache dist
