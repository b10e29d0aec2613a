"""What a chat template says about turns; for the trainer's labels and the server's stop tokens alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def end_of_turn(tokenizer: Any, chat_template_kwargs: Mapping[str, Any]) -> int | None:
    """Id of the token that a tokenizer's chat template puts behind an assistant's text (`<|im_end|>`, `<|eot_id|>` …),
    None where the template is missing or puts no single special token there."""
    if not tokenizer.chat_template:
        return None
    mark = "the answer ends here"
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "?"}, {"role": "assistant", "content": mark}],
        tokenize=False,
        **chat_template_kwargs,
    )
    after = tokenizer(text.rpartition(mark)[2].lstrip(), add_special_tokens=False)["input_ids"]
    if after and after[0] in tokenizer.added_tokens_decoder:
        return int(after[0])
    return None
