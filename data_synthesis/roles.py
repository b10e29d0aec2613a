"""Who may learn from what: `roles.yaml` gives each corpus its uses per extractor; loaders ask here first."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from extractors.contract import InputError

USES = ("train", "dev", "test")


@cache
def roles() -> dict[str, dict[str, tuple[str, ...]]]:
    """Corpus to extractor to allowed uses; () for "never". Raises InputError for a faulty `roles.yaml`."""
    import yaml

    path = Path(__file__).with_name("roles.yaml")
    table: dict[str, dict[str, tuple[str, ...]]] = {}
    for corpus, extractors in yaml.safe_load(path.read_text(encoding="utf-8"))["corpora"].items():
        table[corpus] = {}
        for extractor, uses in extractors.items():
            listed = () if uses == "never" else tuple(uses)
            if uses != "never" and (isinstance(uses, str) or set(listed) - set(USES)):
                raise InputError(
                    f"{path.name}: {corpus}.{extractor} is {uses!r}: write never, or a list of {', '.join(USES)}."
                )
            table[corpus][extractor] = listed
    return table


def assert_role(corpus: str, extractor: str, use: str) -> None:
    """Raise InputError unless `roles.yaml` lets this corpus be used so (train, dev or test) for this extractor."""
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
