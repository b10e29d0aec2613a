"""Text on its way into a prompt: one line, no forged turns, filled into a template in one pass."""

from __future__ import annotations

import re

HOW_TO_CLEAN = (
    "cut outer white space, make every inner run of white space, line breaks included, one space, and write a space "
    "between < and | wherever they stand together (they open the special tokens of chat templates)"
)
_SPECIAL_TOKEN = re.compile(r"<(?=\|)")


def paired_surrogates(text: str) -> str:
    """Surrogates that came as two halves become their character; a lone one, which no file, server or tokenizer could
    take, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def one_line(text: str) -> str:
    """White space runs become one space: a turn must not be able to forge another speaker's line in the prompt.
    Lone surrogates become U+FFFD."""
    return " ".join(paired_surrogates(text).split())


def spoken(text: str) -> str:
    """What somebody said, as a prompt holds it: one line, and none of it a special token. A tokenizer reads `<|im_end|>`
    inside a message as the end of the message, so that a user could write the answer."""
    return _SPECIAL_TOKEN.sub("< ", one_line(text))


def fill(template: str, **values: str) -> str:
    """Put values into {slots} in one pass, so that braces inside a dialogue stay text."""
    return re.sub(r"\{(\w+)\}", lambda slot: values.get(slot.group(1), slot.group()), template)
