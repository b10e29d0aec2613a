"""What an OpenAI-compatible endpoint is told and says beside messages and answers; for the client and the teacher alike."""

from __future__ import annotations

import math
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

from extractors.contract import Extractor


def response_format(extractor: Extractor[Any, Any]) -> dict[str, Any]:
    """The `response_format` that binds a server's answer to the contract's schema."""
    schema = {"name": extractor.name, "schema": extractor.json_schema, "strict": True}
    return {"type": "json_schema", "json_schema": schema}


def binding(extractor: Extractor[Any, Any], grammar: str | None) -> dict[str, Any]:
    """The field of a request that binds a served answer: `structured_outputs` with the grammar, which is vLLM's, or
    `response_format` where the extractor has none. grammar: the extractor's, or its `grammar_for` an input."""
    if grammar is not None:
        return {"structured_outputs": {"grammar": grammar}}
    return {"response_format": response_format(extractor)}


def retry_after(header: str | None, longest: float) -> float | None:
    """Seconds that a Retry-After header asks for (a number, or a date), from 0 to `longest`; None where it asks for
    none that can be read."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time()
        except ValueError:
            return None
    return None if math.isnan(seconds) else min(longest, max(0.0, seconds))
