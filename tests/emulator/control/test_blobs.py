"""Bulk data over a real HTTP server on loopback."""

import asyncio
import hashlib
import ipaddress
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from dataplane.errors import InputError
from emulator.control.blobs import BlobError, BlobServer, fetch, put, serve_blobs
from emulator.control.messages import BlobReference

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8")]
DATA = b"job" * 100_000


def with_server(
    scenario: Callable[[BlobServer], Awaitable[None]],
) -> dict[str, bytes]:
    """Run a scenario against a server; returns the records that came in."""
    taken: dict[str, bytes] = {}

    async def drive() -> None:
        async with serve_blobs(taken.__setitem__) as server:
            await scenario(server)

    asyncio.run(drive())
    return taken


def test_a_blob_arrives_whole() -> None:
    """What is fetched is what was offered."""

    async def scenario(server: BlobServer) -> None:
        data = await fetch(server.offer(DATA), token=server.token, allowed=LOOPBACK)
        assert data == DATA

    with_server(scenario)


@pytest.mark.parametrize(
    ("change", "what"),
    [({"sha256": "0" * 64}, "digest"), ({"size_bytes": 10}, "longer")],
)
def test_a_blob_that_is_not_as_announced_is_refused(change: dict[str, object], what: str) -> None:
    """Digest and size are checked by the receiver."""

    async def scenario(server: BlobServer) -> None:
        reference = server.offer(DATA).model_copy(update=change)
        with pytest.raises(BlobError, match=what):
            await fetch(reference, token=server.token, allowed=LOOPBACK)

    with_server(scenario)


def test_nothing_is_served_without_the_token() -> None:
    """Other users of the machine see neither jobs nor records."""

    async def scenario(server: BlobServer) -> None:
        with pytest.raises(BlobError):
            await fetch(server.offer(DATA), token="guess", allowed=LOOPBACK)
        with pytest.raises(BlobError):
            await put(server.records_url("a"), DATA, token="guess", allowed=LOOPBACK)
        assert server.refused_requests == 2

    assert with_server(scenario) == {}


@pytest.mark.parametrize("url", ["http://192.0.2.1:1/blobs/x", "http://localhost:1/blobs/x"])
def test_only_literal_addresses_inside_the_prefixes_are_asked(url: str) -> None:
    """A message cannot make the agent talk to other hosts."""
    reference = BlobReference(url=url, sha256="0" * 64, size_bytes=1)
    with pytest.raises(BlobError, match=r"prefixes|literal"):
        asyncio.run(fetch(reference, token="", allowed=LOOPBACK))


def test_a_redirection_is_not_followed() -> None:
    """A host inside the prefixes cannot send the agent to one outside, nor give away the token."""
    asked: list[str] = []

    async def elsewhere(request: web.Request) -> web.Response:
        asked.append(request.path)
        if request.path == "/there":
            return web.Response(body=DATA)
        return web.Response(status=307, headers={"Location": "/there"})

    async def scenario() -> None:
        application = web.Application()
        application.router.add_route("*", "/{any}", elsewhere)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/here"
        digest = hashlib.sha256(DATA).hexdigest()
        reference = BlobReference(url=url, sha256=digest, size_bytes=len(DATA))
        with pytest.raises(BlobError, match="status 307"):
            await fetch(reference, token="", allowed=LOOPBACK)
        with pytest.raises(BlobError, match="status 307"):
            await put(url, DATA, token="", allowed=LOOPBACK)
        await runner.cleanup()

    asyncio.run(scenario())
    assert asked == ["/here", "/here"]


def test_records_are_taken_under_the_agents_name() -> None:
    """With the right digest."""

    async def scenario(server: BlobServer) -> None:
        await put(server.records_url("agent-1"), DATA, token=server.token, allowed=LOOPBACK)

    assert with_server(scenario) == {"agent-1": DATA}


def test_a_taken_port_is_an_input_error() -> None:
    """With address and port."""

    async def scenario(server: BlobServer) -> None:
        port = int(server.base_url.rsplit(":", 1)[1])
        with pytest.raises(InputError, match=f"127.0.0.1:{port}"):
            async with serve_blobs(lambda *_: None, port=port):
                pass

    with_server(scenario)
