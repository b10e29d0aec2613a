"""Triplets (G-Long, arXiv 2606.13115): a dialogue to a list of (subject, relation, object).

Deviations from the paper, with their reasons:
- An input may carry `context`, earlier turns that help to resolve "she" or "yes, two"; only `turns` are extracted from.
  The paper extracts from a bare utterance and names unresolved anaphora as its main failure.
- The relation vocabulary may be closed. Then the JSON schema holds it as an enum, so that guided decoding cannot leave it.
- The `compact` prompt does without the list of relations: a small model learns the vocabulary by training, and on a CPU
  each prompt token is paid for in every row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from extractors.contract import Decoding, ExtractionError, Extractor, InputError, Message
from extractors.jsontext import excerpt, find_json
from extractors.text import HOW_TO_CLEAN, fill, one_line, spoken
from extractors.triplets.relations import PERSONAEXT, normalise_relation

MAX_TRIPLETS = 64
FIELDS = ("subject", "relation", "object")


@dataclass(frozen=True)
class Turn:
    """One message of a dialogue. `id` names it for whoever stores the result as evidence; the model never sees it."""

    speaker: str
    text: str
    id: str = ""


@dataclass(frozen=True)
class Dialogue:
    """What triplets are extracted from: `turns`, and before them the `context` that is only read along."""

    turns: tuple[Turn, ...]
    context: tuple[Turn, ...] = ()


@dataclass(frozen=True, order=True)
class Triplet:
    """One fact. Fields are single-line text without outer white space; the relation is normalised by its extractor."""

    subject: str
    relation: str
    object: str

    def __post_init__(self) -> None:
        for name in FIELDS:
            value = getattr(self, name)
            if not value or value != one_line(value):
                raise InputError(f"`{name}` is {value!r}: write single-line text without outer white space.")


_SYSTEM = (
    "You are an expert in knowledge graph construction. Extract the facts that the dialogue states about people as "
    "(subject, relation, object) triplets. The subject is the speaker's label or the name of the person or thing spoken "
    "of. Take only what is stated as true now; leave out questions, wishes, negations and small talk. Answer with a JSON "
    'array of {"subject", "relation", "object"} objects and nothing else; answer [] when there is no fact.'
)
_PROMPTS: dict[str, dict[str, str]] = {
    "standard": {
        "system": _SYSTEM,
        "relations_open": "\nRelations in use (name another one where none fits): {relations}.",
        "relations_closed": "\nUse only these relations: {relations}.",
        "user": "{context}Extract triplets from the following dialogue:\n{turns}",
        "context": "Earlier in the conversation (for reference only):\n{turns}\n\n",
    },
    "compact": {
        "system": "Extract (subject, relation, object) triplets as JSON.",
        "relations_open": "",
        "relations_closed": "",
        "user": "{context}{turns}",
        "context": "{turns}\n---\n",
    },
}


_HOW = (
    f"1. In every speaker and text, {HOW_TO_CLEAN}. "
    "2. Fill `turn` for each turn and join them with `turn_separator`: that is {turns}. 3. {context} is the template "
    " `context` filled with the earlier turns in the same way, or nothing where there are none. 4. Fill {context} "
    "and {turns} of the user message in one pass: braces in a dialogue are text. The system message is sent as it stands."
)


class TripletExtractor(Extractor[Dialogue, tuple[Triplet, ...]]):
    """The `triplets` contract. relations: "open" (any name), "personaext", or a list of names; closed: refuse others;
    prompt: "standard" or "compact". Raises InputError for options that do not fit together."""

    name = "triplets"
    version = "1"
    decoding = Decoding(max_tokens=512)

    def __init__(self, relations: str | Sequence[str] = "open", closed: bool = False, prompt: str = "standard"):
        if isinstance(relations, str) and relations not in ("open", "personaext"):
            raise InputError(f"`relations` is {relations!r}: write open, personaext, or a list of relation names.")
        if not isinstance(closed, bool):
            raise InputError(f"`closed` is {closed!r}: write true or false.")
        if prompt not in _PROMPTS:
            raise InputError(f"`prompt` is {prompt!r}: write {' or '.join(_PROMPTS)}.")
        named = PERSONAEXT if relations == "personaext" else () if relations == "open" else tuple(relations)
        odd = [name for name in named if not isinstance(name, str) or name != normalise_relation(str(name), (name,))]
        if odd:
            raise InputError(f"`relations` holds {odd[0]!r}: write lower case words joined by underscores.")
        if len(set(named)) != len(named):
            raise InputError("`relations` names a relation twice.")
        if closed and not named:
            raise InputError("`closed` is true but `relations` is open: name the relations, or set `closed: false`.")
        self._relations_option = relations
        self.relations: tuple[str, ...] = tuple(named)
        self.closed = closed
        self._prompt_name = prompt

    def options(self) -> dict[str, Any]:
        option = self._relations_option
        relations = option if isinstance(option, str) else list(option)
        return {"relations": relations, "closed": self.closed, "prompt": self._prompt_name}

    def prompt(self) -> dict[str, Any]:
        """Templates with slots in braces, and in `how` what a service must do to fill them as `messages` does."""
        texts = _PROMPTS[self._prompt_name]
        suffix = ""
        if self.relations:
            suffix = texts["relations_closed" if self.closed else "relations_open"]
        return {
            "messages": [
                {
                    "role": "system",
                    "content": texts["system"] + suffix.replace("{relations}", ", ".join(self.relations)),
                },
                {"role": "user", "content": texts["user"]},
            ],
            "turn": "{speaker}: {text}",
            "turn_separator": "\n",
            "context": texts["context"],
            "how": _HOW,
        }

    def messages(self, value: Dialogue) -> list[Message]:
        prompt = self.prompt()

        def lines(turns: Sequence[Turn]) -> str:
            written = [fill(prompt["turn"], speaker=spoken(t.speaker), text=spoken(t.text)) for t in turns]
            return str(prompt["turn_separator"]).join(written)

        context = fill(prompt["context"], turns=lines(value.context)) if value.context else ""
        system, user = prompt["messages"]
        return [
            {"role": "system", "content": system["content"]},
            {"role": "user", "content": fill(user["content"], context=context, turns=lines(value.turns))},
        ]

    def render(self, output: tuple[Triplet, ...]) -> str:
        return json.dumps([_json(triplet) for triplet in output], ensure_ascii=False, separators=(",", ":"))

    def parse(self, text: str) -> tuple[Triplet, ...] | ExtractionError:
        found = find_json(text, _looks_like_triplets)
        if isinstance(found, ExtractionError):
            partial = [self._triplet(item) for item in found.partial or ()]
            found.partial = tuple(item for item in partial if isinstance(item, Triplet))
            return found
        items = _items(found.value)
        if items is None:
            return ExtractionError(
                "schema",
                found.start,
                excerpt(text, found.start),
                f"a JSON array of objects is due, not {found.value!r:.60}",
            )
        read = [self._triplet(item) for item in items]
        good = tuple(item for item in read if isinstance(item, Triplet))
        for item in read:
            if not isinstance(item, Triplet):
                kind, detail = item
                return ExtractionError(kind, found.start, excerpt(text, found.start), detail, partial=good)
        return good

    def _triplet(self, item: Any) -> Triplet | tuple[Any, str]:
        if isinstance(item, (list, tuple)) and len(item) == 3:
            item = dict(zip(FIELDS, item, strict=True))
        if not isinstance(item, Mapping):
            return "schema", f"{item!r:.60} is not an object with subject, relation and object"
        values = {}
        for name in FIELDS:
            value = item.get(name)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                value = json.dumps(value)
            if not isinstance(value, str) or not one_line(value):
                return "schema", f"`{name}` is {value!r:.60} in {json.dumps(item, ensure_ascii=False):.80}"
            values[name] = one_line(value)
        relation = normalise_relation(values["relation"], self.relations)
        if not relation:
            return "schema", f"`relation` is {values['relation']!r:.60}: it has no word in it"
        if self.closed and relation not in self.relations:
            return "vocabulary", f"`relation` is {relation!r:.60}, which the closed vocabulary does not hold"
        return Triplet(values["subject"], relation, values["object"])

    @property
    def json_schema(self) -> dict[str, Any]:
        text = {
            "type": "string"
        }  # xgrammar, also vLLM's, admits no escaped quote in a string with minLength or maxLength
        relation = {"type": "string", "enum": list(self.relations)} if self.closed else text
        return {
            "type": "array",
            "maxItems": MAX_TRIPLETS,
            "items": {
                "type": "object",
                "properties": {"subject": text, "relation": relation, "object": text},
                "required": list(FIELDS),
                "additionalProperties": False,
            },
        }

    def read_input(self, data: Any) -> Dialogue:
        if not isinstance(data, Mapping) or set(data) - {"turns", "context"}:
            raise InputError('`input` is due as {"turns": [{"speaker": …, "text": …}], "context": […]}.')
        earlier = [] if data.get("context") is None else data["context"]
        turns, context = _turns(data.get("turns"), "turns"), _turns(earlier, "context")
        if not turns:
            raise InputError("`input.turns` is empty: there is nothing to extract from.")
        return Dialogue(turns, context)

    def read_output(self, data: Any) -> tuple[Triplet, ...]:
        if not isinstance(data, Sequence) or isinstance(data, str):
            raise InputError(f"`gold` is {data!r:.60}: write a list of triplets, [] for none.")
        output = []
        for place, item in enumerate(data):
            triplet = self._triplet(item)
            if not isinstance(triplet, Triplet):
                raise InputError(f"`gold[{place}]`: {triplet[1]}.")
            output.append(triplet)
        return tuple(output)

    def write_output(self, output: tuple[Triplet, ...]) -> list[dict[str, str]]:
        return [_json(triplet) for triplet in output]


def _json(triplet: Triplet) -> dict[str, str]:
    return {"subject": triplet.subject, "relation": triplet.relation, "object": triplet.object}


def _items(value: Any) -> list[Any] | None:
    """The list of triplets in the shapes that models print: an array, one object, or an object around an array."""
    if isinstance(value, list):
        if len(value) == 3 and all(isinstance(item, str) for item in value):
            return [value]
        return value
    if isinstance(value, dict) and set(FIELDS) <= set(value):
        return [value]
    if isinstance(value, dict) and len(value) == 1 and isinstance(inner := next(iter(value.values())), list):
        return inner
    return None


def _looks_like_triplets(value: Any) -> bool:
    items = _items(value)
    return items is not None and all(
        isinstance(item, dict) and set(FIELDS) & set(item) or isinstance(item, list) and len(item) == 3
        for item in items
    )


def _turns(data: Any, name: str) -> tuple[Turn, ...]:
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise InputError(f"`input.{name}` is {data!r:.60}: write a list of turns.")
    turns = []
    for place, turn in enumerate(data):
        if not isinstance(turn, Mapping) or not all(isinstance(turn.get(key), str) for key in ("speaker", "text")):
            raise InputError(f'`input.{name}[{place}]` is {turn!r:.60}: write {{"speaker": …, "text": …}}.')
        if not one_line(turn["speaker"]) or not one_line(turn["text"]):
            raise InputError(f"`input.{name}[{place}]` has an empty speaker or text.")
        if ": " in one_line(turn["speaker"]):
            raise InputError(
                f"`input.{name}[{place}].speaker` is {turn['speaker']!r:.60}: a label with a colon in it could put words "
                "into another speaker's mouth; write it without."
            )
        turns.append(Turn(turn["speaker"], turn["text"], "" if turn.get("id") is None else str(turn["id"])))
    return tuple(turns)
