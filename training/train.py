"""Train what a recipe says: `mnemosmith train RECIPE [--key value] [--dry-run]`.

On several GPUs launch the method's own module, with the same recipe:
    accelerate launch --config_file recipes/accelerate/zero2.yaml -m training.sft --config RECIPE
"""

from __future__ import annotations

import argparse
import importlib
import re
from pathlib import Path

TAKES_OVERRIDES = True
METHODS = {"sft": "training.sft", "grpo": "training.grpo"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", type=Path, help="the recipe (YAML)")
    parser.add_argument(
        "--dry-run", action="store_true", help="show rows, loss mask, statistics and cost; train nothing"
    )


def run(args: argparse.Namespace) -> int:
    """Hand the recipe to its method, which checks it (a broken one is sft's to report, as it reads `method` itself)."""
    flags = ["--dry-run"] if args.dry_run else []
    main = importlib.import_module(METHODS[method_of(args.recipe)]).main
    return int(main(["--config", str(args.recipe), *flags, *args.overrides]))


def method_of(recipe: Path) -> str:
    """The method that a file names, sft where it names none that there is."""
    try:
        text = recipe.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return "sft"
    found = re.search(r"^method\s*:\s*[\"']?(\w+)", text, re.MULTILINE)
    return found[1] if found and found[1] in METHODS else "sft"
