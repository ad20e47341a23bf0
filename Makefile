# Everything that a developer does, by name. `make` alone lists it.
# PYTHON=… names the interpreter that the virtualenv is made from; the default is the first 3.11+ on the PATH.

.DEFAULT_GOAL := help
.PHONY: help venv check test kafka demo bench docs schemas format clean torture

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export PYTHON

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(READY) ## Make .venv with all that checks and tests need

# Again only when the dependencies change; the stamp is written last, so that a broken start is not taken for one.
$(READY): pyproject.toml scripts/make-venv
	@scripts/make-venv $(VENV)
	@touch $@

check: $(READY) ## Lint, formatting, types and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: $(READY) ## Run every test; starts the services that it needs
	@$(BIN)/python -m pytest

kafka: $(READY) ## Run a Kafka broker until Ctrl-C, for trying things out
	@$(BIN)/python -m tests.providers.kafka_broker

demo: $(READY) ## Run the whole of Tidelog over the files of this folder, embedded, and check the result
	@$(BIN)/tidelog demo

bench: $(READY) ## Measure throughput and latency, embedded and on Kafka; ARGS="--log kafka://host:port --only drain"
	@$(BIN)/python -m bench $(or $(ARGS),--log embedded --log kafka)

torture: $(READY) ## Kill and stop everything for ten minutes on Kafka, then audit; ARGS="--seed N --seconds S"
	@$(BIN)/python -m tests.torture $(ARGS)

docs: $(READY) ## Build the documentation into build/site, strictly
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "build/site/index.html"

schemas: $(READY) ## Write docs/schemas again, from the code
	@$(BIN)/python -m tidelog_events.schemas docs/schemas

format: $(READY) ## Format the code and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove what the targets above made
	rm -rf $(VENV) .cache .demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
