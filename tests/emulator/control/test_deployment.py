"""The files in docs/deployment are what they say: accepted by those who read them."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from emulator.cli import build_parser
from emulator.control.agent_config import AgentConfig, read_agent_config

DEPLOYMENT = Path(__file__).parents[3] / "docs" / "deployment"
UNIT = DEPLOYMENT / "rankwire-agent.service"


def accepted(words: list[str]) -> Any:
    """Return what the command line makes of some words."""
    return build_parser().parse_args(words)


def kubernetes() -> dict[str, Any]:
    """Return the documents for Kubernetes by their kind."""
    documents = yaml.safe_load_all((DEPLOYMENT / "daemonset.yaml").read_text())
    return {document["kind"]: document for document in documents}


def assert_safe(config: AgentConfig) -> None:
    """Without a password, and nothing but the lab is reached."""
    assert config.broker_password_file is not None
    assert ":" not in config.broker.get_secret_value().split("@")[0].removeprefix("mqtts://")
    assert config.allows("198.18.0.1")
    assert not config.allows("8.8.8.8")
    assert config.allows_interface(None, "ens1f0np0")
    assert not config.allows_interface(None, "eth0")


def test_the_agents_file_is_accepted() -> None:
    """As it stands."""
    assert_safe(read_agent_config(DEPLOYMENT / "agent.yaml"))


def test_the_agents_file_for_kubernetes_is_accepted(tmp_path: Path) -> None:
    """The same, with the secret where the DaemonSet mounts it."""
    documents = kubernetes()
    (tmp_path / "agent.yaml").write_text(documents["ConfigMap"]["data"]["agent.yaml"])
    config = read_agent_config(tmp_path / "agent.yaml")
    assert_safe(config)
    pod = documents["DaemonSet"]["spec"]["template"]["spec"]
    mounts = {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    assert str(config.broker_password_file.parent) in mounts  # type: ignore[union-attr]
    assert str(accepted(pod["containers"][0]["args"]).config.parent) in mounts


def test_the_unit_starts_a_command_that_exists() -> None:
    """And gives it the credential that the agent's file names."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    assert program.endswith("/rankwire")
    assert accepted(words).config == Path("/etc/rankwire/agent.yaml")
    credential = unit["Service"]["LoadCredential"].split(":")[0]
    config = read_agent_config(DEPLOYMENT / "agent.yaml")
    assert config.broker_password_file == Path(f"/run/credentials/{UNIT.name}/{credential}")


def test_the_unit_is_accepted_by_systemd(tmp_path: Path) -> None:
    """Every key is known; the program is replaced by one that is installed here."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: apt-get install systemd")
    text = re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", UNIT.read_text(), flags=re.M)
    (tmp_path / UNIT.name).write_text(text)
    result = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / UNIT.name],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    complaints = [line for line in result.stderr.splitlines() if UNIT.name in line]
    assert complaints == []


def test_the_unit_is_confined() -> None:
    """By systemd's own measure, from 0 (best) to 100; it calls up to 25 safe, up to 50 OK."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: apt-get install systemd")
    words = ["systemd-analyze", "security", "--offline=true", "--threshold=21", UNIT]
    result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("version", ["1.25", "1.31", "1.34"])
def test_kubernetes_knows_every_field(version: str) -> None:
    """By the schemas of its interface, in which an unknown field is an error."""
    validator = pytest.importorskip("kubernetes_validate")
    documents = kubernetes()
    for document in documents.values():
        validator.validate(document, version, strict=True)
    documents["DaemonSet"]["spec"]["template"]["spec"]["hostNetwrok"] = True
    with pytest.raises(validator.ValidationError):
        validator.validate(documents["DaemonSet"], version, strict=True)


def test_the_image_starts_a_command_that_exists() -> None:
    """Entry point and default words."""
    lines = (DEPLOYMENT / "Containerfile").read_text().splitlines()
    (words,) = (json.loads(line[4:]) for line in lines if line.startswith("CMD "))
    assert accepted(words).config == Path("/etc/rankwire/agent.yaml")


def test_the_image_takes_its_program_from_a_stage_and_runs_as_nobody() -> None:
    """What is built in the first stage is what the last one starts, without its tools or root."""
    text = (DEPLOYMENT / "Containerfile").read_text()
    build, last = re.split(r"^FROM ", text, flags=re.M)[1:]
    (stage,) = re.findall(r"^\S+ AS (\w+)$", build, re.M)
    ((source, place, target),) = re.findall(r"^COPY --from=(\w+) (\S+) (\S+)$", last, re.M)
    assert (source, place) == (stage, target)
    assert f"{place}/bin/pip install" in build
    (program,) = json.loads(re.findall(r"^ENTRYPOINT (.*)$", last, re.M)[0])
    assert program == f"{target}/bin/rankwire"
    (user,) = re.findall(r"^USER (\d+):\d+$", last, re.M)
    assert int(user) > 0
    assert "apt-get" not in last


def test_the_slurm_job_starts_commands_that_exist() -> None:
    """Agents and controller; the shell reads it."""
    path = DEPLOYMENT / "rankwire.sbatch"
    subprocess.run(["bash", "-n", path], check=True, timeout=30)
    commands = re.findall(r"rankwire ((?:agent|run) .*?)(?: &)?$", path.read_text(), re.M)
    assert [words.split()[0] for words in commands] == ["agent", "run"]
    for words in commands:
        accepted([word.replace("$@", "lab.yaml") for word in shlex.split(words)])


def test_every_file_is_named_on_the_page() -> None:
    """And no other."""
    page = (DEPLOYMENT.parent / "deployment.md").read_text()
    linked = set(re.findall(r"\]\(deployment/([^)]+)\)", page))
    assert linked == {path.name for path in DEPLOYMENT.iterdir()}
