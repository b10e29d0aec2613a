"""List, show and validate recipes.

mnemosmith recipes list                 every training recipe in the tree with its first line
mnemosmith recipes show RECIPE          the resolved recipe, defaults of ours written out
mnemosmith recipes validate [RECIPE …]  check them all, or those named; every error at once
mnemosmith recipes key NAME             what a key means, its type and default
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from recipes.loader import RecipeError, describe_key, find_recipes, load_recipe

TAKES_OVERRIDES = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "show", "validate", "key"), nargs="?", default="list")
    parser.add_argument("names", nargs="*", help="recipe files, or the key's name")


def run(args: argparse.Namespace) -> int:
    if args.action == "list":
        for path in find_recipes():
            print(f"{_shown(path)}\n    {path.read_text(encoding='utf-8').splitlines()[0].lstrip('# ')}")
        return 0
    if not args.names and args.action in ("show", "key"):
        print(f"error: name what to show: `mnemosmith recipes {args.action} NAME`.", file=sys.stderr)
        return 2
    if args.action == "key":
        for name in args.names:
            print(describe_key(name))
        return 0
    failed = 0
    for path in [Path(name) for name in args.names] or find_recipes():
        try:
            recipe = load_recipe(path, args.overrides)
        except RecipeError as error:
            print(f"error: {error}", file=sys.stderr)
            failed += 1
            continue
        print(recipe.to_yaml() if args.action == "show" else f"ok  {_shown(path)}")
    return 2 if failed else 0


def _shown(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
