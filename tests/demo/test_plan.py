"""How files and folders become jobs that wait for each other."""

from __future__ import annotations

import os
from pathlib import Path

import orjson

from tidelog import DependencyMode
from tidelog.demo.plan import FileJob, FolderJob, Plan, make_plan
from tidelog.demo.tree import survey
from tidelog_events.bounds import MAX_PARENTS
from tidelog_events.identity import partition_of


def plan_of(folder: Path) -> Plan:
    """The plan for a folder."""
    return make_plan(folder, survey(folder))


def leaves(part: FileJob | FolderJob) -> list[str]:
    """The files under a part, in order."""
    if isinstance(part, FileJob):
        return [part.name]
    return [name for inner in part.parts for name in leaves(inner)]


def test_many_files_are_gathered_by_jobs_in_between(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number:03}").touch()
    plan = plan_of(tmp_path)
    assert all(len(folder.job.parents) <= MAX_PARENTS for folder in plan.folders)
    assert leaves(plan.folders[-1]) == [f"{number:03}" for number in range(300)]
    assert len(plan.folders) == 19 + 2 + 1  # of 300 files, of 19 parts, of 2 parts


def test_both_modes_are_in_use(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").touch()
    (tmp_path / "empty").mkdir()
    modes = {
        folder.name: orjson.loads(folder.job.encoded(None)).get("mode", DependencyMode.ON_SUCCESS)
        for folder in plan_of(tmp_path).folders
    }
    assert modes == {
        "inner": DependencyMode.ON_ANY_TERMINAL,
        "empty": DependencyMode.ON_SUCCESS,
        ".": DependencyMode.ON_SUCCESS,
    }


def test_every_parent_comes_before_its_children_and_lives_in_the_same_partition(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / str(number % 5)).mkdir(exist_ok=True)
        (tmp_path / str(number % 5) / str(number)).touch()
    seen: set[str] = set()
    for job in plan_of(tmp_path).jobs:
        assert seen.issuperset(job.parents)
        assert job.job_id not in seen
        seen.add(job.job_id)
        assert partition_of(job.job_id.partition("/")[0], 1) == 0


def test_names_that_are_no_text_can_be_planned(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"no \xff text")).touch()
    (tmp_path / "line\nbreak").touch()
    (tmp_path / ("long" * 60)).touch()
    assert [planned.name for planned in plan_of(tmp_path).files] == [
        "line\nbreak",
        "long" * 60,
        "no%20%FF%20text",
    ]
