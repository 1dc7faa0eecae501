# Every target does its own set-up. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# moto has an environment of its own: it needs an older python-dateutil than the tests have, and 29 packages.
MOTO := .venv-moto
# The servers of the tests that come as jars, a folder each.
JARS := .jars
# FerretDB, which speaks MongoDB's protocol: built from source.
FERRETDB := .ferretdb
FERRETDB_VERSION := v1.24.0
# What the tests start that no package of the system has.
SERVERS := $(JARS)/cassandra $(JARS)/dynamodb $(FERRETDB)/ferretdb
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name '*.lua' -o -name Cargo.toml 2>/dev/null)
export CARGO_TERM_COLOR ?= auto
# What pip says of itself, and to root, is nothing that a user has to do something about.
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
# What Python has compiled is kept, whatever the surroundings say: every worker of the tests and every program that they
# start would compile it anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## (.*)/  \1\t\2/' | column -ts $$'\t'

.PHONY: quickstart
quickstart: build ## Build, start a replicated PostgreSQL, measure all seven scores and O, write a report (about 5 minutes after the build)
	$(BIN)/nephoscope quickstart

.PHONY: test
test: ready-to-test test-rust test-python ## Everything: lint, unit, property and integration tests on real databases
	$(BIN)/python -m tests.tools.survivals --check

# What is fetched, built and read before the tests, side by side: one step alone does not keep two processors busy.
.PHONY: ready-to-test
ready-to-test:
	$(MAKE) --jobs 6 --no-print-directory stubs $(MOTO)/built $(SERVERS) lint

# One after the other: two installers in one environment may meet what the other has half written.
.PHONY: python-built
python-built: $(VENV)/dev
	$(MAKE) --no-print-directory build-for-tests

.PHONY: stubs
stubs: python-built
	$(BIN)/python -m mypy.stubtest nephoscope._engine

# Clippy in the compiler's place: our crates are checked as they are built for the tests, once instead of twice.
clippy test-rust test-quick: export RUSTC_WORKSPACE_WRAPPER := clippy-driver
clippy test-rust test-quick: export CLIPPY_ARGS := -Dwarnings__CLIPPY_HACKERY__

.PHONY: clippy
clippy:
	cargo test --workspace --locked --no-run

.PHONY: survivals
survivals: $(VENV)/dev ## The tables of docs/reliability.md, from what the last tests have put on record
	$(BIN)/python -m tests.tools.survivals

# Most tests wait for servers or for the clock: more of them than there are processors.
WORKERS ?= 4

.PHONY: test-rust
test-rust: $(VENV)/dev system-packages $(SERVERS)
	rm -rf target/survivals/rust
	tests/tools/rust-tests $(WORKERS) --workspace

.PHONY: test-quick
test-quick: build-for-tests $(VENV)/dev ## Without servers and long measurements, for the daily round: about two minutes where all is built
	$(BIN)/ruff check
	$(BIN)/mypy
	cargo test --workspace --locked --lib -- --test-threads $(WORKERS)
	$(BIN)/pytest -m "not (servers or alone or light or long or wheel)" --numprocesses $(WORKERS) --dist loadfile

# The processors are shared, here and with other machines: what has failed is run once more, alone, and must pass then.
FAILED_AGAIN = { echo "once more, alone: what has failed" >&2; $(BIN)/pytest --last-failed --last-failed-no-failures none; }

.PHONY: test-python
test-python: build-for-tests $(VENV)/dev $(MOTO)/built system-packages $(SERVERS)
	rm -rf target/survivals/python
	$(BIN)/pytest -m "not (alone or light)" --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder || $(FAILED_AGAIN)
	$(BIN)/pytest -m "light and not alone" --numprocesses 3 --dist loadgroup --maxschedchunk 1 || $(FAILED_AGAIN)
	$(BIN)/pytest -m alone || $(FAILED_AGAIN)

.PHONY: lint
lint: lint-python clippy ## rustfmt, clippy, ruff, mypy
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check

.PHONY: lint-python
lint-python: $(VENV)/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

.PHONY: bench
bench: build $(VENV)/dev system-packages ## Side-by-side comparisons with pgbench and others; ONLY=name runs one
	$(BIN)/python -m benches $(if $(ONLY),--only $(ONLY))

SECONDS_EACH ?= 600

.PHONY: fuzz
fuzz: build $(VENV)/fuzz ## Fuzz the parsers of foreign bytes, each for SECONDS_EACH (600); ONLY=target runs one
	fuzz/run $(SECONDS_EACH) $(ONLY)

.PHONY: docs
docs: build $(VENV)/dev ## The API documentation of the Rust crates, and the generated parts of docs/
	cargo doc --workspace --no-deps --locked
	$(BIN)/python -m tests.tools.generate_docs

.PHONY: wheel
wheel: build ## A wheel in dist/, with workloads, studies and price books in it
	$(BIN)/maturin build --release --locked --out dist

.PHONY: build
build: $(VENV)/built

# The extension module and the package, in place. Optimisation across crates takes minutes: the tests' module is compiled
# without it. One that was compiled with it serves them as well.
$(VENV)/built-for-tests test-python: export CARGO_PROFILE_RELEASE_LTO := off
$(VENV)/built-for-tests test-python: export CARGO_PROFILE_RELEASE_CODEGEN_UNITS := 16

$(VENV)/built $(VENV)/built-for-tests: $(VENV)/run $(RUST_SOURCES) Cargo.toml Cargo.lock pyproject.toml
	PIP_QUIET=1 $(BIN)/maturin develop --release --locked --quiet
	rm -f $(VENV)/built $(VENV)/built-for-tests
	touch $@

.PHONY: build-for-tests
build-for-tests:
	@$(MAKE) --question $(VENV)/built 2>/dev/null || $(MAKE) --no-print-directory $(VENV)/built-for-tests

$(VENV)/run: requirements/run.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes -r requirements/run.txt
	touch $@

$(VENV)/dev: $(VENV)/run requirements/dev.txt
	$(BIN)/pip install --quiet --require-hashes -r requirements/dev.txt
	touch $@

$(VENV)/fuzz: $(VENV)/run requirements/fuzz.txt
	$(BIN)/pip install --quiet --require-hashes -r requirements/fuzz.txt
	touch $@

$(MOTO)/built: requirements/moto.txt
	test -x $(MOTO)/bin/python || $(PYTHON) -m venv $(MOTO)
	$(MOTO)/bin/pip install --quiet --require-hashes -r requirements/moto.txt
	touch $@

# A folder is made whole or not at all; without Maven there is none, and the tests that need it say so and are skipped.
$(JARS)/%: requirements/%.xml | system-packages
	command -v mvn >/dev/null || { echo "Maven is not installed: no $@" >&2; exit 0; }; \
	rm -rf $@ $@.partial; \
	mvn --batch-mode --quiet --file $< \
	  org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
	  -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$@.partial; \
	touch $@.partial; mv $@.partial $@

# One minute and a half of one processor. Without Go there is none, and the tests that need it say so and are skipped.
# The sums of its modules are those of Go's own database.
$(FERRETDB)/ferretdb:
	command -v go >/dev/null || { echo "Go is not installed: no $@" >&2; exit 0; }; \
	rm -rf $(FERRETDB) $(FERRETDB).partial; \
	module=$$(go mod download -json github.com/FerretDB/FerretDB@$(FERRETDB_VERSION) \
	  | $(PYTHON) -c 'import json, sys; print(json.load(sys.stdin)["Dir"])'); \
	cp -r --no-preserve=mode "$$module" $(FERRETDB).partial; \
	echo $(FERRETDB_VERSION) >$(FERRETDB).partial/build/version/version.txt; \
	mkdir $(FERRETDB); \
	(cd $(FERRETDB).partial && go build -buildvcs=false -trimpath -ldflags '-s -w' -o $(CURDIR)/$@ ./cmd/ferretdb); \
	rm -rf $(FERRETDB).partial

# Real servers and a browser for the tests. As root they are installed; anyone else gets them from his administrator,
# and the tests that need what is missing say so and are skipped.
.PHONY: system-packages
system-packages:
	@tests/tools/system-packages

.PHONY: locks
locks: $(VENV)/dev ## Resolve the Python dependencies anew
	$(BIN)/pip install --quiet uv
	lock() { $(BIN)/uv pip compile "$${@:2}" --generate-hashes --no-header --no-annotate \
	    --universal --python-version 3.11 --upgrade --quiet -o requirements/$$1.txt; }; \
	lock run pyproject.toml --group build; lock dev pyproject.toml --group test; \
	lock fuzz pyproject.toml --group fuzz; lock moto --group moto

.PHONY: clean
clean: ## Remove what was built, and say what stays in the cache
	@test ! -x $(BIN)/nephoscope || $(BIN)/nephoscope clean --dry-run \
	  | sed -n 's/^would remove:/stays in the cache, and may be deleted:/p' || true
	rm -rf target $(VENV) $(MOTO) $(JARS) $(FERRETDB) $(FERRETDB).partial dist
