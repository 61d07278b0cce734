"""A Mosquitto as docs/deployment sets it up: TLS, a password for everybody, an access list."""

import asyncio
import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.control import topics
from emulator.control.merge import NOT_DONE
from emulator.control.transport import BrokerAddress, Transport, Will, connect
from emulator.controller import run
from emulator.job import JobRequest, build_job
from tests.emulator.control.processes import command, mosquitto

DEPLOYMENT = Path(__file__).parents[3] / "docs" / "deployment"
AGENTS = ("agent-0", "agent-1")
QUIET_S = 0.3


def password(name: str) -> str:
    """Return the password of a user."""
    return f"{name}: s3cret/@"


@contextlib.contextmanager
def secured(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run the broker; yields its URL without a user. Its certificate is trusted in this test."""
    for program in ("openssl", "mosquitto_passwd"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: apt-get install openssl mosquitto")
    certificate, key, users = (directory / name for name in ("b.crt", "b.key", "users"))
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=b"
    names = ("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate)
    subprocess.run(["openssl", *words.split(), *names], check=True, capture_output=True, timeout=60)
    users.touch(mode=0o600)
    for name in ("controller", *AGENTS):
        login = ["mosquitto_passwd", "-b", users, name, password(name)]
        subprocess.run(login, check=True, capture_output=True, timeout=30)
        (directory / f"{name}.password").write_text(password(name) + "\n")
    text = (DEPLOYMENT / "mosquitto.conf").read_text()
    for place, path in {
        "/etc/mosquitto/certs/broker.crt": certificate,
        "/etc/mosquitto/certs/broker.key": key,
        "/etc/mosquitto/rankwire.passwords": users,
        "/etc/mosquitto/rankwire.acl": DEPLOYMENT / "mosquitto.acl",
    }.items():
        assert place in text
        text = text.replace(place, str(path))
    options = [line for line in text.splitlines() if not line.startswith("listener ")]
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with mosquitto(directory, options) as (url, _):
        yield url.replace("mqtt://", "mqtts://")


def with_user(url: str, name: str) -> str:
    """Return the URL with a user."""
    return url.replace("://", f"://{name}@")


def test_a_job_runs_over_a_secured_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Everybody has a login of its own, from a file, and no password stands in a process list."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(secured(tmp_path, monkeypatch))
        agents = []
        for name in AGENTS:
            config = tmp_path / f"{name}.yaml"
            secret = tmp_path / f"{name}.password"
            lines = (
                f"name: {name}\nbroker: {with_user(url, name)}\nbroker_password_file: {secret}\n"
            )
            config.write_text(lines)
            words = ("agent", "--config", str(config))
            agents.append(stack.enter_context(command(*words, directory=tmp_path)))
        overrides = (
            "agents.spawn=false",
            "agents.count=2",
            "time_dilation=2000",
            f"control.broker={with_user(url, 'controller')}",
            f"control.password_file={tmp_path / 'controller.password'}",
        )
        records = run(
            build_job(JobRequest(lab="loopback-clos", size_scale=0.01, overrides=overrides))
        )
        assert (records["ops"]["end_ps"] != NOT_DONE).all()
        processes = [Path(f"/proc/{agent.pid}/cmdline").read_bytes() for agent in agents]
        assert not any(b"s3cret" in words for words in processes)
        for agent in agents:
            agent.terminate()
            assert "s3cret" not in "".join(agent.communicate(timeout=30))
    assert "s3cret" not in "".join(capfd.readouterr())


def test_an_agent_can_neither_lead_nor_speak_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The access list lets through what it says of itself, and lets it hear its own orders."""

    def client(url: str, name: str) -> contextlib.AbstractAsyncContextManager[Transport]:
        secret = tmp_path / f"{name}.password"
        address = BrokerAddress.parse(with_user(url, name), password_file=secret)
        return connect(address, identifier=name, will=Will(topics.presence(name), b"lost", True))

    async def heard(transport: Transport) -> list[str]:
        names: list[str] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(QUIET_S):
                async for message in transport.messages():
                    names.append(message.topic)  # noqa: PERF401  # kept when the time is over
        return names

    async def scenario(url: str) -> None:
        own, other = topics.actual("r", "agent-0"), topics.actual("r", "agent-1")
        orders = [topics.desired("r", name) for name in AGENTS]
        async with client(url, "controller") as controller, client(url, "agent-0") as agent:
            await controller.subscribe("rankwire/#")
            for topic in (other, *orders, topics.controller_heartbeat("r"), own):
                await agent.publish(topic, b"word")
            assert await heard(controller) == [own]
            await agent.subscribe("rankwire/#")
            for topic in orders:
                await controller.publish(topic, b"order")
            assert await heard(agent) == [orders[0]]

    with secured(tmp_path, monkeypatch) as url:
        asyncio.run(scenario(url))
