"""The MemListener contract (Inside Out, arXiv 2601.05171, stage b): a tree and a chunk of dialogue to operations.

Deviations from the paper, with their reasons:
- The prompt holds the paths as a compact index and only those leaves that have a value; the paper's code prints the whole
  tree, empty leaves included. What never changes stands first, so that a server's prefix cache keeps it.
- A prompt that would be too long is shortened in the recorded values, then in the dialogue, and both is counted; the
  paper's training cuts it on the left, where the rules stand.
- The dialogue may be between two people: `person` says whose memory the tree is.
- The compact prompt calls that person `user` in front of each turn: two names to compare are too much for a small model.
- `path_index: none` leaves the index out: a small model learns the paths of a small schema by training. The compact prompt
  names a recorded leaf by the last name of its path, where no other leaf has it: paths cost a small model most of its prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from extractors.contract import Decoding, ExtractionError, Extractor, InputError, Message
from extractors.persona_tree.grammar import admits, grammar, grammar_for
from extractors.persona_tree.operations import (
    Operation,
    clean_value,
    operation_to_json,
    operations_from_json,
    parse,
    render,
)
from extractors.persona_tree.schema import Schema, load_schema, schema_from_json
from extractors.text import HOW_TO_CLEAN, fill, one_line, spoken
from extractors.triplets.extractor import TripletExtractor, Turn

BUDGET = 10_240  # tokens of the prompt
CHARACTERS_PER_TOKEN = 4  # counted without a tokenizer, which extractors do not have
VALUE_LIMITS = (400, 200, 100, 50)  # characters of a recorded value, tried in this order where the prompt is too long
MAX_OPERATIONS = 64  # of a JSON answer
_EMPTY_TREE = "(nothing)"


@dataclass(frozen=True)
class Chunk:
    """What operations are extracted from. tree: values by leaf path, non-empty ones only; turns: the new part of the
    conversation; person: whose memory the tree is, as the speaker is called in the turns."""

    tree: Mapping[str, str]
    turns: tuple[Turn, ...]
    person: str = "user"


@dataclass(frozen=True)
class Fitted:
    """A chunk as the prompt shows it. values_shortened and turns_left_out count what the budget cost; turn_cut: the one
    turn that is left is cut, too."""

    chunk: Chunk
    values_shortened: int = 0
    turns_left_out: int = 0
    turn_cut: bool = False


_DIALOGUE = TripletExtractor()  # a chunk's turns are read as those of a dialogue

_PROMPTS: dict[str, dict[str, str]] = {
    "standard": {
        "system": (
            "You keep a person's long-term memory as a tree of short texts. You are given what the tree holds and a new "
            "part of a conversation. Answer with the operations that bring the tree up to date, one on a line, and "
            "nothing else:\n"
            'ADD(path, "value") where the leaf holds nothing yet\n'
            'UPDATE(path, "value") where it holds something that is added to, made more exact or corrected: the value '
            "replaces the old one, so repeat in it whatever still holds\n"
            "DELETE(path, None) where what it holds was taken back or has ended, and nothing takes its place\n"
            "NO_OP() alone, where the conversation changes nothing\n"
            "Record what is said about that person and will matter later; leave out small talk, questions, guesses and "
            "what others merely suggest. What the tree holds already is not written again. Of two statements the later "
            "one counts. Give each fact to the one leaf that fits it best, and each leaf at most one operation. Keep "
            'values short. In a value, write \\" for a double quote and \\n for a line break.'
        ),
        "index": "\nPaths are a group, a dot and one of its names. Groups and their names:\n{index}",
        "extension": "\nBelow these groups you may add names of your own: {groups}.",
        "user": "Recorded about {person}:\n{tree}\n\nNew conversation:\n{turns}",
        "leaf": "{path}: {value}",
        "own_speaker": "",
    },
    "compact": {
        "system": 'Edit the memory: ADD(path, "value"), UPDATE(path, "value"), DELETE(path, None) or NO_OP().',
        "index": "\n{index}",
        "extension": "\n+ {groups}",
        "user": "{person}\n{tree}\n---\n{turns}",
        "leaf": "{name}: {value}",
        "own_speaker": "user",
    },
}
_HOW = (
    f"1. In every speaker, text, value and in the person's label, {HOW_TO_CLEAN}. "
    "2. Sort the non-empty leaves by path, character by character; fill `leaf` "
    "for each ({name}: what `names` says of the path, the path itself where it says nothing) and join them with "
    "`leaf_separator`: that is {tree}, or `empty_tree` where there are none. 3. Fill `turn` "
    "for each turn ({speaker}: `own_speaker` in place of the person's label where `own_speaker` is not empty) and join "
    "them with `turn_separator`: that is {turns}. 4. Fill {person}, {tree} and {turns} of the user "
    "message in one pass: braces in a dialogue are text. The system message is sent as it stands. 5. If both messages "
    "together have more than `budget_characters` characters, cut every value that has more than n of them to its first "
    "n - 1 and an ellipsis (…), for the first n of `value_limits` with which the messages fit, or the last n. If they "
    "still do not fit, leave out turns from the front until they do or one turn is left; cut that one's text to the "
    "longest beginning that fits, at least one character, and put an ellipsis after it."
)


class PersonaTreeExtractor(Extractor[Chunk, tuple[Operation, ...]]):
    """The `persona_tree` contract.

    schema: "full", "quickstart", the path of a JSON file, or a schema file's data; extend: groups below which new leaves
    may be added (at most 5 names deep; [] leaves the schema's own policy); path_index: "full" or "none"; prompt:
    "standard" or "compact". Raises InputError for options that do not fit.
    """

    name = "persona_tree"
    version = "1"
    decoding = Decoding(max_tokens=1024)

    def __init__(
        self,
        schema: str | Mapping[str, Any] = "full",
        extend: Sequence[str] = (),
        path_index: str = "full",
        prompt: str = "standard",
    ):
        if not isinstance(schema, (str, Mapping)):
            raise InputError(f"`schema` is {schema!r:.60}: write full, quickstart, or the path of a JSON file.")
        if isinstance(extend, str) or not all(isinstance(group, str) for group in extend):
            raise InputError(f"`extend` is {extend!r:.60}: write a list of groups, [] for none.")
        if path_index not in ("full", "none"):
            raise InputError(f"`path_index` is {path_index!r}: write full or none.")
        if prompt not in _PROMPTS:
            raise InputError(f"`prompt` is {prompt!r}: write {' or '.join(_PROMPTS)}.")
        named = load_schema(schema) if isinstance(schema, str) else schema_from_json(schema)
        self.schema: Schema = named.extended(*extend) if extend else named
        self._named = named
        self._schema_option = schema if schema in ("full", "quickstart") else None
        self._extend = tuple(extend)
        self._path_index = path_index
        self._prompt_name = prompt
        self._grammar = grammar(self.schema)
        self._places = {path: place for place, path in enumerate(self.schema.leaves)}
        self._system = self._system_message()
        self._names = _short_names(self.schema) if "{name}" in _PROMPTS[prompt]["leaf"] else {}

    def options(self) -> dict[str, Any]:
        """A schema that came from a file stands in the options as a whole, so that an exported folder does not need it."""
        return {
            "schema": self._schema_option or self._named.to_json(),
            "extend": list(self._extend),
            "path_index": self._path_index,
            "prompt": self._prompt_name,
        }

    def _system_message(self) -> str:
        texts, extension = _PROMPTS[self._prompt_name], self.schema.extension
        system = texts["system"]
        if self._path_index == "full":
            system += texts["index"].replace("{index}", path_index(self.schema))
        if extension.groups:
            system += texts["extension"].replace("{groups}", ", ".join(extension.groups))
        return system

    def prompt(self) -> dict[str, Any]:
        """Templates with slots in braces, and in `how` what a service must do to fill them as `messages` does."""
        return {
            "messages": [
                {"role": "system", "content": self._system},
                {"role": "user", "content": _PROMPTS[self._prompt_name]["user"]},
            ],
            "leaf": _PROMPTS[self._prompt_name]["leaf"],
            "names": self._names,
            "own_speaker": _PROMPTS[self._prompt_name]["own_speaker"],
            "leaf_separator": "\n",
            "empty_tree": _EMPTY_TREE,
            "turn": "{speaker}: {text}",
            "turn_separator": "\n",
            "budget_characters": BUDGET * CHARACTERS_PER_TOKEN,
            "value_limits": list(VALUE_LIMITS),
            "how": _HOW,
        }

    def messages(self, value: Chunk) -> list[Message]:
        return [
            {"role": "system", "content": self._system},
            {"role": "user", "content": self._user(self.fit(value).chunk)},
        ]

    def _user(self, chunk: Chunk) -> str:
        return fill(
            _PROMPTS[self._prompt_name]["user"],
            person=chunk.person,
            tree="\n".join(f"{self._names.get(path, path)}: {value}" for path, value in chunk.tree.items())
            or _EMPTY_TREE,
            turns="\n".join(self._turn(turn, chunk.person) for turn in chunk.turns),
        )

    def _turn(self, turn: Turn, person: str) -> str:
        own = _PROMPTS[self._prompt_name]["own_speaker"] if turn.speaker == person else ""
        return f"{own or turn.speaker}: {turn.text}"

    def fit(self, value: Chunk) -> Fitted:
        """The chunk as the prompt shows it: in single lines, leaves by path, and within 10,240 tokens, counted as
        characters / 4. Recorded values are shortened first, then turns are left out from the front; the last turn stays.
        """
        tree = {path: spoken(text) for path, text in sorted(value.tree.items())}
        turns = tuple(replace(turn, speaker=spoken(turn.speaker), text=spoken(turn.text)) for turn in value.turns)
        chunk = Chunk(tree, turns, spoken(value.person))
        room = BUDGET * CHARACTERS_PER_TOKEN - len(self._system)
        over = len(self._user(chunk)) - room
        if over <= 0:
            return Fitted(chunk)

        for limit in VALUE_LIMITS:
            short = {path: text if len(text) <= limit else text[: limit - 1] + "…" for path, text in tree.items()}
            over = len(self._user(Chunk(short, turns, chunk.person))) - room
            if over <= 0:
                break
        shortened = sum(short[path] != tree[path] for path in tree)
        left_out = 0
        while over > 0 and left_out < len(turns) - 1:
            over -= len(self._turn(turns[left_out], chunk.person) + "\n")
            left_out += 1
        kept = turns[left_out:]
        if over > 0:
            text = kept[0].text
            kept = (replace(kept[0], text=text[: max(1, len(text) - over - 1)] + "…"),)
        return Fitted(Chunk(short, kept, chunk.person), shortened, left_out, over > 0)

    def turns_left_out(self, value: Chunk) -> int:
        """How many turns the budget keeps out of the prompt."""
        return self.fit(value).turns_left_out

    def render(self, output: tuple[Operation, ...]) -> str:
        return render(self.in_order(output))

    def in_order(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        """In the schema's order of leaves, new leaves last, and of these the ones that are added: as `grammar_for` admits."""
        last = len(self._places)

        def place(each: Operation) -> tuple[int, bool]:
            return self._places.get(each.path, last), each.path not in self._places and each.kind == "ADD"

        return tuple(sorted(operations, key=place))

    def parse(self, text: str) -> tuple[Operation, ...] | ExtractionError:
        """The operations of a model's text; another name of a leaf becomes its path, an unknown path stays as it is:
        the executor refuses it and says so."""
        operations = parse(text)
        if isinstance(operations, ExtractionError):
            operations.partial = tuple(map(self._canonical, operations.partial))
            return operations
        return tuple(map(self._canonical, operations))

    def _canonical(self, operation: Operation) -> Operation:
        known = self.schema.canonical(operation.path)
        return operation if known is None else replace(operation, path=known)

    @property
    def json_schema(self) -> dict[str, Any]:
        """Of the JSON form of the operations, as rows' gold has it; new leaves are then any path."""
        path: dict[str, Any] = {"type": "string", "enum": list(self.schema.leaves)}
        if self.schema.extension.groups:
            path = {"type": "string"}

        def item(kind: str, **properties: Any) -> dict[str, Any]:
            fields = {"op": {"type": "string", "enum": [kind]}, **properties}
            return {
                "type": "object",
                "properties": fields,
                "required": list(fields),
                "additionalProperties": False,
            }

        text = {"type": "string"}
        kinds = [item("ADD", path=path, value=text), item("UPDATE", path=path, value=text), item("DELETE", path=path)]
        return {"type": "array", "maxItems": MAX_OPERATIONS, "items": {"anyOf": [*kinds, item("NO_OP")]}}

    @property
    def grammar(self) -> str:
        return self._grammar

    def grammar_for(self, value: Chunk) -> str:
        return grammar_for(self.schema, value.tree.keys())

    def admits(self, text: str) -> bool:
        return admits(self.schema, text)

    def read_input(self, data: Any) -> Chunk:
        if not isinstance(data, Mapping) or set(data) - {"tree", "turns", "person"}:
            raise InputError('`input` is due as {"tree": {path: value}, "turns": [{"speaker": …, "text": …}]}.')
        recorded = {} if data.get("tree") is None else data["tree"]
        if not isinstance(recorded, Mapping):
            raise InputError(f'`input.tree` is {recorded!r:.60}: write {{"path": "value"}}, {{}} for an empty tree.')
        tree: dict[str, str] = {}
        for path, value in recorded.items():
            known = self._writable(path, "input.tree")
            if not isinstance(value, str) or not clean_value(value):
                raise InputError(f"`input.tree` has {value!r:.60} at {path}: write text, or leave the leaf out.")
            if known in tree:
                raise InputError(f"`input.tree` holds {known} twice, also as {path}.")
            tree[known] = clean_value(value)
        person = "user" if data.get("person") is None else data["person"]
        if not isinstance(person, str) or not one_line(person):
            raise InputError(f"`input.person` is {person!r:.60}: write whose memory it is, as in the turns.")
        return Chunk(tree, _DIALOGUE.read_input({"turns": data.get("turns")}).turns, person)

    def read_output(self, data: Any) -> tuple[Operation, ...]:
        try:
            operations = operations_from_json(data)
        except InputError as error:
            raise InputError(f"`gold`: {error}") from None
        return self.in_order(
            [
                operation
                if operation.kind == "NO_OP"
                else replace(operation, path=self._writable(operation.path, f"gold[{place}]"))
                for place, operation in enumerate(operations)
            ]
        )

    def write_output(self, output: tuple[Operation, ...]) -> list[dict[str, str]]:
        return [operation_to_json(operation) for operation in output]

    def write_input(self, value: Chunk) -> dict[str, Any]:
        """The JSON form of an input, for whoever makes rows."""
        turns = [
            {"speaker": turn.speaker, "text": turn.text} | ({"id": turn.id} if turn.id else {}) for turn in value.turns
        ]
        return {"tree": dict(value.tree), "turns": turns, "person": value.person}

    def _writable(self, path: Any, where: str) -> str:
        known = self.schema.canonical(path) if isinstance(path, str) else None
        if known is None and isinstance(path, str) and self.schema.may_extend(path):
            return path
        if known is None:
            raise InputError(f"`{where}` names {path!r:.80}, which is no leaf of the schema {self.schema.name}.")
        return known


def path_index(schema: Schema) -> str:
    """One line a group that has leaves: its path, and the last names of their paths."""
    lines: dict[str, list[str]] = {}
    for path in schema.leaves:
        group, _, name = path.rpartition(".")
        lines.setdefault(group, []).append(name)
    return "\n".join(f"{group}: {', '.join(names)}" if group else ", ".join(names) for group, names in lines.items())


def _short_names(schema: Schema) -> dict[str, str]:
    """Paths and their last names, where such a name leads to its path alone."""
    names = {path: path.rpartition(".")[2] for path in schema.leaves}
    return {path: name for path, name in names.items() if schema.canonical(name) == path}
