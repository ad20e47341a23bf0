"""What users install: three packages with their types and their SQL, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {
    "tidelog_events": ROOT / "events" / "tidelog_events",
    "tidelog_projections": ROOT / "projections" / "tidelog_projections",
    "tidelog": ROOT / "services" / "tidelog",
}
SHIPPED = {".py", ".sql", ".typed"}


def run(*command: str, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(target: str, source: Path, into: Path) -> Path:
    """Build with what is installed, without a network."""
    run(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into), folder=source)
    (built,) = into.iterdir()
    return built


def sources() -> set[str]:
    """The files of the packages as a user imports them."""
    return {
        str(PurePosixPath(name, file.relative_to(folder)))
        for name, folder in SOURCES.items()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the source distribution unpacks to."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))) as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root


def test_the_wheel_holds_the_three_packages_and_nothing_else(wheel: Path) -> None:
    held = contents(wheel)

    assert held == sources()
    assert {PurePosixPath(name).parts[0] for name in held} == set(SOURCES)
    assert {PurePosixPath(name).suffix or PurePosixPath(name).name for name in held} <= SHIPPED
    assert {f"{name}/py.typed" for name in SOURCES} <= held
    assert any(name.endswith(".sql") for name in held)


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (info,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        metadata = message_from_string(archive.read(f"{info}/METADATA").decode())
        scripts = archive.read(f"{info}/entry_points.txt").decode()
        licenses = [name for name in archive.namelist() if name.startswith(f"{info}/licenses/")]

    assert (metadata["Name"], metadata["Requires-Python"]) == ("tidelog", ">=3.11")
    assert metadata["License-Expression"] == "Apache-2.0"
    assert [PurePosixPath(name).name for name in licenses] == ["LICENSE"]
    assert "tidelog = tidelog.cli:main" in scripts


def test_the_source_distribution_holds_what_builds_the_wheel_and_nothing_else(unpacked: Path) -> None:
    assert {entry.name for entry in unpacked.iterdir()} == {
        ".gitignore",
        "CHANGELOG.md",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "events",
        "projections",
        "pyproject.toml",
        "services",
    }


def test_the_source_distribution_builds_the_same_wheel(unpacked: Path, tmp_path: Path) -> None:
    assert contents(build("wheel", unpacked, tmp_path)) == sources()


def test_imports_run_one_way() -> None:
    linter = Path(sys.executable).with_name("lint-imports")

    assert "0 broken" in run(str(linter), folder=ROOT)
