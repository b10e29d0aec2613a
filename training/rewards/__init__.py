"""What an answer of the MemListener is worth: `process` (the default, deterministic) and `judge` (an LLM, as in the paper)."""
