"""The extractor contract: what one memory task is, said once for teacher, trainer, metric and server.

An extractor turns an input (a dialogue, a tree and a chunk, two utterances) into a typed output (triplets, operations, a
label). Everything that touches the task goes through one object of this class, so a prompt, a grammar or a parser exists
in one place only, and an exported folder can carry it as `extractor.json` to services that never import this package.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Literal, TypedDict, TypeVar

Input = TypeVar("Input")
Output = TypeVar("Output")

ErrorKind = Literal[
    "empty",  # nothing, or only white space
    "no_json",  # text, but no JSON value (or whatever else the contract asks for) in it
    "truncated",  # the text ends inside the JSON or inside <think>
    "schema",  # JSON of another shape than the contract's
    "vocabulary",  # a relation outside a closed vocabulary
    "content_filter",  # the server withheld the answer
    "request",  # the server gave no answer at all
]


class Message(TypedDict):
    role: str
    content: str


class ExtractionError(Exception):
    """A model's answer that is not an extraction. `parse` returns it; it never stands for "nothing found".

    kind: one of `ErrorKind`; position: character offset in the model's text; excerpt: the text around it (at most 80
    characters); partial: what could be read before the fault (may be empty), for callers that want to use or show it.
    """

    def __init__(self, kind: ErrorKind, position: int, excerpt: str, detail: str = "", partial: Any = ()):
        super().__init__(f"{kind} at character {position}: {detail or 'cannot be read'} (near {excerpt!r})")
        self.kind: ErrorKind = kind
        self.position = position
        self.excerpt = excerpt
        self.detail = detail
        self.partial = partial

    def __reduce__(self) -> tuple[Any, ...]:  # an exception with several arguments cannot be pickled otherwise
        return type(self), (self.kind, self.position, self.excerpt, self.detail, self.partial)


class InputError(ValueError):
    """A row's input or gold that does not fit the extractor: names the field and what to write instead."""


@dataclass(frozen=True)
class Decoding:
    """How a server must sample: greedy, with a cap that treats a longer answer as a failure."""

    temperature: float = 0.0
    max_tokens: int = 512
    stop: tuple[str, ...] = ()
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=lambda: {"enable_thinking": False})

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        data["stop"] = list(self.stop)
        data["chat_template_kwargs"] = dict(self.chat_template_kwargs)
        return data


class Extractor(ABC, Generic[Input, Output]):
    """One memory task. Subclasses live in `extractors/<name>/`; see `extractors.triplets` for the model to follow."""

    name: str
    version: str
    decoding: Decoding

    @abstractmethod
    def messages(self, value: Input) -> list[Message]:
        """The chat messages that ask for the extraction. The only place where a prompt is written."""

    @abstractmethod
    def render(self, output: Output) -> str:
        """The canonical completion. `parse(render(x)) == x`, except for an order that says nothing; its white space is what
        guided decoding admits."""

    @abstractmethod
    def parse(self, text: str) -> Output | ExtractionError:
        """What a model's text says, or a typed error. Tolerant of what real models print around the answer."""

    @property
    @abstractmethod
    def json_schema(self) -> dict[str, Any]:
        """JSON schema of the completion, for guided decoding at a teacher, in vLLM and in process. Where there is a
        `grammar`, the completion is not JSON: the schema is then of a JSON form that `parse` reads as well, for
        teachers that take no grammar."""

    @property
    def grammar(self) -> str | None:
        """EBNF (llama.cpp's dialect) of what `render` prints, for guided decoding in vLLM and in process; None where
        the completion is JSON and `json_schema` binds it."""
        return None

    def grammar_for(self, value: Input) -> str | None:
        """The grammar that binds the answer to this one input: `grammar`, or a part of it."""
        return self.grammar

    def admits(self, text: str) -> bool | None:
        """Whether `text` is to the letter what `grammar` admits; None without a grammar."""
        return None

    @abstractmethod
    def read_input(self, data: Any) -> Input:
        """Input from its JSON form (a dataset row's `input`). Raises InputError."""

    @abstractmethod
    def read_output(self, data: Any) -> Output:
        """Output from its JSON form (a dataset row's `gold`). Raises InputError."""

    @abstractmethod
    def write_output(self, output: Output) -> Any:
        """The JSON form of an output, for result files and clients."""

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """The keyword arguments that build this extractor again (a recipe's `extractor_options`)."""

    @abstractmethod
    def prompt(self) -> dict[str, Any]:
        """The prompt as data: what a service needs to write the same messages without importing us."""

    def to_json(self) -> dict[str, Any]:
        """The contract as it stands in `extractor.json`; `serve.export` adds model, template and scores."""
        data = {
            "name": self.name,
            "version": self.version,
            "options": self.options(),
            "prompt": self.prompt(),
            "json_schema": self.json_schema,
            "decoding": self.decoding.to_json(),
        }
        return data if self.grammar is None else {**data, "grammar": self.grammar}
