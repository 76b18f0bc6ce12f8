# Everything a developer does. Only python3 (3.11 or newer) and make have to be there.

PYTHON ?= python3
BIN := .venv/bin
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url --no-annotate
# What the targets start has settings of its own; `.env` is for what is started by hand.
export ENV_FILE :=
# Each program that a test starts would compile the project again.
export PYTHONDONTWRITEBYTECODE :=
TOOLS := $(filter-out base production dev localemu,$(basename $(notdir $(wildcard requirements/*.in))))
# That of the image. localemu needs it too: what it asks for cannot be had together from 3.14 on.
PYTHON_OF_IMAGE ?= $(shell for python in python3.13 $(wildcard ~/.pyenv/versions/3.13.*/bin/python); \
	do $$python -c "" 2> /dev/null && echo $$python && break; done)

# Twice as many processes as the two cores that CI has: much of what tests do is waiting. A file stays
# with one process, and the files begin in the order that tests/conftest.py gives them.
PARALLEL = --numprocesses=$(or $(PROCESSES),4) --dist=loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup demo run stop-worker start-worker test slow attack browser image image-python lint lint-ecs lint-image format chaos bench native ecs scaling requirements clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Install all that the other targets need into .venv (they call it)
	@$(MAKE) -s .venv/.ready .venv/sqs-server/.ready

demo: setup ## Start the whole shop, buy and pay in it as outsiders do, and show what happened
	@$(BIN)/python -m skincare.local.demo

run: setup ## Start the whole shop and keep it up until Ctrl-C
	@$(BIN)/python -m skincare.local.run

stop-worker: setup ## Stop the worker of `make run` alone
	@$(BIN)/python -m skincare.local.control stop worker

start-worker: setup ## Start it again
	@$(BIN)/python -m skincare.local.control start worker

test: setup ## Run the unit, integration and acceptance tests (ARGS="-k webhook" picks some)
	$(BIN)/pytest $(PARALLEL) $(ARGS)

slow: setup .venv/gateway-clients/.ready ## Run the tests that `make test` leaves out because they take long
	$(BIN)/pytest $(PARALLEL) -m slow $(ARGS)

attack: setup ## Attack the API as strangers and as staff, and print what it costs others (ATTACK_EXAMPLES=200)
	ATTACK_EXAMPLES=$(or $(ATTACK_EXAMPLES),200) $(BIN)/pytest -m slow tests/attack $(ARGS)

browser: setup ## Use the operator's pages in a real Chromium (Debian: chromium, chromium-driver)
	$(BIN)/pytest -m browser tests/acceptance/browser $(ARGS)

image: setup .venv/image-lint/.ready ## Build the container image and try it: read-only, stopped, killed, out of memory (needs Docker)
	$(BIN)/pytest -m image tests/image $(ARGS)

image-python: setup .venv/image-python/.ready ## Run real workers on the image's Python, 3.13, where it is here
	@if [ -x .venv/image-python/bin/pytest ]; then \
		.venv/image-python/bin/pytest --numprocesses=2 --dist=loadfile tests/unit/sqs \
			tests/integration/sqs/test_prefork.py tests/acceptance/test_once.py $(ARGS); \
	else echo "NOT TESTED: the image's Python, for want of Python 3.13"; fi

lint: setup lint-image lint-ecs ## Check style, types, layers, migrations, production settings, image and templates
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy skincare orders payments ecs
	$(BIN)/mypy -p docs.scaling
	$(BIN)/lint-imports
	APP_ENV=test $(BIN)/python -W ignore manage.py makemigrations --check --dry-run
	$(BIN)/python -W ignore -m tests.release.lint_migrations
	env -i PATH="$$PATH" $(PRODUCTION_LIKE) $(BIN)/python manage.py check --deploy --fail-level INFO

lint-ecs: setup .venv/ecs-lint/.ready ## Check the templates, the deployment's scripts and the workflows (a minute to install)
	.venv/ecs-lint/bin/cfn-lint ecs/*.yaml
	.venv/ecs-lint/bin/checkov --directory ecs --framework cloudformation --compact --quiet --skip-download
	.venv/ecs-lint/bin/shellcheck --external-sources ecs/*.sh docker/entrypoint.sh .ci/run
	.venv/ecs-lint/bin/jactionlint --strict-exit --pyflakes= --shellcheck=.venv/ecs-lint/bin/shellcheck .github/workflows/*.yaml

lint-image: setup .venv/image-lint/.ready ## Check the image's files alone
	.venv/image-lint/bin/hadolint docker/Dockerfile
	.venv/image-lint/bin/docker-compose --file docker/compose.yaml config --quiet
	.venv/image-lint/bin/shellcheck docker/entrypoint.sh tests/image/debian-base tests/image/stand-ins/postgres-entrypoint \
		tests/image/stand-ins/mailpit

format: setup ## Bring the code into the one format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

chaos: setup ## Kill, hang and break everything for minutes, then count what was lost (CHAOS_EVENTS=2000)
	$(BIN)/pytest -m chaos -s tests/chaos $(ARGS)

bench: setup .venv/bench-peers/.ready ## Measure queue, API, relay and large tables beside others (ARGS="api hot", AGAINST=<commit>)
	$(BIN)/python -m tests.bench $(if $(AGAINST),--against $(AGAINST)) $(ARGS)

native: setup .venv/localemu/.ready ## Redrive a dead-letter queue natively, on an SQS server that has move tasks
	$(BIN)/pytest -m native tests/integration/operations $(ARGS)

ecs: setup .venv/aws-emulator/.ready .venv/localemu/.ready ## Create the templates on local emulators of AWS, and deploy there with ecs/deploy.sh
	$(BIN)/pytest -m ecs tests/integration/ecs $(ARGS)

scaling: setup ## Simulate the workers' scaling policy on a sale: tables and picture of docs/scaling
	@$(BIN)/python -m docs.scaling $(ARGS)

requirements: setup ## Resolve requirements/*.in into the pinned *.txt (UPGRADE=--upgrade for new releases)
	for name in base production dev $(TOOLS); do \
		$(COMPILE) $(UPGRADE) requirements/$$name.in -o requirements/$$name.txt || exit; \
	done
	$(subst --universal --python-version 3.11,--python-version 3.13,$(COMPILE)) $(UPGRADE) \
		requirements/localemu.in -o requirements/localemu.txt

clean: ## Remove all that the targets made
	rm -rf "$$(readlink var/run/database)" .venv var staticfiles .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps say that an environment holds what its pinned file asks for.

.venv/.ready: requirements/dev.txt | .venv/bin/pip
	@echo "Installing the pinned requirements into .venv, once"
	@requirements/install .venv requirements/dev.txt
	@touch $@

# Tools that pin what the project pins otherwise live in environments of their own, inside .venv.
.venv/%/.ready: requirements/%.txt | .venv/.ready
	@$(BIN)/python -m venv $(@D)
	@requirements/install $(@D) $<
	@touch $@

.venv/localemu/.ready: requirements/localemu.txt | .venv/.ready
	@if [ -z "$(PYTHON_OF_IMAGE)" ]; then echo "No Python 3.13 here: nothing will run on localemu"; \
	else $(PYTHON_OF_IMAGE) -m venv $(@D) && requirements/install $(@D) $< && touch $@; fi

.venv/image-python/.ready: requirements/dev.txt | .venv/.ready
	@if [ -z "$(PYTHON_OF_IMAGE)" ]; then mkdir -p $(@D); \
	else $(PYTHON_OF_IMAGE) -m venv $(@D) && requirements/install $(@D) $< && \
		ln -sfn ../sqs-server $(@D)/sqs-server && touch $@; fi

.venv/bin/pip:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit(f"{sys.executable} is Python {sys.version.split()[0]}; this project needs 3.11 or newer: try make PYTHON=python3.11")'
	@$(PYTHON) -m venv .venv

# Settings that pass every rule of production, and open nothing.
PRODUCTION_LIKE := \
	ENV_FILE= \
	APP_ENV=production \
	SECRET_KEY=lint-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ \
	ALLOWED_HOSTS=shop.example \
	DATABASE_URL=postgresql://shop:secret@db.example/shop \
	AWS_REGION=ap-southeast-3 \
	ORDER_EVENTS_QUEUE_URL=https://sqs.ap-southeast-3.amazonaws.com/000000000000/skincare-order-events \
	MIDTRANS_SERVER_KEY=Mid-server-lint-0123456789 \
	XENDIT_CALLBACK_TOKEN=lint-0123456789-abcdef \
	XENDIT_SECRET_KEY=xnd_production_lint-0123456789 \
	SHOP_URL=https://shop.example \
	EMAIL_URL=smtp+tls://user:secret@smtp.example:587
