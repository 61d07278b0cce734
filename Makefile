# rankwire. `make demo` sets everything up and runs the main job; `make test` sets up and runs the tests.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUST_SOURCES := $(shell find dataplane/src -name '*.rs' 2>/dev/null) dataplane/Cargo.toml dataplane/Cargo.lock
DEMO_OUT ?= runs/demo
SECONDS ?= 60

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-python test-rust lint format bench fuzz docs soak system-packages bench-packages clean

help:  ## Show the targets.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 20

setup: $(STAMP)  ## Make .venv and build and install rankwire into it.

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "rankwire needs CPython 3.11 or newer: set PYTHON=/path/to/python3.11 (found $$($(PYTHON) -V 2>&1))" >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "rankwire needs the venv module of $(PYTHON): on Debian and Ubuntu install python3-venv" >&2; exit 2; }

$(STAMP): $(VENV)/bin/python pyproject.toml $(RUST_SOURCES)
	@echo "Setting up rankwire in $(VENV) (a few minutes the first time) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@command -v cargo >/dev/null || echo "No Rust toolchain here: the build fetches one of its own."
	@$(BIN)/python -m pip install --disable-pip-version-check --editable '.[test,lint]' >$(VENV)/setup.log 2>&1 || \
	  { if command -v cargo >/dev/null; then tail -n 30 $(VENV)/setup.log; \
	    echo "rankwire could not be built: the whole log is in $(VENV)/setup.log" >&2; \
	    else echo "rankwire needs Rust 1.85 or newer and none could be fetched: install rustup (https://rustup.rs), then run make again" >&2; fi; exit 2; }
	@touch $@

demo: setup  ## Set up, then run the demo job on loopback and write its report to runs/demo.
	@rm -rf $(DEMO_OUT)
	@$(BIN)/rankwire run loopback-clos --out $(DEMO_OUT)

test: setup test-rust test-python  ## Set up, then run all tests.

test-rust: setup
	cd dataplane && cargo test --quiet

test-python: setup
	$(BIN)/python -m pytest

lint: setup  ## Check formatting, types, import layers and lints.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	cd dataplane && cargo fmt --check
	cd dataplane/fuzz && cargo fmt --check
	cd dataplane && cargo clippy --all-targets --all-features --quiet -- -D warnings

format: setup  ## Format Python and Rust.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	cd dataplane && cargo fmt

bench: setup  ## Measure against named peers and limits, as ratios in one run.
	$(BIN)/python -m bench

PACKETS ?= 100000000
soak:  ## Send PACKETS packets (100000000) through a fabric that loses, damages, repeats and reorders; no Python.
	cd dataplane && SOAK_PACKETS=$(PACKETS) cargo test --test engine -- --ignored --nocapture soak

docs: setup  ## Write the pages and figures that come from the code and from predictions.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(BIN)/python -m emulator.documentation
	$(BIN)/python -m metrics.documentation > docs/metrics.md
	$(BIN)/python docs/figures/dcqcn.py
	$(BIN)/python docs/figures/published.py

fuzz:  ## Build every fuzz target and run each for its share of SECONDS (60).
	dataplane/fuzz/run $(SECONDS)

system-packages:  ## Install the peers that tests meet for real: broker, Prometheus, browser, dissector, machine for a kernel (Debian, root).
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	  chromium cpio iproute2 libfaketime libibverbs-dev mosquitto munge openssl prometheus qemu-system-x86 slurm-wlm tshark

bench-packages:  ## Install the peers that benchmarks measure against: ns-3 with a compiler, iperf3 (Debian, root).
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends g++ iperf3 libns3-dev

clean:  ## Remove everything that can be made again.
	rm -rf $(VENV) .cache dataplane/fuzz/corpus dataplane/fuzz/findings dataplane/fuzz/target dataplane/target dataplane/*.so runs dist build
