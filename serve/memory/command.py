"""Look into stored memories.

mnemosmith memory inspect STORE                   the tree as it is now
mnemosmith memory inspect STORE --history         what every chunk did to it, and what was refused
mnemosmith memory inspect STORE --leaf Pets       the history of one leaf
mnemosmith memory inspect STORE --diff 0 12       what two versions differ in
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from extractors.contract import InputError
from extractors.persona_tree import Schema, TreeStore, load_schema
from extractors.persona_tree.show import show_diff, show_history, show_leaf, show_tree
from extractors.persona_tree.store import file_name, persons


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `mnemosmith memory`: what to do, and its own arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    inspect = actions.add_parser(
        "inspect", help="the tree of a person, its versions and its history", description=__doc__, allow_abbrev=False
    )
    inspect.formatter_class = argparse.RawDescriptionHelpFormatter
    inspect.add_argument(
        "store", type=Path, metavar="STORE", help="a folder of trees, such as outputs/eval/x/model/stores"
    )
    inspect.add_argument("--user", help="whose tree; not needed where the folder has one person's alone")
    inspect.add_argument(
        "--schema", help="full, quickstart, or a JSON file: the schema of the trees, where the folder does not say it"
    )
    what = inspect.add_mutually_exclusive_group()
    what.add_argument("--version", type=int, metavar="N", help="the tree after the first N chunks")
    what.add_argument("--history", action="store_true", help="what every chunk did, and what was refused")
    what.add_argument("--leaf", metavar="PATH", help="the history of one leaf")
    what.add_argument(
        "--diff", type=int, nargs=2, metavar=("A", "B"), help="the leaves that differ between two versions"
    )
    inspect.add_argument("--deleted", action="store_true", help="with the tree: also leaves that were emptied")
    inspect.add_argument("--meanings", action="store_true", help="with the tree: what each leaf is for")


def run(args: argparse.Namespace) -> int:
    """Prints what was asked for. Returns 2 where there is no such thing, having said what to write."""
    try:
        print(inspect(args), end="")
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def inspect(args: argparse.Namespace) -> str:
    """The text that `memory inspect` prints. Raises InputError."""
    if args.history or args.leaf or args.diff:
        for name in ("deleted", "meanings"):
            if getattr(args, name):
                raise InputError(
                    f"--{name} shows more of a tree: leave it out, or leave out the history or difference."
                )
    user = _user(args.store, args.user)
    store = TreeStore(args.store, user, _schema(args.store, user, args.schema), read_only=True)
    if store.torn:
        print(f"note: {store.torn} bytes of an unfinished last line were passed over.", file=sys.stderr)
    if args.history:
        return show_history(store.records)
    if args.leaf is not None:
        return show_leaf(store.schema.canonical(args.leaf) or args.leaf, store.history(args.leaf))
    if args.diff is not None:
        return show_diff(store.diff(*args.diff))
    tree = store.tree if args.version is None else store.tree_at(args.version)
    return show_tree(tree, meanings=args.meanings, deleted=args.deleted)


def _user(folder: Path, user: str | None) -> str:
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder: name the one that holds the trees, one JSONL file a person.")
    found = persons(folder)
    if user is None and len(found) == 1:
        return found[0]
    listed = ", ".join(found[:10]) + (f" and {len(found) - 10} more" if len(found) > 10 else "")
    if not found:
        raise InputError(f"{folder} holds no tree.")
    if user is None:
        raise InputError(f"{folder} holds the trees of {len(found)} persons: choose one with --user ({listed}).")
    if user not in found:
        raise InputError(f"{folder} holds no tree of {user!r:.80}: there are {listed}.")
    return user


def _schema(folder: Path, user: str, named: str | None) -> Schema:
    """The schema that the person's file was written with: the named one, the folder's, or one of ours."""
    if named is not None:
        return load_schema(named)
    beside = folder / "schema.json"
    about = _written_with(folder / file_name(user))
    names = [*([str(beside)] if beside.is_file() else []), "full", "quickstart"]
    for name in names:
        if load_schema(name).sha256 == about.get("sha256"):
            return load_schema(name)
    raise InputError(
        f"the tree of {user!r:.80} was written with the schema {about.get('name')} {about.get('version')}, which is none of "
        f"{', '.join(names)}: name its file with --schema."
    )


def _written_with(path: Path) -> dict[str, Any]:
    """The schema that the first line names; `persons` has read that line already."""
    with path.open("rb") as file:
        about: dict[str, Any] = json.loads(file.readline())["schema"]
    return about
