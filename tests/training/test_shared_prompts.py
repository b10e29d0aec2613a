"""A prompt that is read once gives what a prompt read for each completion gives: logits, gradients, sampled tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, GenerationConfig

from tests.tiny import make_tiny_chat_model
from training.shared_prompts import can_share, completion_logits, sample

LENGTH = 6  # of the completions
PROMPTS = [[11, 12, 13, 14, 15, 16, 17], [21, 22, 23]]  # the second is padded on the left


@pytest.fixture(scope="module", params=["qwen3", "llama"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> torch.nn.Module:
    folder = make_tiny_chat_model(tmp_path_factory.mktemp("tiny") / "model", request.param)
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Three completions of each prompt, some shorter than others."""
    generator = torch.Generator().manual_seed(2)
    longest = max(map(len, PROMPTS))
    rows, masks = [], []
    for place, prompt in enumerate(PROMPTS):
        for n in range(3):
            written = LENGTH - n - place
            answer = torch.randint(30, 400, (written,), generator=generator).tolist()
            rows.append([0] * (longest - len(prompt)) + prompt + answer + [0] * (LENGTH - written))
            masks.append([0] * (longest - len(prompt)) + [1] * (len(prompt) + written) + [0] * (LENGTH - written))
    return torch.tensor(rows), torch.tensor(masks)


def test_logits_and_gradients_are_those_of_whole_rows(model: torch.nn.Module):
    ids, mask = batch()
    written = mask[:, -LENGTH:].bool()
    shared = completion_logits(model, ids, mask, LENGTH)[written]
    shared.logsumexp(-1).sin().sum().backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()

    whole = []
    for row, row_mask in zip(ids, mask, strict=True):  # alone, without padding
        tokens = row[row_mask.bool()]
        answer = int(row_mask[-LENGTH:].sum())
        whole.append(model(tokens[None]).logits[0, -answer - 1 : -1])
    alone = torch.cat(whole)
    alone.logsumexp(-1).sin().sum().backward()
    assert torch.allclose(shared, alone, atol=1e-4)
    for name, p in model.named_parameters():
        assert torch.allclose(gradients[name], p.grad, atol=1e-4 * float(p.grad.abs().max())), name
    model.zero_grad()


def test_completions_are_those_of_generate_and_end_where_they_end(model: torch.nn.Module):
    """Greedily, over more than one stretch; the end token is one that the first completion would write."""
    prompts = [PROMPTS[0], PROMPTS[1], PROMPTS[0]]
    config = GenerationConfig(do_sample=False, max_new_tokens=40, pad_token_id=0, eos_token_id=1, disable_compile=True)
    free = [model.generate(torch.tensor([p]), generation_config=config)[0, len(p) :].tolist() for p in prompts]
    end = free[0][20]
    config.eos_token_id = end
    due = [row[: row.index(end) + 1] if end in row else row for row in free]
    with torch.no_grad():
        assert sample(model, prompts, config, 0, [end]) == due
    assert len(due[0]) <= 21 and max(map(len, due)) <= 40


def test_a_model_with_other_than_full_attention_does_not_share(tmp_path: Path):
    hybrid = AutoModelForCausalLM.from_pretrained(make_tiny_chat_model(tmp_path / "hybrid", "qwen3_5"))
    assert not can_share(hybrid)
