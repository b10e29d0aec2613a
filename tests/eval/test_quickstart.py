"""The quickstart's walk as a plan: what stands on what. The walk itself is run by `make quickstart`."""

from __future__ import annotations

from pathlib import Path

from eval.quickstart import ROOT, stages


def test_a_stage_reads_what_the_checkout_has_or_an_earlier_stage_wrote(tmp_path: Path) -> None:
    written: list[Path] = []
    for stage in stages(tmp_path):
        for path in stage.reads:
            made = any(path.is_relative_to(folder) for folder in written)
            assert made if path.is_relative_to(tmp_path) else path.is_file(), f"{stage.name} reads {path}"
        written.append(stage.writes)


def test_no_stage_leaves_the_folder_that_was_asked_for(tmp_path: Path) -> None:
    walk = stages(tmp_path)
    assert all(stage.writes.is_relative_to(tmp_path) for stage in walk)
    assert len({stage.writes for stage in walk}) == len({stage.name for stage in walk}) == len(walk)
    words = [word for stage in walk for word in stage.command]
    assert not [word for word in words if word.startswith("outputs/")]
    assert all((ROOT / room).is_dir() for stage in walk for room in stage.rooms)
