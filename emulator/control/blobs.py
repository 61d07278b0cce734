"""Bulk data over HTTP: jobs go down, records come up, both with a digest.

The only module that imports aiohttp. The controller serves; agents fetch and put. Every request
carries the run's token. A blob whose length or digest is not as announced is refused. A fetch that
is cut off goes on from where it was.
"""

import asyncio
import contextlib
import hashlib
import hmac
import ipaddress
import random
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import aiohttp
from aiohttp import web

from dataplane.errors import InputError, Problem, RunError
from emulator.control.columns import MAX_RECORDS_BYTES
from emulator.control.messages import BlobReference
from emulator.control.reach import IPAddress
from emulator.control.topics import NAME_PATTERN

__all__ = ["BlobError", "BlobServer", "at_address", "fetch", "put", "serve_blobs"]

_DIGEST_HEADER: Final = "X-Content-SHA256"
_CHUNK_BYTES: Final = 1 << 20
_CONNECT_TIMEOUT_S: Final = 2.0
_SILENCE_TIMEOUT_S: Final = 10.0
_RESUME_PAUSES_S: Final = (0.1, 0.2, 0.4, 0.8)
"""Before each attempt to go on, give or take half: many agents are cut off at once. Bytes that
arrive begin the row again."""
_DONE: Final = tuple(
    answer.status_code for answer in (web.HTTPOk, web.HTTPNoContent, web.HTTPPartialContent)
)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class BlobError(RunError):
    """A blob could not be moved, or is not what was announced."""


class Interrupted(BlobError):  # noqa: N818
    """The connection broke, or there was none: another attempt may succeed."""


class BlobServer:
    """What the controller serves and takes in; made by `serve_blobs`."""

    def __init__(self, on_records: Callable[[str, bytes], None]) -> None:
        self.base_url = ""
        """URL of the server, without a slash at the end."""
        self.token = secrets.token_urlsafe(24)
        """Secret that every request must carry."""
        self.refused_requests = 0
        """Requests without the token, for unknown blobs, or with a wrong digest."""
        self._blobs: dict[str, bytes] = {}
        self._on_records = on_records

    def offer(self, data: bytes) -> BlobReference:
        """Serve some bytes under their digest."""
        digest = hashlib.sha256(data).hexdigest()
        self._blobs[digest] = data
        return BlobReference(
            url=f"{self.base_url}/blobs/{digest}", sha256=digest, size_bytes=len(data)
        )

    def records_url(self, agent: str) -> str:
        """Return where an agent puts its records."""
        return f"{self.base_url}/records/{agent}"

    def application(self) -> web.Application:
        """Return the routes, for a runner."""
        application = web.Application(client_max_size=MAX_RECORDS_BYTES)
        application.router.add_get(r"/blobs/{digest:[0-9a-f]{64}}", self._serve_blob)
        application.router.add_put(rf"/records/{{agent:{NAME_PATTERN}}}", self._take_records)
        return application

    async def _serve_blob(self, request: web.Request) -> web.Response:
        blob = self._blobs.get(request.match_info["digest"])
        if not self._is_authorised(request) or blob is None:
            return self._refuse(web.HTTPNotFound.status_code)
        return _part(request, blob)

    async def _take_records(self, request: web.Request) -> web.Response:
        if not self._is_authorised(request):
            return self._refuse(web.HTTPForbidden.status_code)
        data = await request.read()
        if hashlib.sha256(data).hexdigest() != request.headers.get(_DIGEST_HEADER):
            return self._refuse(web.HTTPUnprocessableEntity.status_code)
        self._on_records(request.match_info["agent"], data)
        return web.Response(status=web.HTTPNoContent.status_code)

    def _is_authorised(self, request: web.Request) -> bool:
        given = request.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode())

    def _refuse(self, status: int) -> web.Response:
        self.refused_requests += 1
        return web.Response(status=status)


@contextlib.asynccontextmanager
async def serve_blobs(
    on_records: Callable[[str, bytes], None], *, address: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[BlobServer]:
    """Serve blobs on an address; raises `InputError` when the port is taken."""
    server = BlobServer(on_records)
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, address, port).start()
        except OSError as error:
            raise InputError(
                Problem(
                    f"{address}:{port}",
                    f"jobs cannot be served there: {error.strerror}",
                    "choose an address of this host and a free port, or port 0",
                )
            ) from error
        host, bound_port = runner.addresses[0][:2]
        server.base_url = f"http://{host}:{bound_port}"
        yield server
    finally:
        await runner.cleanup()


async def fetch(reference: BlobReference, *, token: str, allowed: Sequence[Network]) -> bytes:
    """Return a blob, checked against its reference; raises `BlobError`.

    Only literal addresses inside `allowed` are asked.
    """
    _check_host(reference.url, allowed)
    data = bytearray()
    pauses_s = iter(_RESUME_PAUSES_S)
    async with _session(token) as session:
        while True:
            before = len(data)
            try:
                with _translated("fetched"):
                    await _fetch_rest(session, reference, data)
                break
            except Interrupted:
                if len(data) > before:
                    pauses_s = iter(_RESUME_PAUSES_S)
                pause_s = next(pauses_s, None)
                if pause_s is None:
                    raise
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))  # noqa: S311
    digest = hashlib.sha256(data).hexdigest()
    if digest != reference.sha256:
        raise BlobError(f"the blob has the digest {digest}, announced was {reference.sha256}")
    return bytes(data)


async def _fetch_rest(
    session: aiohttp.ClientSession, reference: BlobReference, data: bytearray
) -> None:
    """Append what is missing; a server that knows no ranges begins again."""
    limit_bytes = min(reference.size_bytes, MAX_RECORDS_BYTES)
    headers = {"Range": f"bytes={len(data)}-"} if data else {}
    async with session.get(reference.url, headers=headers, allow_redirects=False) as response:
        _check_status(response)
        if response.status != web.HTTPPartialContent.status_code:
            data.clear()
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {len(data)}-"):
            raise BlobError("the server answers with another part of the blob")
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            data += chunk
            if len(data) > limit_bytes:
                raise BlobError(f"the blob is longer than {reference.size_bytes} bytes")


def _part(request: web.Request, blob: bytes) -> web.Response:
    """Return the blob, or what follows the byte that the request names (RFC 9110, 14.2)."""
    try:
        first = request.http_range.start or 0
    except ValueError:
        first = 0
    if not 0 < first < len(blob):
        return web.Response(body=blob, content_type="application/octet-stream")
    return web.Response(
        body=memoryview(blob)[first:].tobytes(),
        status=web.HTTPPartialContent.status_code,
        headers={"Content-Range": f"bytes {first}-{len(blob) - 1}/{len(blob)}"},
        content_type="application/octet-stream",
    )


async def put(url: str, data: bytes, *, token: str, allowed: Sequence[Network]) -> str:
    """Put records and return their digest; raises `BlobError`."""
    _check_host(url, allowed)
    digest = await asyncio.to_thread(lambda: hashlib.sha256(data).hexdigest())
    headers = {_DIGEST_HEADER: digest}
    with _translated("put"):
        async with (
            _session(token) as session,
            session.put(url, data=data, headers=headers, allow_redirects=False) as response,
        ):
            _check_status(response)
    return digest


def at_address(url: str, address: IPAddress) -> str:
    """Return a URL with another host; the port stays. Raises `BlobError` if it is not one."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise BlobError(f"{url}: the URL is not readable") from None
    host = f"[{address}]" if address.version == 6 else str(address)
    return urlunsplit(parts._replace(netloc=host if port is None else f"{host}:{port}"))


def _session(token: str) -> aiohttp.ClientSession:
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=_CONNECT_TIMEOUT_S, sock_read=_SILENCE_TIMEOUT_S
    )
    headers = {"Authorization": f"Bearer {token}"}
    return aiohttp.ClientSession(timeout=timeout, headers=headers, trust_env=False)


def _check_status(response: aiohttp.ClientResponse) -> None:
    """Raise unless the server did what it was asked; a redirection may lead anywhere."""
    response.raise_for_status()
    if response.status not in _DONE:
        raise BlobError(f"the server answers with the status {response.status}")


def _check_host(url: str, allowed: Sequence[Network]) -> None:
    try:
        host = ipaddress.ip_address(urlsplit(url).hostname or "")
    except ValueError:
        raise BlobError(f"{url}: the host is not a literal IP address") from None
    if not any(host in network for network in allowed):
        prefixes = ", ".join(str(network) for network in allowed)
        raise BlobError(f"{url}: the host is outside of the agent's allowed prefixes {prefixes}")


@contextlib.contextmanager
def _translated(verb: str) -> Iterator[None]:
    try:
        yield
    except aiohttp.ClientResponseError as error:
        raise BlobError(f"the blob could not be {verb}: {error}") from error
    except (aiohttp.ClientError, TimeoutError) as error:
        raise Interrupted(
            f"the blob could not be {verb}: {str(error) or type(error).__name__}"
        ) from error
