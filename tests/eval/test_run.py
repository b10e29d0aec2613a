"""`mnemosmith eval`: recipes, the run on a tiny model and on baselines, comparison of result folders."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from eval.compare import compare
from eval.evaluate import REQUIRED_META, Prediction, evaluate, read_result, read_samples
from eval.recipe import load_eval_recipe
from eval.run import draw_rows, draw_shots, main
from extractors.contract import InputError
from extractors.rows import Row, read_rows, write_rows
from extractors.triplets import Dialogue, Triplet, TripletExtractor, Turn
from recipes.loader import RecipeError, find_recipes
from tests.tiny import make_tiny_chat_model

CHECKOUT = Path(__file__).resolve().parent.parent.parent
EXTRACTOR = TripletExtractor(prompt="compact")
PETS = ("cat", "dog", "parrot", "horse", "snake", "rabbit")
JOBS = ("nurse", "baker", "pilot", "teacher")


def _row(person: str, number: int, phrasing: str = "seen") -> dict[str, Any]:
    if number % 3 == 2:
        text, gold = "What a lovely morning it is.", []
    elif number % 3 == 1:
        text, gold = f"I work as a {JOBS[number % 4]}.", [(person, "has_profession", JOBS[number % 4])]
    else:
        text, gold = f"I have a {PETS[number % 6]} at home.", [(person, "have_pet", PETS[number % 6])]
    fields = ("subject", "relation", "object")
    return {
        "id": f"{person}-{number}",
        "group": person,
        "input": {"turns": [{"speaker": person, "text": text}]},
        "gold": [dict(zip(fields, triplet, strict=True)) for triplet in gold],
        "tags": {"phrasing": phrasing},
    }


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dataset")
    write_rows(folder / "train.jsonl", [_row(person, n) for person in ("Ana", "Ben", "Cleo", "Dan") for n in range(9)])
    write_rows(
        folder / "test.jsonl",
        [_row(p, n, "seen" if n % 2 else "unseen") for p in ("Mia", "Tom", "Eva") for n in range(4)],
    )
    return folder


def recipe_file(folder: Path, text: str) -> Path:
    path = folder / "eval.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_shipped_eval_recipe_is_valid_and_is_no_training_recipe() -> None:
    shipped = sorted((CHECKOUT / "recipes" / "eval").rglob("*.yaml"))
    assert [path.name for path in shipped] == ["persona_tree-world.yaml", "triplets-world.yaml"]
    for path, extractor in zip(shipped, ("persona_tree", "triplets"), strict=True):
        recipe = load_eval_recipe(path)
        assert recipe.extractor == extractor and recipe.eval_rows and recipe.baselines
    assert not set(shipped) & set(find_recipes())


def test_all_errors_of_a_recipe_are_reported_at_once_with_what_to_write(tmp_path: Path) -> None:
    path = recipe_file(
        tmp_path,
        "extractor: triplets\nmodel_name_or_path: x\nshots: -1\nguided: maybe\nbaselines: [tfidf]\nlimit: 5\nshotz: 2\n"
        "extractor: triplets\noutput_dir: out\n",
    )
    with pytest.raises(RecipeError) as raised:
        load_eval_recipe(path)
    text = str(raised.value)
    for part in (
        "line 2: `model_name_or_path` is not a key of an eval recipe. Did you mean `model`?",
        "`shots` is -1 but must be at least 0",
        "`guided` is maybe but must be true or false",
        "`baselines` is [tfidf] but must be one of: tfidf_linear, minilm_nn, minilm_nn_slots",
        "Did you mean `eval_rows`?",
        "Did you mean `shots`?",
        "`extractor` is written twice",
        "`dataset_name` is missing",
    ):
        assert part in text, part


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("extractor: triplets", "there is nothing to score"),
        ("extractor: triplets\nbaselines: [minilm_nn]\nadapter: run", "`adapter` is run but `model` is null"),
        (
            "extractor: triplets\nmodel: http://localhost:8000/v1\ndtype: bfloat16",
            "`dtype` is bfloat16 but `model` is a URL",
        ),
        ("model: http://localhost:8000/v1", "a URL does not tell"),
        ("extractor: triplets\nmodel: x\nserved_model_name: y", "write its URL as `model`"),
        ("extractor: triplets\nmodel: x\nshots: 2\ndataset_test_split: train", "Score another split"),
        ("extractor: triplets\nbaselines: [minilm_nn, minilm_nn]", "one of them twice"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(tmp_path: Path, lines: str, said: str) -> None:
    path = recipe_file(tmp_path, f"{lines}\ndataset_name: d\noutput_dir: o\n")
    with pytest.raises(RecipeError, match=said):
        load_eval_recipe(path)


def test_a_resolved_recipe_reads_back_as_itself_and_the_command_line_comes_last(tmp_path: Path) -> None:
    shipped = CHECKOUT / "recipes" / "eval" / "triplets-world.yaml"
    recipe = load_eval_recipe(shipped, {"shots": "5", "eval_rows": "null", "model": "123", "baselines": "[]"})
    assert (recipe.shots, recipe.eval_rows, recipe.model, recipe.baselines) == (5, None, "123", ())
    assert load_eval_recipe(recipe_file(tmp_path, recipe.to_yaml())) == recipe


def test_a_tiny_model_and_a_baseline_are_scored_on_the_same_drawn_rows(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_tiny_chat_model(tmp_path / "tiny")
    path = recipe_file(
        tmp_path,
        f"extractor: triplets\nextractor_options: {{prompt: compact}}\nmodel: {model}\nshots: 2\nguided: false\n"
        f"dataset_name: {dataset}\neval_rows: 6\nbaselines: [tfidf_linear]\noutput_dir: {tmp_path / 'out'}\n",
    )
    assert main([str(path)]) == 0
    out = tmp_path / "out"
    trained, baseline = read_result(out / "model"), read_result(out / "tfidf_linear")
    assert trained.meta["rows"] == baseline.meta["rows"] == 6
    assert [sample["id"] for sample in read_samples(out / "model")] == [
        sample["id"] for sample in read_samples(out / "tfidf_linear")
    ]
    assert len(trained.meta["shots"]) == 2 and len(trained.meta["template_sha256"]) == 64
    assert trained.meta["tokens"]["prompt"] > 0 and trained.meta["dataset_sha256"] == baseline.meta["dataset_sha256"]
    assert trained.metrics["parse_failure_rate"].value == 1.0  # random weights say nothing that can be read
    assert (out / "report.html").is_file() and (out / "report.png").is_file() and (out / "recipe.yaml").is_file()
    assert "report.html" in capsys.readouterr().out


def test_a_person_in_both_splits_is_refused_before_anything_is_scored(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leaky = tmp_path / "leaky"
    write_rows(leaky / "train.jsonl", [_row(person, n) for person in ("Ana", "Mia") for n in range(3)])
    write_rows(leaky / "test.jsonl", [_row("Mia", n) for n in range(3, 6)])
    path = recipe_file(
        tmp_path,
        f"extractor: triplets\nbaselines: [tfidf_linear]\ndataset_name: {leaky}\noutput_dir: {tmp_path / 'out'}\n",
    )
    assert main([str(path)]) == 2
    assert "1 groups (persons) stand in both" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_exported_folders_contract_is_used_and_another_one_is_refused(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_tiny_chat_model(tmp_path / "exported")
    (model / "extractor.json").write_text(json.dumps(EXTRACTOR.to_json()))
    common = f"model: {model}\nguided: false\neval_rows: 1\ndataset_name: {dataset}\noutput_dir: {tmp_path / 'out'}\n"
    assert main([str(recipe_file(tmp_path, common))]) == 0
    assert read_result(tmp_path / "out" / "model").meta["extractor"]["options"] == EXTRACTOR.options()
    assert main([str(recipe_file(tmp_path, common + "extractor_options: {prompt: standard}\n"))]) == 2
    assert "the model was trained with those" in capsys.readouterr().err


def test_shots_show_facts_and_one_empty_answer_from_the_train_split(dataset: Path) -> None:
    train = read_rows(dataset / "train.jsonl", EXTRACTOR)
    shots = draw_shots(train, 5, seed=0)
    assert len({shot.id for shot in shots}) == 5 and sum(not shot.gold for shot in shots) == 1
    assert shots == draw_shots(train, 5, seed=0) != draw_shots(train, 5, seed=1)
    assert draw_shots(train, 1, seed=0)[0].gold and draw_shots(train, 0, seed=0) == []
    with pytest.raises(InputError, match="`shots` is 99, but the train split has only 24 rows"):
        draw_shots(train, 99, seed=0)


class _Chat(BaseHTTPRequestHandler):
    """An OpenAI-compatible server whose model finds a cat in every dialogue."""

    def do_GET(self) -> None:
        self._reply({"object": "list", "data": [{"id": "cats", "object": "model", "created": 0, "owned_by": "tests"}]})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        speaker = request["messages"][-1]["content"].partition(":")[0]
        text = EXTRACTOR.render((Triplet(speaker, "have_pet", "cat"),))
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": len(request["messages"]), "completion_tokens": 7, "total_tokens": 9}
        self._reply(
            {"id": "1", "object": "chat.completion", "created": 0, "model": "cats", "choices": [choice], "usage": usage}
        )

    def _reply(self, data: dict[str, Any]) -> None:
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_a_model_behind_a_url_is_scored_like_one_in_process(dataset: Path, tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Chat)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        path = recipe_file(
            tmp_path,
            "extractor: triplets\nextractor_options: {prompt: compact}\n"
            f"model: http://127.0.0.1:{server.server_port}\nshots: 1\n"
            f"dataset_name: {dataset}\noutput_dir: {tmp_path / 'out'}\n",
        )
        assert main([str(path)]) == 0
    finally:
        server.shutdown()
        server.server_close()
    result = read_result(tmp_path / "out" / "model")
    assert result.metrics["schema_compliance"].value == 1.0 and result.meta["finish_reasons"] == {"stop": 12}
    assert result.meta["tokens"] == {"prompt": 4 * 12, "completion": 7 * 12}  # system, shot, its answer, the dialogue
    assert 0 < result.metrics["f1"].value < 1


def test_drawn_rows_are_the_same_for_the_same_seed_and_keep_their_order(dataset: Path) -> None:
    rows = read_rows(dataset / "test.jsonl", EXTRACTOR)
    drawn = draw_rows(rows, 5, seed=1)
    assert drawn == draw_rows(rows, 5, seed=1) != draw_rows(rows, 5, seed=2)
    assert [rows.index(row) for row in drawn] == sorted(rows.index(row) for row in drawn)
    assert draw_rows(rows, None, 0) == rows
    with pytest.raises(InputError, match="`eval_rows` is 99, but the split has 12 rows"):
        draw_rows(rows, 99, 0)


def _scored(folder: Path, right: set[int], count: int = 40, gold: str = "cat") -> Path:
    rows = [
        Row(f"r{i}", f"p{i // 2}", Dialogue((Turn("Mia", "I have a cat."),)), (Triplet("Mia", "have_pet", gold),))
        for i in range(count)
    ]
    answers = [Prediction((Triplet("Mia", "have_pet", gold if i in right else "dog"),)) for i in range(count)]
    return evaluate(answers, rows, EXTRACTOR, folder, dict.fromkeys(REQUIRED_META)).folder


def test_a_paired_difference_is_narrower_than_two_separate_intervals(tmp_path: Path) -> None:
    first, second = _scored(tmp_path / "a", set(range(20))), _scored(tmp_path / "b", set(range(24)))
    found = compare(first, second)["f1"]
    assert (found.first, found.second) == (0.5, 0.6)
    assert found.difference.value == pytest.approx(0.1)
    assert found.difference.low is not None and found.difference.high is not None
    assert found.difference.low <= 0.1 <= found.difference.high
    alone = read_result(second).metrics["f1"]
    assert alone.low is not None and alone.high is not None
    assert found.difference.high - found.difference.low < alone.high - alone.low


def test_a_result_compared_with_itself_differs_by_nothing(tmp_path: Path) -> None:
    folder = _scored(tmp_path / "a", {1, 2, 3})
    assert {(d.difference.value, d.difference.low, d.difference.high) for d in compare(folder, folder).values()} == {
        (0.0, 0.0, 0.0)
    }


def test_results_on_other_rows_or_another_gold_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = _scored(tmp_path / "a", set())
    with pytest.raises(InputError, match=r"20 rows of .*a are not in .*b \(the first is 'r20'\)"):
        compare(first, _scored(tmp_path / "b", set(), count=20))
    with pytest.raises(InputError, match="another gold answer"):
        compare(first, _scored(tmp_path / "c", set(), gold="bird"))
    assert main(["--compare", str(first), str(tmp_path / "nowhere")]) == 2
    assert "has no result.json" in capsys.readouterr().err
    assert main(["--compare", str(first), str(first)]) == 0
    assert "+0.000" in capsys.readouterr().out


def test_help_and_a_broken_recipe_answer_without_importing_torch(tmp_path: Path) -> None:
    path = recipe_file(tmp_path, "modell: x\n")
    code = (
        "import sys\nfrom eval.run import main\n"
        f"assert main([{str(path)!r}]) == 2\n"
        "slow = {'torch', 'transformers', 'sklearn', 'matplotlib', 'sentence_transformers', 'openai', 'datasets'}\n"
        "heavy = slow & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Did you mean `model`?" in done.stderr
