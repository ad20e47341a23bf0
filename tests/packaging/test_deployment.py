"""The image and the composition that people start from, checked without Docker."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import pytest
import typer
import typer.main
from pydantic import BaseModel, BeforeValidator, ConfigDict
from ruamel.yaml import YAML
from tests.cli.running import SECONDS, Installation
from tests.providers.postgres import server_folder

from tidelog.cli.commands import app
from tidelog.doctor.examine import NAMES
from tidelog.settings import Settings
from tidelog.worker.settings import WorkerSettings

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "docker-compose.yml"
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
IGNORED = ROOT / "deploy" / "Dockerfile.dockerignore"
EXAMPLE = ROOT / "deploy" / "example"

BUILT_HERE = "tidelog:local"
NO_HEALTH = {
    "init": "makes the topics and ends; whoever needs it waits for its success",
    "tidelog": "runs one command at a time, by hand",
}
"""Services without a health check, and why."""

PINNED = re.compile(r"[a-z0-9-]+(/[a-z0-9-]+)?:\d[\w.-]*")
"""An image of the default registry (no host), by the tag of a version."""


def tool(name: str, *arguments: str) -> None:
    """A linter of the development tools, which must find nothing."""
    command = [str(Path(sys.executable).with_name(name)), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def seconds(text: object) -> float:
    matched = re.fullmatch(r"(\d+)s", str(text))
    assert matched is not None, f"{text!r} is not written in seconds"
    return float(matched[1])


Seconds = Annotated[float, BeforeValidator(seconds)]


class Health(BaseModel):
    """A health check. Each of its times is said, so that none is a surprise."""

    model_config = ConfigDict(extra="forbid")
    test: list[str]
    interval: Seconds
    timeout: Seconds
    retries: int
    start_period: Seconds


class Needs(BaseModel):
    """What a service waits for of another one."""

    condition: Literal["service_healthy", "service_completed_successfully"]


class Deploy(BaseModel):
    """How often a service runs."""

    replicas: int


class Service(BaseModel):
    """A service; what these tests do not look at is left out."""

    image: str
    command: list[str] | None = None
    environment: dict[str, str]
    healthcheck: Health | None = None
    restart: str
    init: bool = False
    stop_grace_period: Seconds = 10.0
    volumes: list[str] = []
    ports: list[str] = []
    depends_on: dict[str, Needs] = {}
    deploy: Deploy = Deploy(replicas=1)
    profiles: list[str] = []


class Composition(BaseModel):
    """The composition, its anchors resolved."""

    services: dict[str, Service]
    volumes: dict[str, None]


class Instruction(NamedTuple):
    """A line of the Dockerfile, continuations joined."""

    name: str
    arguments: str


@pytest.fixture(scope="module")
def composition() -> Composition:
    return Composition.model_validate(YAML(typ="safe", pure=True).load(COMPOSE))


@pytest.fixture(scope="module")
def ours(composition: Composition) -> dict[str, Service]:
    """The services that run the image of this project."""
    return {name: service for name, service in composition.services.items() if service.image == BUILT_HERE}


@pytest.fixture(scope="module")
def stages() -> list[list[Instruction]]:
    """The instructions of the Dockerfile, by stage."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    stages: list[list[Instruction]] = []
    for line in text.replace("\\\n", " ").splitlines():
        name, _, arguments = line.strip().partition(" ")
        if name == "FROM":
            stages.append([])
        if name:
            stages[-1].append(Instruction(name, arguments.strip()))
    return stages


def the(name: str, stage: list[Instruction]) -> str:
    """The arguments of the one instruction of that name."""
    (found,) = [instruction.arguments for instruction in stage if instruction.name == name]
    return found


def test_the_composition_fits_the_schema() -> None:
    tool("check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE))


def test_the_dockerfile_is_without_fault() -> None:
    tool("hadolint", str(DOCKERFILE))


def test_images_are_pinned_and_name_no_host(
    composition: Composition, stages: list[list[Instruction]]
) -> None:
    images = {service.image for service in composition.services.values()} - {BUILT_HERE}
    bases = {the("FROM", stage).partition(" ")[0] for stage in stages}

    assert [image for image in images | bases if PINNED.fullmatch(image) is None] == []


def test_tidelog_itself_is_process_1(stages: list[list[Instruction]]) -> None:
    """A shell in its place would keep the stop signal to itself, and jobs would be killed in the middle."""
    entry: list[str] = json.loads(the("ENTRYPOINT", stages[-1]))
    default: list[str] = json.loads(the("CMD", stages[-1]))

    assert entry == ["tidelog"]
    assert default == ["--help"]
    assert the("STOPSIGNAL", stages[-1]) == "SIGTERM"


def test_the_image_runs_as_an_ordinary_user(stages: list[list[Instruction]]) -> None:
    names = [instruction.name for instruction in stages[-1]]

    assert int(the("USER", stages[-1])) >= 10_000, "a number: that it is not root can be seen from outside"
    assert "RUN" not in names[names.index("USER") :]


def test_the_build_needs_nothing_but_what_it_is_given(
    stages: list[list[Instruction]], tmp_path: Path
) -> None:
    """The files that the ignore file lets through, copied as the build stage does, make the wheel."""
    rules = IGNORED.read_text(encoding="utf-8").split()
    allowed = {rule[1:] for rule in rules if rule.startswith("!")}
    hidden = [rule.removeprefix("**/") for rule in rules if not rule.startswith("!") and rule != "*"]
    for instruction in stages[0]:
        if instruction.name == "COPY":
            *sources, target = instruction.arguments.split()
            assert set(sources) <= allowed
            for source in sources:
                place(ROOT / source, tmp_path / target, hidden)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        packages = {name.partition("/")[0] for name in archive.namelist() if ".dist-info/" not in name}
    assert packages == {"tidelog", "tidelog_events", "tidelog_projections"}
    assert rules[0] == "*", "everything else stays outside"


def place(source: Path, target: Path, hidden: list[str]) -> None:
    """Copy as a Dockerfile does: the contents of a folder, or a file into a folder."""
    if source.is_dir():
        shutil.copytree(
            source,
            target,
            ignore=lambda _, names: {name for name in names if any(fnmatch(name, rule) for rule in hidden)},
        )
    else:
        shutil.copy(source, target)


def test_every_service_is_watched_or_says_why_not(composition: Composition) -> None:
    unwatched = {name for name, service in composition.services.items() if service.healthcheck is None}

    assert unwatched == NO_HEALTH.keys()


def test_what_is_to_stay_up_is_started_again(composition: Composition) -> None:
    restarts = {name: service.restart for name, service in composition.services.items()}

    assert {restarts.pop("init"), restarts.pop("tidelog")} == {"on-failure", "no"}
    assert set(restarts.values()) == {"unless-stopped"}


def test_the_data_outlives_the_containers(composition: Composition) -> None:
    named = {
        volume.partition(":")[0]: place
        for place in ("kafka", "postgres")
        for volume in composition.services[place].volumes
    }

    assert named == {name: name for name in composition.volumes}
    assert (
        composition.services["kafka"].environment["KAFKA_LOG_DIRS"]
        in composition.services["kafka"].volumes[0]
    )


def test_ports_are_open_to_this_machine_alone(composition: Composition) -> None:
    ports = [port for service in composition.services.values() for port in service.ports]

    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_all_roles_are_there(ours: dict[str, Service]) -> None:
    running = {(service.command or [""])[0]: service.deploy.replicas for service in ours.values()}

    assert (running["engine"], running["projector"], running["worker"], running["init"]) == (2, 1, 1, 1)


def test_roles_start_once_the_topics_are_made(ours: dict[str, Service]) -> None:
    waits = {
        name: {other: needs.condition for other, needs in service.depends_on.items()}
        for name, service in ours.items()
    }

    assert waits.pop("init") == {"kafka": "service_healthy", "postgres": "service_healthy"}
    assert waits.pop("tidelog") == {}
    assert all(needs == {"init": "service_completed_successfully"} for needs in waits.values())


def test_a_stop_leaves_time_to_finish(ours: dict[str, Service]) -> None:
    for name, service in ours.items():
        assert service.init, name
        assert service.stop_grace_period >= 2 * WorkerSettings().grace_seconds, name


def test_the_command_line_knows_every_command(ours: dict[str, Service]) -> None:
    for service in ours.values():
        parse(service.command or [])


def test_health_is_what_doctor_can_tell(ours: dict[str, Service]) -> None:
    for service in ours.values():
        if service.healthcheck is not None:
            form, program, command, option, checks = service.healthcheck.test
            assert (form, program, command, option) == ("CMD", "tidelog", "doctor", "--only")
            parse([command, option, checks])
            assert set(checks.split(",")) <= set(NAMES)


def test_a_role_that_hangs_is_not_called_healthy(ours: dict[str, Service]) -> None:
    """That the services answer says nothing of the role itself; what it leaves undone does."""
    undone = {"engine": "lag", "projector": "projection"}
    for name, check in undone.items():
        health = ours[name].healthcheck
        assert health is not None
        assert check in health.test[-1].split(",")


def parse(arguments: list[str]) -> None:
    """Read a command line as `tidelog` does, without running it."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    name, *rest = arguments
    command = group.commands[name]
    with command.make_context(name, rest):
        pass


def test_the_settings_are_known(
    ours: dict[str, Service],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    for service in ours.values():
        for name, value in service.environment.items():
            monkeypatch.setenv(name, value)
        settings = Settings()
        assert (settings.log, settings.postgres) == (
            service.environment["TIDELOG_LOG"],
            service.environment["TIDELOG_POSTGRES"],
        )
    assert caplog.records == []


@pytest.fixture
def example() -> Iterator[Installation]:
    """The example's folder, over embedded services elsewhere."""
    with server_folder() as folder:
        variables = {
            "TIDELOG_LOG": f"sqlite:{folder}/log.db",
            "TIDELOG_POSTGRES": f"embedded:{folder}/postgres",
        }
        yield Installation(EXAMPLE, variables)


def test_the_example_does_what_the_composition_says(composition: Composition, example: Installation) -> None:
    """The enqueue in the head of the file, to the application that its worker runs."""
    worker = composition.services["worker"]
    assert worker.volumes == ["./deploy/example:/app:ro"]
    matched = re.search(r"run --rm tidelog (enqueue .*)", COMPOSE.read_text(encoding="utf-8"))
    assert matched is not None
    with example.start("up", *(worker.command or [])[1:]) as process:
        process.expect("Tidelog is up")
        enqueued = example.run(*shlex.split(matched[1]), "--key", "first")
        assert enqueued.exit_code == 0, enqueued.output
        deadline = time.monotonic() + SECONDS
        while (found := job(example, "billing/first"))["state"] != "Succeeded":
            assert time.monotonic() < deadline, found
    assert found["output"] == {"sent": "42", "attempt": 1}


def job(installation: Installation, job_id: str) -> dict[str, object]:
    """A job, as Postgres has it."""
    found = installation.json("job", job_id)
    assert isinstance(found, dict)
    return found
