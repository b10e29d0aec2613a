"""`mnemosmith extract OUT_OR_URL`: dialogues in, structured memory out, for a person at a terminal or a shell script.

The target is an exported folder (the model runs in this process) or the address of an OpenAI-compatible server.
Results go to standard output, one JSON object a line, or as a table on a terminal; the summary goes to standard
error. Exit status: 0 where at least one row was extracted, 1 where none was, 2 for input that cannot be used.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from extractors import load_extractor
from extractors.contract import ExtractionError, Extractor, InputError
from serve.answers import Answer, count_failures

UNNAMED_SPEAKER = "Speaker A"
_SPEAKER = re.compile(r"\s*([^\W\d_][^:]{0,39}):\s+(\S.*)")
_FAULTS_SHOWN = 10


@dataclass(frozen=True)
class Item:
    """One thing to extract from: an id for the output, and the extractor's input."""

    id: str
    value: Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `mnemosmith extract`."""
    parser.add_argument(
        "target", metavar="OUT_OR_URL", help="an exported folder, or the address of a server (http://…)"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--text",
        action="append",
        metavar="LINE",
        help='"Mia: I have a cat"; repeat it for more turns (PersonaTrees: of the last speaker)',
    )
    source.add_argument("--input", metavar="FILE", help="JSONL of dataset rows or of inputs; - reads standard input")
    parser.add_argument("--folder", type=Path, help="with a URL: the exported folder that holds the contract")
    parser.add_argument("--extractor", help="without a contract to read: the extractor by name, for example triplets")
    parser.add_argument("--model", help="with a URL: the model's name there (default: the only one it serves)")
    parser.add_argument("--batch-size", type=int, default=16, help="in process: rows decoded together (default 16)")
    parser.add_argument(
        "--dtype", default="float32", choices=("float32", "bfloat16"), help="in process (default float32)"
    )
    parser.add_argument("--concurrency", type=int, default=16, help="with a URL: requests at a time (default 16)")
    parser.add_argument("--unguided", action="store_true", help="do not bind the answer to the JSON schema")
    parser.add_argument("--json", action="store_true", help="JSON lines on a terminal too")


def run(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    try:
        extractor = _contract(args)
        items = _items(args, extractor, sys.stdin)
        extract = _server(args, extractor) if _is_url(args.target) else _in_process(args, extractor)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    from serve.client import ServerError

    try:
        answers = extract([item.value for item in items])
    except ServerError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    as_json = args.json or not sys.stdout.isatty()
    for item, answer in zip(items, answers, strict=True):
        print(_json_line(extractor, item, answer) if as_json else _readable(extractor, item, answer))
    print(summary(answers, extractor), file=sys.stderr)
    return 0 if any(answer.ok for answer in answers) else 1


def read_dialogue(lines: Sequence[str]) -> dict[str, Any]:
    """Lines `Speaker: text` as an input's JSON form. A line without a speaker is one of Speaker A's."""
    turns = []
    for line in lines:
        if line.strip():
            match = _SPEAKER.fullmatch(line.rstrip())
            speaker, text = match.groups() if match else (UNNAMED_SPEAKER, line.strip())
            turns.append({"speaker": speaker.strip(), "text": text})
    if not turns:
        raise InputError('the text is empty: write at least one line, such as "Mia: I have a cat".')
    return {"turns": turns}


def summary(answers: Sequence[Answer[Any]], extractor: Extractor[Any, Any]) -> str:
    """`12 rows: 11 extracted (23 triplets), 1 failed (truncated 1)`."""
    good = [answer.value for answer in answers if answer.ok]
    found = sum(len(value) for value in good if isinstance(value, Sequence))
    failures = count_failures(answers)
    line = f"{len(answers)} {'row' if len(answers) == 1 else 'rows'}: {len(good)} extracted"
    if all(isinstance(value, Sequence) for value in good):
        line += f" ({found} {extractor.name})"
    if failures:
        line += f", {failures.total()} failed ({', '.join(f'{kind} {n}' for kind, n in failures.most_common())})"
    return line


def _is_url(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def _contract(args: argparse.Namespace) -> Extractor[Any, Any]:
    from serve.client import folder_extractor

    if not _is_url(args.target):
        folder = Path(args.target)
        if not folder.is_dir():
            raise InputError(f"{args.target} is neither a folder nor an address that starts with http:// or https://.")
        if args.folder is not None:
            raise InputError("--folder goes with a URL: a folder as the target is its own contract.")
        if (folder / "extractor.json").is_file() or not args.extractor:
            return folder_extractor(folder)
    elif args.folder is not None:
        return folder_extractor(args.folder)
    return load_extractor(args.extractor or "triplets")


def _items(args: argparse.Namespace, extractor: Extractor[Any, Any], stdin: TextIO) -> list[Item]:
    if args.text is not None:
        lines = [line for text in args.text for line in text.splitlines()]
        return [Item("text", _told(lines, extractor))]
    if args.input is not None and args.input != "-":
        path = Path(args.input)
        if not path.is_file():
            raise InputError(f"--input {args.input}: there is no such file.")
        try:
            return _rows(path.read_text(encoding="utf-8").splitlines(), extractor, args.input)
        except UnicodeDecodeError as error:
            raise InputError(f"--input {args.input} is not UTF-8: {error}.") from None
    if stdin.isatty():
        raise InputError(
            'there is nothing to extract from: give --text "Mia: I have a cat" or --input FILE.jsonl, or pipe text in.'
        )
    lines = stdin.read().splitlines()
    if args.input == "-":
        return _rows(lines, extractor, "standard input")
    return [Item("text", _told(lines, extractor))]


def _told(lines: Sequence[str], extractor: Extractor[Any, Any]) -> Any:
    """The input of lines; for PersonaTrees the tree is empty, and the person is whoever speaks last."""
    data = read_dialogue(lines)
    if extractor.name == "persona_tree":
        data["person"] = data["turns"][-1]["speaker"]
    return extractor.read_input(data)


def _rows(lines: Sequence[str], extractor: Extractor[Any, Any], source: str) -> list[Item]:
    """Dataset rows ({"id", "input", …}) or bare inputs ({"turns": […]}), one a line; a bare input is named by its
    line."""
    items, faults = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            if not isinstance(data, Mapping):
                raise InputError('a line is due as {"input": {…}} or as the input itself.')
            name = data.get("id") if "input" in data else None
            items.append(Item(str(name or f"line {number}"), extractor.read_input(data.get("input", data))))
        except (json.JSONDecodeError, InputError) as error:
            faults.append(f"line {number}: {error}")
    if faults:
        shown = "\n  ".join(faults[:_FAULTS_SHOWN])
        raise InputError(f"{source}: {len(faults)} of its lines cannot be used:\n  {shown}")
    if not items:
        raise InputError(f"{source} holds no rows.")
    return items


def _in_process(args: argparse.Namespace, extractor: Extractor[Any, Any]) -> Callable[[list[Any]], list[Answer[Any]]]:
    if args.batch_size < 1:
        raise InputError(f"--batch-size is {args.batch_size}: write 1 or more.")

    def extract(values: list[Any]) -> list[Answer[Any]]:
        from transformers.utils import logging

        from serve.generate import Generator

        logging.disable_progress_bar()  # of loading weights: the bar below counts rows
        logging.set_verbosity_error()  # it warns of the temperature 0 that an export states for other servers
        generator = Generator(
            Path(args.target), extractor, dtype=args.dtype, guided=not args.unguided, batch_size=args.batch_size
        )
        with _Progress(len(values)) as progress:
            return generator.generate(values, on_progress=progress)

    return extract


def _server(args: argparse.Namespace, extractor: Extractor[Any, Any]) -> Callable[[list[Any]], list[Answer[Any]]]:
    from serve.client import ExtractorClient

    if args.concurrency < 1:
        raise InputError(f"--concurrency is {args.concurrency}: write 1 or more.")
    client = ExtractorClient(
        args.target, extractor, model=args.model, guided=not args.unguided, concurrency=args.concurrency
    )

    def extract(values: list[Any]) -> list[Answer[Any]]:
        with _Progress(len(values)) as progress:
            answers = client.extract_all(values, on_progress=progress)
        for note in client.notes:
            print(f"note: {note}", file=sys.stderr)
        return answers

    return extract


class _Progress:
    """A progress bar on standard error, for more than one row and on a terminal only."""

    def __init__(self, total: int):
        from tqdm import tqdm

        self._bar = tqdm(total=total, unit="row", disable=total < 2 or not sys.stderr.isatty())

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def __call__(self, done: int, total: int) -> None:
        self._bar.update(done - self._bar.n)


def _json_line(extractor: Extractor[Any, Any], item: Item, answer: Answer[Any]) -> str:
    data: dict[str, Any] = {"id": item.id, "ok": answer.ok}
    if isinstance(answer.value, ExtractionError):
        error = answer.value
        data["error"] = {
            "kind": error.kind, "position": error.position, "excerpt": error.excerpt, "detail": error.detail,
        }  # fmt: skip
    else:
        data["output"] = extractor.write_output(answer.value)
    data["finish_reason"] = answer.finish_reason
    return json.dumps(data, ensure_ascii=False)


def _readable(extractor: Extractor[Any, Any], item: Item, answer: Answer[Any]) -> str:
    if isinstance(answer.value, ExtractionError):
        return f"{item.id}: failed, {answer.value}"
    output = extractor.write_output(answer.value)
    if not output:
        return f"{item.id}: nothing to remember"
    if not isinstance(output, list) or not all(isinstance(row, Mapping) for row in output):
        return f"{item.id}: {json.dumps(output, ensure_ascii=False)}"
    rows = [list(output[0])] + [[str(value) for value in row.values()] for row in output]
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([f"{item.id}:", *lines])
