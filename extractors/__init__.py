"""The ground floor: every memory task is defined here once (see `extractors.contract`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extractors.continuity import ContinuityExtractor
from extractors.contract import Decoding, ExtractionError, Extractor, InputError, Message
from extractors.persona_tree.extractor import PersonaTreeExtractor
from extractors.triplets import TripletExtractor

EXTRACTORS: dict[str, type[Extractor[Any, Any]]] = {
    "triplets": TripletExtractor,
    "continuity": ContinuityExtractor,
    "persona_tree": PersonaTreeExtractor,
}


def load_extractor(name: str, options: Mapping[str, Any] | None = None) -> Extractor[Any, Any]:
    """The extractor `name` with a recipe's `extractor_options`. Raises InputError for an unknown name or option."""
    if name not in EXTRACTORS:
        raise InputError(f"`extractor` is {name!r}: this version knows {', '.join(EXTRACTORS)}.")
    try:
        return EXTRACTORS[name](**dict(options or {}))
    except TypeError as error:
        raise InputError(f"`extractor_options` do not fit {name}: {error}.") from None


def extractor_from_json(data: Mapping[str, Any]) -> Extractor[Any, Any]:
    """The extractor of an exported folder's `extractor.json`. Raises InputError where this version would ask or read
    differently from what the folder was trained with."""
    extractor = load_extractor(str(data.get("name")), data.get("options"))
    for key, ours in extractor.to_json().items():
        if data.get(key) != ours:
            raise InputError(
                f"the folder's contract differs from this version's in `{key}` (contract {data.get('name')} "
                f"{data.get('version')}, ours {extractor.version}): use the version of mnemosmith that exported it."
            )
    return extractor


__all__ = [
    "EXTRACTORS",
    "Decoding",
    "ExtractionError",
    "Extractor",
    "InputError",
    "Message",
    "extractor_from_json",
    "load_extractor",
]
