"""G-Long's triplet extractor: types, prompt, parser and schema (`extractor`), relation names, metrics (`score`)."""

from extractors.triplets.extractor import Dialogue, Triplet, TripletExtractor, Turn
from extractors.triplets.relations import PERSONAEXT, normalise_relation

__all__ = ["PERSONAEXT", "Dialogue", "Triplet", "TripletExtractor", "Turn", "normalise_relation"]
