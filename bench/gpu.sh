#!/usr/bin/env bash
# Reinforcement steps of two model shapes on this machine's GPU, LoRA and full: time and memory.
# Takes under eight minutes; PYTHON names another environment than .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
exec "${PYTHON:-.venv/bin/python}" -m bench.gpu "$@"
