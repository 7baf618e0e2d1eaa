# Everything a contributor runs. Needs Python 3.11+ and make; `make test-real` also needs Go.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
LOCKED := --require-hashes --only-binary :all:
PYTEST := $(BIN)/pytest

# Stamps of the last installations: one is redone when a file it was made from is newer.
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
INSTALLED_DOCS := $(VENV)/.installed-docs

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(INSTALLED) ## Schedule pods on a simulated cluster and show why each went where
	@$(BIN)/mooring demo

.PHONY: test
test: $(INSTALLED_DEV) ## Run the tests (PYTEST_ARGS adds arguments)
	$(PYTEST) -n auto -m "not real" $(PYTEST_ARGS)

# A missing part is a skip with the reason, or with REQUIRE_REAL=1 an error.
.PHONY: test-real
test-real: $(INSTALLED_DEV) ## Run the tests against the real Kubernetes programs, got once
	scripts/build-real kubectl kube-apiserver kube-scheduler || test -z "$$REQUIRE_REAL"
	scripts/install-debian || test -z "$$REQUIRE_REAL"
	scripts/build-bind-rate || test -z "$$REQUIRE_REAL"
	scripts/build-helm || echo "Without Helm the tests of its chart are skipped."
	$(PYTEST) -m real $(PYTEST_ARGS)

.PHONY: screenshots
screenshots: $(INSTALLED_DEV) ## Make the pictures of the page in docs/images again, by its browser tests
	scripts/install-debian chromium
	UPDATE_SCREENSHOTS=1 $(PYTEST) -m real tests/real_browser/test_views.py -k accessible $(PYTEST_ARGS)

.PHONY: test-explore
test-explore: $(INSTALLED_DEV) ## Run the tests in other orders with other examples (MINUTES=30)
	$(BIN)/python scripts/explore-tests --minutes $(or $(MINUTES),30) $(PYTEST_ARGS)

.PHONY: lint
lint: $(INSTALLED_DEV) ## Check formatting, lint rules, which package imports which, and words
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/oxlint --quiet --deny-warnings src/mooring/web/static tests/real_page_scripts
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/check-words

.PHONY: types
types: $(INSTALLED_DEV) ## Check types
	$(BIN)/mypy

.PHONY: docs
docs: $(INSTALLED_DOCS) ## Build the site of the documentation into build/docs, checking every link
	@$(BIN)/python scripts/build-docs

.PHONY: format
format: $(INSTALLED_DEV) ## Format the code and repair what the linter can
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

.PHONY: lock
lock: $(INSTALLED_DEV) ## Lock the dependencies again (LOCK_ARGS=--upgrade takes newer versions)
	PATH="$(abspath $(BIN)):$$PATH" scripts/lock $(LOCK_ARGS)
	@$(MAKE) --no-print-directory sbom

.PHONY: plugin-reference
plugin-reference: $(INSTALLED_DEV) ## Write docs/plugin-reference.md from signatures and docstrings
	$(BIN)/python scripts/make-plugin-reference

.PHONY: sbom
sbom: $(INSTALLED_DEV) ## Write the SBOM of the runtime lock (CycloneDX)
	$(BIN)/python scripts/make-sbom

# Without a connection to the vulnerability service that part is a skip with the reason, or with REQUIRE_AUDIT=1 an error.
.PHONY: audit
audit: $(INSTALLED_DEV) ## Check the SBOM, and the locked packages for known vulnerabilities
	$(BIN)/python scripts/make-sbom --check
	$(BIN)/python scripts/audit $(AUDIT_ARGS)

.PHONY: clean
clean: ## Remove the virtual environment and everything generated in the tree
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src conformance tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Marked when it is whole: an interrupted one is made anew.
$(VENV)/.made:
	@python="$$(scripts/find-python $(PYTHON))" && echo "Making $(VENV) with $$python" && "$$python" -m venv --clear $(VENV)
	@touch $@

# Hashes are checked, nothing is resolved that is not in the lock, and nothing is compiled: building a source distribution
# would run code whose own requirements are not locked.
$(INSTALLED): requirements/runtime.txt requirements/build.txt pyproject.toml launcher/mooring src/mooring/__init__.py | $(VENV)/.made
	@echo "Installing what Mooring needs"
	@$(PIP) install $(LOCKED) -r requirements/runtime.txt -r requirements/build.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src # starts in half the time where Python may not write bytecode itself
	@touch $@

$(INSTALLED_DEV): requirements/dev.txt $(INSTALLED)
	@echo "Installing what its developers need"
	@$(PIP) install $(LOCKED) -r requirements/dev.txt
	@touch $@

$(INSTALLED_DOCS): requirements/docs.txt $(INSTALLED_DEV)
	@echo "Installing what the documentation needs"
	@$(PIP) install $(LOCKED) -r requirements/docs.txt
	@touch $@
