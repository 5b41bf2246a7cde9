"""The outermost layer of the served page: it refuses requests that no visitor of the page makes.

* The Host must be one under which the page is served, which defeats DNS rebinding.
* The Origin of a request, if it has one, must be the page itself, so other websites get no answers.
* Uploads are refused and no files are served, because the page needs neither.
* A body is a JSON object of at most `MAX_BODY` bytes; others are answered with a status of 4xx.
"""

import ipaddress
import json
import os
import re
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

MAX_BODY = 1_000_000
"""Maximum number of bytes of a request's body."""
_DEEPEST = 32
"""Maximum number of nested lists and objects in a body."""
HOSTS_VARIABLE = "ABACIST_HOSTS"
"""Environment variable with more host names of the page, separated by commas."""
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_REFUSED_PATHS = re.compile(
    r"^(/gradio_api)?/(upload|file|proxy|stream|custom_component|component_server|process_recording"
    r"|deep_link|run-history|runs|vibe|undo-vibe|dev|monitoring|profiling|login|token)\b"
)
"""Paths of Gradio that the page does not need: uploads, files, streams and developers' tools."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class AllowedHosts:
    """Host names under which the page is served."""

    names: frozenset[str]
    any_address: bool = False
    """Whether every IP address is allowed as well, because the page listens on all of them."""

    def __contains__(self, host: object) -> bool:
        if not isinstance(host, str):
            return False
        name = host_name(host)
        return name in self.names or (self.any_address and _is_address(name))


def allowed_hosts(host: str | None) -> AllowedHosts:
    """Return the hosts for `abacist play --host`; None stands for the setting of Gradio.

    Names in the variable ABACIST_HOSTS are allowed as well, and so is the name of a Space.
    """
    served = host or os.environ.get("GRADIO_SERVER_NAME") or "127.0.0.1"
    names = {served.lower(), *_LOOPBACK}
    for variable in (HOSTS_VARIABLE, "SPACE_HOST"):
        more = os.environ.get(variable, "").split(",")
        names |= {name.strip().lower() for name in more if name.strip()}
    listens_everywhere = served in ("0.0.0.0", "::")
    if listens_everywhere:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return AllowedHosts(frozenset(names), listens_everywhere)


def host_name(host: str) -> str:
    """Return the name in a Host header: without the port, and without the brackets of IPv6."""
    bracketed = re.fullmatch(r"\[([^\]]*)\](:\d+)?", host)
    name = bracketed.group(1) if bracketed else host.rpartition(":")[0] or host
    return name.lower().rstrip(".")


class RequestGuard:
    """An ASGI application around another one, which sees only the requests that pass."""

    def __init__(self, app: App, hosts: AllowedHosts) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        refusal = self._refusal(scope["method"], scope["path"], headers)
        if refusal is None and scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            body = await _read(receive, headers)
            refusal = body if isinstance(body, _Refusal) else None
            if isinstance(body, bytes):
                receive = _replay(body, receive)
        if refusal is not None:
            await refusal.send(send)
            return
        if scope["method"] == "POST":
            await self._post(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _post(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a body on; if the application fails on it, the body is at fault."""
        failed = False

        async def checked(message: Message) -> None:
            nonlocal failed
            if message["type"] == "http.response.start" and message["status"] == 500:
                failed = True
            if not failed:
                await send(message)

        try:
            await self.app(scope, receive, checked)
        except Exception:
            if not failed:
                raise
        if failed:
            await _Refusal(400, "the page cannot answer this request").send(send)

    def _refusal(self, method: str, path: str, headers: dict[str, str]) -> "_Refusal | None":
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self.hosts:
            return _Refusal(
                421,
                f"the page is not served as {host[:100]!r}. Set the environment variable "
                f"{HOSTS_VARIABLE} to admit more names.",
            )
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            return _Refusal(403, "requests from other websites are refused")
        if origin is None and headers.get("sec-fetch-site") == "cross-site" and method != "GET":
            return _Refusal(403, "requests from other websites are refused")
        if _REFUSED_PATHS.match(path):
            return _Refusal(404, "the page takes no uploads and gives no files")
        return None


@dataclass(frozen=True)
class _Refusal:
    status: int
    message: str

    async def send(self, send: Send) -> None:
        body = json.dumps({"error": self.message}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _read(receive: Receive, headers: dict[str, str]) -> "bytes | _Refusal":
    """Return a body that is a JSON object, or why it is refused."""
    too_large = _Refusal(413, f"a request has at most {MAX_BODY:,} bytes")
    declared = headers.get("content-length", "0")
    if not declared.isdigit():
        return _Refusal(400, "the content-length is not a number")
    if int(declared) > MAX_BODY:
        return too_large
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return _Refusal(400, "the request ended early")
        body += bytes(message.get("body", b""))
        if len(body) > MAX_BODY:
            return too_large
        if not message.get("more_body", False):
            break
    if not body:
        return body
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return _Refusal(400, "the body is not JSON")
    if not isinstance(value, dict):
        return _Refusal(422, "the body must be a JSON object")
    if not _is_shallow(value, _DEEPEST):
        return _Refusal(422, f"the body has more than {_DEEPEST} levels")
    return body


def _is_shallow(value: object, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    children = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(child, levels - 1) for child in children)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body first, and then what follows it."""
    is_given = False

    async def replay() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
