"""Who may learn from what: `roles.yaml` gives each corpus its uses per extractor, and each conversation its role.

Loaders ask `assert_role` before they write rows; whoever cuts rows from conversations asks `role_of` or `split_by_role`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from data_synthesis.dialogues import Dialogue
from extractors.contract import InputError

USES = ("train", "dev", "test")
ROLES = (*USES, "rl", "never")
_FILE = "data_synthesis/roles.yaml"


@cache
def _table() -> dict[str, Any]:
    import yaml

    table: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("roles.yaml").read_text(encoding="utf-8"))
    for corpus, entry in table["conversations"].items():
        for extractor, names in entry.items():
            if extractor == "by":
                if names not in ("id", "group", "split", "any"):
                    raise InputError(f"{_FILE}: {corpus}.by is {names!r}: write id, group, split or any.")
            elif extractor not in (*table["extractors"], "default"):
                raise InputError(f"{_FILE}: {corpus}.{extractor} is no extractor of {', '.join(table['extractors'])}.")
            elif names != "never":
                _check_roles(f"{corpus}.{extractor}", names)
    for name, override in table["overrides"].items():
        _check_roles(f"overrides.{name}", override["roles"])
    return table


def _check_roles(where: str, names: Mapping[str, Any]) -> None:
    for name, role in names.items():
        shares = role if isinstance(role, dict) else {role: 100}
        if set(shares) - set(ROLES) or sum(shares.values()) != 100:
            raise InputError(
                f"{_FILE}: {where}.{name} is {role!r}: write {', '.join(ROLES)}, or shares of them that add up to 100."
            )


@cache
def roles() -> dict[str, dict[str, tuple[str, ...]]]:
    """Corpus to extractor to allowed uses of rows; () for "never". Raises InputError for a faulty `roles.yaml`."""
    table: dict[str, dict[str, tuple[str, ...]]] = {}
    for corpus, extractors in _table()["rows"].items():
        table[corpus] = {}
        for extractor, uses in extractors.items():
            listed = () if uses == "never" else tuple(uses)
            if uses != "never" and (isinstance(uses, str) or set(listed) - set(USES)):
                raise InputError(
                    f"{_FILE}: {corpus}.{extractor} is {uses!r}: write never, or a list of {', '.join(USES)}."
                )
            table[corpus][extractor] = listed
    return table


def assert_role(corpus: str, extractor: str, use: str) -> None:
    """Raise InputError unless rows of this corpus, without their conversations, may be used so (train, dev or test)."""
    table = roles()
    if corpus not in table:
        raise InputError(
            f"corpus {corpus!r} has no role: the corpora in data_synthesis/roles.yaml are {', '.join(table)}."
        )
    allowed = table[corpus].get(extractor, ())
    if use not in allowed:
        state = f"only for {', '.join(allowed)}" if allowed else "never"
        raise InputError(
            f"corpus {corpus!r} may be used {state} with extractor {extractor!r}, not for {use} "
            "(data_synthesis/roles.yaml)."
        )


def role_of(corpus: str, extractor: str, dialogue: Dialogue, override: str | None = None) -> str:
    """What a conversation is for: train, dev, test, rl (reinforcement learning only) or never.

    override: an exception of `roles.yaml` that is asked for by name (see `trained_on`). Raises InputError for a corpus,
    an extractor, an exception or a conversation that the table does not know.
    """
    table = _table()
    if extractor not in table["extractors"]:
        raise InputError(f"extractor {extractor!r} has no roles: {_FILE} knows {', '.join(table['extractors'])}.")
    if corpus not in table["conversations"]:
        raise InputError(
            f"corpus {corpus!r} has no role: the corpora in {_FILE} are {', '.join(table['conversations'])}."
        )
    entry = table["conversations"][corpus]
    names = entry.get(extractor, entry.get("default", {}))
    if override is not None:
        exception = _override(override)
        if (corpus, extractor) == (exception["corpus"], exception["extractor"]):
            names = exception["roles"]
    if names == "never":
        return "never"
    by = entry["by"]
    key = {"id": dialogue.id, "group": dialogue.group, "split": str(dialogue.labels.get("split")), "any": "any"}[by]
    if key not in names:
        raise InputError(
            f"{corpus} conversation {dialogue.id!r} has no role for {extractor}: its {by} {key!r} is not in {_FILE}, "
            f"which knows {', '.join(list(names)[:4])}{', …' if len(names) > 4 else ''}. Add it there."
        )
    role = names[key]
    return role if isinstance(role, str) else _drawn(role, f"{corpus}/{dialogue.group}")


def _drawn(shares: Mapping[str, int], name: str) -> str:
    """A role by the hash of a name, with the probabilities that `shares` gives in per cent."""
    place = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % 100
    for role, share in shares.items():
        if place < share:
            return role
        place -= share
    raise AssertionError("shares add up to 100")


def _override(name: str) -> dict[str, Any]:
    overrides = _table()["overrides"]
    if name not in overrides:
        raise InputError(f"no exception is called {name!r}: {_FILE} has {', '.join(overrides)}.")
    exception: dict[str, Any] = overrides[name]
    return exception


def trained_on(override: str | None) -> str | None:
    """The benchmark that training with this exception spoils: an export so trained must be marked with it."""
    return None if override is None else str(_override(override)["trained_on"])


def split_by_role(
    dialogues: Iterable[Dialogue], extractor: str, override: str | None = None
) -> dict[str, list[Dialogue]]:
    """The dialogues by their role (all of ROLES are keys), in their order. Raises InputError as `role_of` does, and when
    one group gets two roles."""
    split: dict[str, list[Dialogue]] = {role: [] for role in ROLES}
    home: dict[tuple[str, str], str] = {}
    for dialogue in dialogues:
        role = role_of(dialogue.corpus, extractor, dialogue, override)
        if (other := home.setdefault((dialogue.corpus, dialogue.group), role)) != role:
            raise InputError(
                f"{dialogue.corpus} conversation {dialogue.id!r} is for {role}, but another of its group "
                f"{dialogue.group!r} is for {other}: no group may stand in two splits."
            )
        split[role].append(dialogue)
    return split
