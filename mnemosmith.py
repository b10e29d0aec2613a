"""The command line. Lazy: a command imports its room only when it runs, so `--help` and a broken recipe answer at once."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

__version__ = "0.1.0"

# command: (module that holds add_arguments and run, or main; what it does)
COMMANDS: dict[str, tuple[str, str]] = {
    "quickstart": ("eval.quickstart", "the whole walk on a CPU, offline, with a report at the end"),
    "simulate": ("data_synthesis.simulate", "the simulated persona world: dialogues with gold, as a dataset folder"),
    "synthesize": ("data_synthesis.synthesize", "a dataset folder written by a teacher LLM, resumable, with its cost"),
    "teacher": (
        "data_synthesis.offline_teacher",
        "an offline teacher: an OpenAI-compatible server that knows a simulated world",
    ),
    "prepare": ("data_synthesis.prepare", "a corpus or your own JSONL as a dataset folder"),
    "data": ("data_synthesis.show", "look at a dataset folder: rows, labels, rejects, cost"),
    "train": ("training.train", "train what a recipe says (`--dry-run` shows everything and trains nothing)"),
    "export": ("serve.export", "merge a run, prove the merge, write the folder that vLLM serves"),
    "extract": ("serve.extract", "text in, structured memory out, with an exported folder or a server"),
    "memory": ("serve.memory.command", "look into stored memories: a person's tree, its versions, its history"),
    "eval": ("eval.run", "metrics with n and confidence intervals, per-sample rows, plots"),
    "recipes": ("recipes.command", "list, show and validate the recipes"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit codes: 0 done, 1 a run failed, 2 bad recipe or input."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_help())
        return 0
    if arguments[0] == "--version":
        print(f"mnemosmith {__version__}")
        return 0
    if arguments[0] not in COMMANDS:
        import difflib

        near = difflib.get_close_matches(arguments[0], COMMANDS, n=1)
        print(
            f"error: there is no command {arguments[0]!r}"
            + (f"; did you mean `{near[0]}`?" if near else ".")
            + f"\n\n{_help()}",
            file=sys.stderr,
        )
        return 2
    name = arguments[0]
    module = importlib.import_module(COMMANDS[name][0])
    parser = argparse.ArgumentParser(prog=f"mnemosmith {name}", description=module.__doc__, allow_abbrev=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    run: Callable[[argparse.Namespace], int] = module.run
    module.add_arguments(parser)
    if getattr(module, "TAKES_OVERRIDES", False):  # a recipe's own keys follow: --learning_rate 1e-4
        parsed, overrides = parser.parse_known_args(arguments[1:])
        parsed.overrides = overrides
    else:
        parsed = parser.parse_args(arguments[1:])
    return run(parsed)


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name:<{width}}  {what}" for name, (_, what) in COMMANDS.items())
    return (
        "usage: mnemosmith COMMAND …\n\nDistil long-term memory into small models that you own.\n\n"
        f"{lines}\n\n`mnemosmith COMMAND --help` says what a command takes."
    )


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    sys.exit(main())
