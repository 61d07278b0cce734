"""Bulk data over a real HTTP server on loopback."""

import asyncio
import contextlib
import hashlib
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web

from dataplane.errors import InputError
from emulator.control.blobs import BlobError, BlobServer, at_address, fetch, put, serve_blobs
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


@contextlib.asynccontextmanager
async def cutting_proxy(port: int, cut_bytes: list[int]) -> AsyncIterator[tuple[int, list[int]]]:
    """Pass connections on to a port; each ends after its number of bytes, or whole after the list.

    Yields the proxy's port, and how many bytes it has passed down on each connection.
    """
    passed: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        limit_bytes = cut_bytes[len(passed)] if len(passed) < len(cut_bytes) else 1 << 40
        index = len(passed)
        passed.append(0)
        from_server, to_server = await asyncio.open_connection("127.0.0.1", port)
        to_server.write(await reader.readuntil(b"\r\n\r\n"))
        while chunk := await from_server.read(10_000):
            chunk = chunk[: limit_bytes - passed[index]]
            writer.write(chunk)
            passed[index] += len(chunk)
            if passed[index] >= limit_bytes:
                break
        writer.close()
        to_server.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1], passed
    server.close()


def fetched_through(cut_bytes: list[int], passed: list[int]) -> None:
    """Fetch a blob over connections that end too early; notes what each has carried."""

    async def scenario(server: BlobServer) -> None:
        port = int(server.base_url.rsplit(":", 1)[1])
        async with cutting_proxy(port, cut_bytes) as (proxy_port, carried):
            reference = server.offer(DATA)
            url = reference.url.replace(f":{port}/", f":{proxy_port}/")
            try:
                data = await fetch(
                    reference.model_copy(update={"url": url}), token=server.token, allowed=LOOPBACK
                )
                assert data == DATA
            finally:
                passed.extend(carried)

    with_server(scenario)


def test_a_fetch_that_is_cut_off_goes_on_where_it_was() -> None:
    """Seven times; what has arrived does not come again."""
    passed: list[int] = []
    fetched_through([40_000] * 7, passed)
    assert passed[:7] == [40_000] * 7
    heads = 500 * len(passed)
    assert sum(passed) < len(DATA) + heads


def test_a_fetch_that_never_gets_on_is_given_up() -> None:
    """After a handful of attempts, about a second and a half."""
    passed: list[int] = []
    with pytest.raises(BlobError, match="could not be fetched"):
        fetched_through([10] * 100, passed)
    # The client library asks a second time by itself where a server ends before its answer.
    assert 5 <= len(passed) <= 10


@pytest.mark.parametrize(
    "given", ["bytes=5-", "bytes=x", "bytes=999999999-", "lines=1-", "bytes=-5"]
)
def test_a_range_is_served_or_the_whole(given: str) -> None:
    """A header that is nonsense is as good as none."""

    async def scenario(server: BlobServer) -> None:
        url = server.offer(DATA).url
        headers = {"Authorization": f"Bearer {server.token}", "Range": given}
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, headers=headers) as response,
        ):
            data = await response.read()
        assert (response.status, data) == ((206, DATA[5:]) if given == "bytes=5-" else (200, DATA))

    with_server(scenario)


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


@pytest.mark.parametrize(
    ("url", "address", "reached"),
    [
        ("http://127.0.0.1:80/blobs/ab", "10.0.2.2", "http://10.0.2.2:80/blobs/ab"),
        ("http://10.20.0.2/records/a", "2001:db8::1", "http://[2001:db8::1]/records/a"),
        ("http://token@127.0.0.1:80/x?y", "10.0.2.2", "http://10.0.2.2:80/x?y"),
    ],
)
def test_a_host_behind_a_translation_has_its_own_address_of_the_controller(
    url: str, address: str, reached: str
) -> None:
    """The port and what is asked for stay as the controller names them."""
    assert at_address(url, ipaddress.ip_address(address)) == reached


def test_a_url_without_a_readable_port_is_refused() -> None:
    """As every other malformed message: with a reason."""
    with pytest.raises(BlobError, match="not readable"):
        at_address("http://127.0.0.1:x/", ipaddress.ip_address("10.0.2.2"))
