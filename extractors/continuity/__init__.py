"""QUMem's continuity classifier: types, prompt, parser and schema (`extractor`), metrics (`score`)."""

from extractors.continuity.extractor import BOUNDARY, CONTINUES, ContinuityExtractor, UtterancePair

__all__ = ["BOUNDARY", "CONTINUES", "ContinuityExtractor", "UtterancePair"]
