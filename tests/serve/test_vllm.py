"""The real vLLM serves an exported folder and answers as the in-process generator does (`make test-vllm`).

Then it serves MemListeners, a trained one (outputs/quickstart/persona-tree-export) where there is one and one of random
weights, whose answers are bound to the grammar of each chunk's tree.

Needs an environment with vLLM (MNEMOSMITH_VLLM_PYTHON, default .venv-vllm/bin/python) and some 6 GB of memory. The
folder is $MNEMOSMITH_EXPORT, or outputs/quickstart/export, or, where neither exists, the untrained SmolLM2-135M with
a contract.

Both sides decode greedily in float32, so the same grammar gives the same text unless two tokens are within rounding
of each other: one row in 24 may differ, and those that do are printed. The grammars are not quite the same: vLLM's
guidance backend admits only the tokenizer's own split of text that the schema fixes (`{"` and not `{`, `"`), as
training has it, while xgrammar admits any split. To a trained model that makes no difference; an untrained one
prefers other splits, so of the stand-in's guided answers only the form is checked, and its free text is compared.
"""

from __future__ import annotations

import json
import os
import re
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from extractors import load_extractor
from extractors.contract import Extractor
from extractors.endpoint import response_format
from extractors.persona_tree import PersonaTree, PersonaTreeExtractor, execute
from recipes.models import SMOLLM2_NAME, ModelError, resolve_model
from serve.answers import SEPARATORS, Answer
from serve.client import ExtractorClient, folder_extractor
from serve.generate import Generator
from serve.local import Server
from serve.vllm import run_server
from tests.tiny import make_tiny_chat_model

pytestmark = pytest.mark.vllm

ROOT = Path(__file__).resolve().parents[2]
PYTHON = Path(os.environ.get("MNEMOSMITH_VLLM_PYTHON", ROOT / ".venv-vllm" / "bin" / "python"))
MAY_DIFFER = 1
SAID = [
    "I finally adopted a cat, Pixel.",
    "My brother lives in Lisbon and works as a nurse.",
    "I love jazz, but I can't stand opera.",
    'We watch "The Office" every night, my wife\'s sister too.',
    "Nothing new, how was your weekend?",
    "I used to play the cello; now I collect stamps \\ coins.",
]
SPEAKERS = ["Mia", "Tom", "Zoë", "Nikos"]


@dataclass(frozen=True)
class Served:
    folder: Path
    server: Server
    extractor: Extractor[Any, Any]
    trained: bool

    @property
    def inputs(self) -> list[Any]:
        rows = [(speaker, said) for speaker in SPEAKERS for said in SAID]
        return [self.extractor.read_input({"turns": [{"speaker": who, "text": said}]}) for who, said in rows]

    @property
    def limit(self) -> int:
        """Tokens of one answer: an untrained model rambles, and a CPU pays for each of them."""
        return self.extractor.decoding.max_tokens if self.trained else 40

    def ask(self, guided: bool) -> list[Answer[Any]]:
        client: ExtractorClient[Any, Any] = ExtractorClient(
            self.server.url, self.extractor, guided=guided, max_tokens=self.limit, timeout=600, concurrency=8
        )
        answers = client.extract_all(self.inputs)
        assert client.notes == []
        return answers

    def generate(self, guided: bool) -> list[Answer[Any]]:
        return Generator(self.folder, self.extractor, guided=guided, max_tokens=self.limit).generate(self.inputs)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            self.server.url.removesuffix("/v1") + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=600) as reply:
            return json.load(reply)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    if not PYTHON.is_file():
        pytest.skip(f"{PYTHON} does not exist: set MNEMOSMITH_VLLM_PYTHON to the Python of an environment with vLLM")
    folder = Path(os.environ.get("MNEMOSMITH_EXPORT", ROOT / "outputs" / "quickstart" / "export"))
    trained = (folder / "extractor.json").is_file()
    if not trained:
        assert "MNEMOSMITH_EXPORT" not in os.environ, f"MNEMOSMITH_EXPORT: {folder} is no exported folder"
        folder = stand_in(tmp_path_factory.mktemp("stand-in") / "export")
    with run_server(folder, python=PYTHON) as server:
        print(f"\nvLLM serves {'an export' if trained else 'the untrained stand-in'} after {server.seconds:.0f} s")
        yield Served(folder, server, folder_extractor(folder), trained)


def stand_in(folder: Path) -> Path:
    try:
        base = Path(resolve_model(SMOLLM2_NAME))
    except ModelError as error:
        pytest.skip(str(error))
    folder.mkdir()
    for file in base.iterdir():
        (folder / file.name).symlink_to(file)
    (folder / "extractor.json").write_text(json.dumps(load_extractor("triplets", {"prompt": "compact"}).to_json()))
    return folder


def assert_same(theirs: list[Answer[Any]], ours: list[Answer[Any]], may_differ: int = MAY_DIFFER) -> None:
    assert len(theirs) == len(ours) >= 20
    pairs = [
        (a, b) for a, b in zip(theirs, ours, strict=True) if (a.text, a.finish_reason) != (b.text, b.finish_reason)
    ]
    for a, b in pairs:
        print(f"differs:\n  vLLM       {a.finish_reason}: {a.text!r}\n  in process {b.finish_reason}: {b.text!r}")
    print(f"{len(ours) - len(pairs)} of {len(ours)} answers are equal")
    assert len(pairs) <= may_differ


def white_space(text: str) -> set[str]:
    """The JSON separators of `text` that hold white space, strings left out."""
    return set(re.findall(r"[,:]?\s+", re.sub(r'"(?:[^"\\]|\\.)*"', "", text)))


def test_the_servers_prompt_ids_are_ours(served: Served) -> None:
    generator = Generator(served.folder, served.extractor, guided=False)
    for value in served.inputs:
        body = {
            "model": served.server.model,
            "messages": served.extractor.messages(value),
            "add_generation_prompt": True,
        }
        template = {"chat_template_kwargs": dict(served.extractor.decoding.chat_template_kwargs)}
        ours = generator.prompt_ids(value)
        assert served.post("/tokenize", body | template)["tokens"] == ours
        if served.trained:  # the export's template has training's arguments as its defaults
            assert served.post("/tokenize", body)["tokens"] == ours


def test_free_text_is_the_generators(served: Served) -> None:
    assert_same(served.ask(guided=False), served.generate(guided=False))


def test_answers_under_the_schema_parse_and_are_the_generators(served: Served) -> None:
    answers = served.ask(guided=True)
    finished = [answer for answer in answers if answer.finish_reason != "length"]
    assert [answer.text for answer in finished if not answer.ok] == []
    assert [answer.text for answer in finished if white_space(answer.text) - set(SEPARATORS)] == []
    if served.trained:
        assert len(finished) == len(answers)
        assert_same(answers, served.generate(guided=True))
    else:
        assert finished
        print(f"{len(finished)} of {len(answers)} answers ended within {served.limit} tokens, and all of those parse")


def test_a_plain_request_is_answered_as_the_contracts_own(served: Served) -> None:
    if not served.trained:
        pytest.skip(
            "the stand-in has no export's generation config; run after `make quickstart`, or set MNEMOSMITH_EXPORT"
        )
    schema = {"response_format": response_format(served.extractor)}
    for extra, answers in (({}, served.ask(guided=False)), (schema, served.ask(guided=True))):
        for value, answer in list(zip(served.inputs, answers, strict=True))[:6]:
            body = {
                "model": served.server.model,
                "messages": served.extractor.messages(value),
                "max_tokens": served.limit,
            }
            [choice] = served.post("/v1/chat/completions", body | extra)["choices"]
            assert choice["message"]["content"] == answer.text


CHUNKS = 52
TREE_MAY_DIFFER = 3


@pytest.fixture(scope="module")
def chunks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Inputs of held-out people of the simulated world, in their JSON form."""
    from data_synthesis.operations.prepare import prepare
    from data_synthesis.simulate import simulate

    folder = tmp_path_factory.mktemp("chunks")
    simulate(folder / "world", people=40, seed=5)
    prepare("world", str(folder / "world"), folder / "rows", schema="quickstart", exchanges=1)
    lines = (folder / "rows/test.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) >= CHUNKS
    return [json.loads(line)["input"] for line in lines[:CHUNKS]]


def edits(answers: list[Answer[Any]], inputs: list[Any], extractor: Extractor[Any, Any]) -> int:
    """How many operations the executor carries out; it refuses none."""
    assert isinstance(extractor, PersonaTreeExtractor)
    taken = 0
    for value, answer in zip(inputs, answers, strict=True):
        assert answer.ok, answer.value
        done = execute(PersonaTree(extractor.schema, value.tree), answer.value)
        assert not done.rejected, (answer.text, done.rejected)
        taken += len(done.applied)
    return taken


@pytest.mark.parametrize("schema", ["quickstart", "full"])
def test_an_untrained_model_edits_trees_only_as_the_executor_takes_it(
    schema: str, chunks: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Random weights and a tokenizer of 512 entries, which makes answers long: every one of them ends by itself."""
    if not PYTHON.is_file():
        pytest.skip(f"{PYTHON} does not exist: set MNEMOSMITH_VLLM_PYTHON to the Python of an environment with vLLM")
    extractor = load_extractor("persona_tree", {"schema": schema, "prompt": "compact", "path_index": "none"})
    folder = make_tiny_chat_model(tmp_path / "tiny", seed=4)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 8192}))
    (folder / "extractor.json").write_text(json.dumps(extractor.to_json()))
    inputs = [extractor.read_input(row) for row in chunks]
    with run_server(folder, python=PYTHON, max_model_len=8192) as server:
        client: ExtractorClient[Any, Any] = ExtractorClient(
            server.url, extractor, max_tokens=6000, timeout=600, concurrency=8
        )
        start = time.perf_counter()
        answers = client.extract_all(inputs)
        seconds = time.perf_counter() - start
    assert client.notes == []
    taken = edits(answers, inputs, extractor)
    tokens = sorted(answer.completion_tokens for answer in answers)
    print(f"{schema}: {len(answers)} chunks, {taken} operations, none refused, {seconds:.0f} s")
    print(f"{tokens[len(tokens) // 2]} tokens in the middle, {tokens[-1]} at most")
    assert taken > CHUNKS  # several operations in some answers


def test_a_trained_memlistener_answers_as_in_process_and_only_what_the_executor_takes(
    chunks: list[dict[str, Any]],
) -> None:
    folder = ROOT / "outputs" / "quickstart" / "persona-tree-export"
    if not PYTHON.is_file() or not folder.is_dir():
        pytest.skip(f"needs {PYTHON} and {folder}: run after `make quickstart`")
    extractor = folder_extractor(folder)
    inputs = [extractor.read_input(row) for row in chunks]
    with run_server(folder, python=PYTHON) as server:
        client: ExtractorClient[Any, Any] = ExtractorClient(
            server.url, extractor, max_tokens=96, timeout=600, concurrency=8
        )
        answers = client.extract_all(inputs)
    assert client.notes == []
    print(f"{len(answers)} chunks, {edits(answers, inputs, extractor)} operations, none refused")
    assert_same(answers, Generator(folder, extractor, max_tokens=96).generate(inputs), TREE_MAY_DIFFER)


def test_a_served_model_can_be_the_teacher(served: Served, tmp_path: Path) -> None:
    from data_synthesis.simulate import simulate
    from mnemosmith import main

    simulate(tmp_path / "world", people=8, seed=1)
    recipe = {
        "extractor": "triplets",
        "extractor_options": dict(served.extractor.options()),
        "corpora": [{"name": "world", "source": str(tmp_path / "world")}],
        "model": served.server.model,
        "base_url": served.server.url,
        "temperature": 0.0,
        "top_p": 1.0,
        "max_tokens": served.limit,
        "extra_body": {"chat_template_kwargs": dict(served.extractor.decoding.chat_template_kwargs)},
        "rows": 12,
        "concurrency": 8,
        "max_attempts": 1,
        "min_grounded": None,
        "max_empty_share": None,
        "output_dir": str(tmp_path / "taught"),
    }
    (tmp_path / "recipe.yaml").write_text(json.dumps(recipe))  # JSON is YAML
    status = main(["synthesize", str(tmp_path / "recipe.yaml"), "--quiet"])
    replies = [json.loads(line) for line in (tmp_path / "taught-run/responses.jsonl").read_text("utf-8").splitlines()]
    assert len(replies) >= 13 and all(reply["prompt_tokens"] > 0 for reply in replies)
    if served.trained:
        assert status == 0
        account = json.loads((tmp_path / "taught/card.json").read_text("utf-8"))["details"]["synthesis"]
        assert account["answered"] >= 0.8 * account["requests"] == 0.8 * len(replies)
