"""An agent on a Mosquitto: logins, and a broker that goes away and comes back."""

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest

from dataplane.errors import InputError
from emulator.control.messages import Phase, State
from emulator.control.transport import BrokerAddress
from tests.emulator.control.processes import mosquitto
from tests.emulator.control.puppet import Puppet, agent_on, puppet


async def join(hand: Puppet) -> None:
    """Bring the agent into the run."""
    hand.is_beating = True
    await hand.ask(Phase.JOIN)
    await hand.reach(State.JOINED)


def test_a_login_in_the_url_is_used(tmp_path: Path) -> None:
    """And a wrong one is refused."""
    passwords = tmp_path / "passwords"
    if shutil.which("mosquitto_passwd") is None:
        pytest.skip("mosquitto_passwd is not installed: apt-get install mosquitto")
    subprocess.run(
        ["mosquitto_passwd", "-b", "-c", passwords, "lab", "p@ss/word"], check=True, timeout=30
    )

    async def scenario(address: BrokerAddress) -> None:
        async with agent_on(address, tmp_path), puppet(address) as hand:
            await join(hand)
        stranger = BrokerAddress(address.host, address.port, False, "lab", "guess")
        with pytest.raises(InputError, match="refuses"):
            async with puppet(stranger):
                pass

    options = ["allow_anonymous false", f"password_file {passwords}"]
    with mosquitto(tmp_path, options) as (url, _):
        login = url.replace("mqtt://", "mqtt://lab:p%40ss%2Fword@")
        asyncio.run(scenario(BrokerAddress.parse(login)))


def test_a_broker_with_tls_is_used_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An authority that is trusted is enough, and one that is not is refused."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: apt-get install openssl")
    certificate, key = tmp_path / "broker.crt", tmp_path / "broker.key"
    words = "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=127.0.0.1"
    names = ("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate)
    subprocess.run(
        ["openssl", *words.split(), *names], check=True, timeout=60, stderr=subprocess.DEVNULL
    )

    async def trusting(address: BrokerAddress) -> None:
        async with agent_on(address, tmp_path), puppet(address) as hand:
            await join(hand)

    async def suspicious(address: BrokerAddress) -> None:
        with pytest.raises(InputError, match="certificate"):
            async with puppet(address):
                pass

    options = [f"certfile {certificate}", f"keyfile {key}", "allow_anonymous true"]
    with mosquitto(tmp_path, options) as (url, _):
        address = BrokerAddress.parse(url.replace("mqtt://", "mqtts://"))
        asyncio.run(suspicious(address))
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        asyncio.run(trusting(address))


def test_a_standing_agent_finds_a_restarted_broker(tmp_path: Path) -> None:
    """It serves runs as before, without being restarted."""

    async def scenario() -> None:
        with mosquitto(tmp_path) as (url, _):
            address = BrokerAddress.parse(url)
            agent = agent_on(address, tmp_path)
            lone = await agent.__aenter__()
            async with puppet(address) as hand:
                await join(hand)
                await hand.ask(Phase.RELEASE)
                await hand.reach(State.IDLE)
        assert not lone.ended()
        with mosquitto(tmp_path, port=address.port):
            async with puppet(address, "run-2") as hand:
                await join(hand)
            assert not lone.ended()
            await agent.__aexit__(None, None, None)

    asyncio.run(scenario())


def test_two_controllers_share_a_broker(tmp_path: Path) -> None:
    """Each hears its own run only."""

    async def scenario(address: BrokerAddress) -> None:
        async with (
            agent_on(address, tmp_path, run="run-2"),
            puppet(address, "run-1") as first,
            puppet(address, "run-2") as second,
        ):
            first.is_beating = True
            await first.ask(Phase.JOIN)
            await join(second)
            assert first.actual is None

    with mosquitto(tmp_path) as (url, _):
        asyncio.run(scenario(BrokerAddress.parse(url)))
