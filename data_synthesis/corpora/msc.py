"""Multi-Session Chat (Xu et al., ACL 2022): pairs of people who talk again after hours or days, with the facts they told.

Licence: none stated for the corpus; the code of ParlAI, which distributes it, is MIT. Session 1 is a dialogue of PersonaChat
(ConvAI2): see `data_synthesis.corpora.shared` for what that shares with other corpora. Source: ParlAI's msc v0.1, of which
this reads `msc_personasummary/session_{1..4}/{train,valid,test}.txt` (text and annotation of each session) and, where they
are there, `msc_dialogue/session_{2..5}` for the time that passed. The valid and test parts hold 500 + 501 episodes, 49,834
utterances, of which 32,829 have a `persona_text`.

Layout: JSONL; a line is one session of one episode, `initial_data_id` joins them. Each utterance of the speaker whose turn it
is may have `persona_text`, the facts that an annotator wrote down from it.

Traps:
- In `msc_dialogue` the first utterance's `id` is often a number in place of the speaker, and some apostrophes differ. The
  text and speakers here come from `msc_personasummary`, where speakers alternate (bot_0 becomes Speaker 1).
- `persona_text` was cut into sentences and put together again in another order, at times at an abbreviation ("Seuss's Old Hat
  New Hat book. I like Dr."). What the annotator wrote is `problem_data.persona`: label `persona`. It is the better one, and
  eleven utterances have it alone.
- There are no dates, only gaps ("6 days"): `labels["gaps"]`, by the number of the session after the gap. The gap before
  session 4 stands in a file of session 4, and is missing where that is.

`Dialogue.labels`: `split` (train, valid, test: the corpus's own), `init_personas` (of session 1's crowd workers), `gaps`.
`Turn.labels`: `persona_text` and `persona`, where given. Ids of turns: `S2:3` is the third turn of session 2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from data_synthesis.corpora import corpus_folder
from data_synthesis.corpora.files import BadRow, attempt, find, finished, json_lines, list_of, text_of
from data_synthesis.dialogues import Dialogue, Loaded, Session, Turn
from extractors.contract import InputError

SPEAKERS = {"bot_0": "Speaker 1", "bot_1": "Speaker 2"}
_SPLITS = ("train", "valid", "test")


def load(source: Path | None = None) -> Loaded:
    """source: a folder above `msc_personasummary`. Raises InputError where no session can be read."""
    source = source or corpus_folder("msc")
    patterns = [f"msc_personasummary/session_*/{split}.txt" for split in _SPLITS]
    files = find(source, patterns, "name the folder of msc v0.1, with msc_personasummary and msc_dialogue.")
    loaded = Loaded("msc", files=list(files))
    episodes: dict[tuple[str, str], dict[int, Session]] = {}
    personas: dict[tuple[str, str], Any] = {}
    for name, path in files.items():
        number, split = int(path.parent.name.removeprefix("session_")), path.stem
        for place, data in json_lines(path, name, loaded):
            session = attempt(loaded, place, "a session of MSC", _session, data, number)
            if session is None:
                continue
            episode = (split, data["initial_data_id"])
            if number in episodes.setdefault(episode, {}):
                loaded.reject("a session that an earlier line has", place)
                continue
            episodes[episode][number] = session
            personas.setdefault(episode, data.get("init_personachat", {}).get("init_personas", []))
    gaps = _gaps(source, loaded)
    for (split, name), sessions in episodes.items():
        labels = {"split": split, "init_personas": personas[split, name], "gaps": gaps.get(name, {})}
        loaded.dialogues.append(Dialogue(name, "msc", name, tuple(sessions[n] for n in sorted(sessions)), labels))
    return finished(loaded, source)


def _session(data: dict[str, Any], number: int) -> Session:
    if not isinstance(data["initial_data_id"], str):
        raise BadRow("no initial_data_id")
    turns = []
    for place, said in enumerate(list_of(data["dialog"], "dialog"), start=1):
        labels = {"persona_text": said["persona_text"]} if "persona_text" in said else {}
        if persona := said.get("problem_data", {}).get("persona"):
            labels["persona"] = persona
        if said["id"] not in SPEAKERS:
            raise BadRow("a speaker other than bot_0 and bot_1")
        turns.append(Turn(f"S{number}:{place}", SPEAKERS[said["id"]], text_of(said["text"]), labels=labels))
    return Session(f"session_{number}", "", tuple(turns))


def _gaps(source: Path, loaded: Loaded) -> dict[str, dict[str, str]]:
    """Per episode the time that passed before a session, by the session's number."""
    try:
        files = find(source, [f"msc_dialogue/session_*/{split}.txt" for split in _SPLITS], "")
    except InputError:
        return {}
    gaps: dict[str, dict[str, str]] = {}
    for name, path in files.items():
        number = int(path.parent.name.removeprefix("session_"))
        loaded.files.append(name)
        for place, data in json_lines(path, name, loaded):
            if read := attempt(loaded, place, "a line of msc_dialogue", _gap, data):
                gaps.setdefault(read[0], {})[str(number)] = read[1]
    return gaps


def _gap(data: dict[str, Any]) -> tuple[str, str]:
    last = data["previous_dialogs"][-1]
    return data["metadata"]["initial_data_id"], f"{last['time_num']} {last['time_unit']}"
