"""Requires a valid access token for every request of an ASGI or WSGI application."""

import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from ._async_verifier import AsyncVerifier
from ._bearer import CallerRequest, authorize, authorize_async
from ._proof_url import proof_url
from ._verifier import Verifier

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]
StartResponse = Callable[..., Any]
WsgiApplication = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


#: The characters that `quote` must not escape, because a path may contain them (RFC 3986 section 3.3).
_PATH_CHARACTERS = "/!$&'()*+,;=:@"
_NOT_ASCII = re.compile("[\x80-\xff]")
_ORIGIN = re.compile(r"https?://[^/?#]*", re.IGNORECASE | re.ASCII)


def _read_origin(origin: str | None) -> str | None:
    """Returns an origin as it is in URLs: in lower case, without a default port and without a slash at its end.

    Raises ValueError for what is no origin, so that a mistake does not refuse every proof later.
    """
    if origin is None:
        return None
    url = proof_url(origin)
    # A normal URL has three slashes if its path is the root.
    if url is None or url.count("/") != 3 or not url.endswith("/") or "?" in origin or "#" in origin:
        raise ValueError("origin must be one such as https://api.example.com, without a path")
    return url[:-1]


def _url_at(origin: str, target: str) -> str:
    """Returns the URL of a request target at an origin. The target is a path or a whole URL (RFC 9112 section 3.2).

    A character of the target stands for a byte of it. Those beyond ASCII are escaped, since they have not been decoded.

    Returns an empty text for any other target. No proof is valid for that.
    """
    path = _ORIGIN.sub("", target, count=1) if _ORIGIN.match(target) else target
    return origin + _NOT_ASCII.sub(lambda found: f"%{ord(found[0]):02X}", path) if path.startswith("/") else ""


class AsgiMiddleware:
    """Puts the claims of the caller into `scope["caller_claims"]`. A WebSocket without a token is refused.

    The response to a refused WebSocket is that to other requests, if the server has the extension `websocket.http.response`.
    Without it, servers respond 403. Then a token that cannot be decided does not lead to 403, which clients take for a no:
    the WebSocket is accepted and closed at once with 4503, as after 503.

    `origin` is the origin at which clients reach this service, such as `https://api.example.com`. Without it, bound
    tokens (DPoP) are refused. Raises ValueError if it is no origin, for example because it has a path.
    """

    def __init__(self, application: AsgiApplication, verifier: AsyncVerifier, origin: str | None = None) -> None:
        self._application = application
        self._verifier = verifier
        self._origin = _read_origin(origin)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._application(scope, receive, send)
        caller = await authorize_async(self._verifier, self._credential_of(scope))
        if caller.ok:
            return await self._application({**scope, "caller_claims": caller.claims}, receive, send)
        response = "http.response"
        if scope["type"] == "websocket":
            response = "websocket.http.response"
            if response not in (scope.get("extensions") or {}):
                return await _close(scope, receive, send, caller.status)
        headers = [(name.encode(), value.encode()) for name, value in caller.headers.items()]
        await send({"type": f"{response}.start", "status": caller.status, "headers": headers})
        await send({"type": f"{response}.body", "body": caller.body})

    def _credential_of(self, scope: Scope) -> str | CallerRequest:
        headers: dict[str, str] = {}
        for raw_name, raw_value in scope["headers"]:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            # Several are joined, as by WSGI servers, and are then refused: a proxy may have read another one.
            if name in ("authorization", "dpop"):
                headers[name] = f"{headers[name]}, {value}" if name in headers else value
        if self._origin is None:
            return headers.get("authorization", "")
        path = scope.get("raw_path")
        target = quote(scope["path"], _PATH_CHARACTERS) if path is None else path.decode("latin-1")
        return CallerRequest(scope.get("method", "GET"), _url_at(self._origin, target), headers)


async def _close(scope: Scope, receive: Receive, send: Send, status: int) -> None:
    if status == 401:
        return await send({"type": "websocket.close", "code": 1008})
    await receive()
    # Browsers fail a connection without one of the protocols that they have offered, and their pages do not see the code.
    await send({"type": "websocket.accept", "subprotocol": next(iter(scope.get("subprotocols") or ()), None)})
    # Not 1013 (try again later): Daphne allows applications only 1000 and the codes from 3000 on.
    await send({"type": "websocket.close", "code": 4503})


class WsgiMiddleware:
    """Puts the claims of the caller into `environ["session_verifier.caller_claims"]`.

    `origin` is the origin at which clients reach this service, such as `https://api.example.com`. Without it, bound
    tokens (DPoP) are refused. Raises ValueError if it is no origin, for example because it has a path.
    """

    def __init__(self, application: WsgiApplication, verifier: Verifier, origin: str | None = None) -> None:
        self._application = application
        self._verifier = verifier
        self._origin = _read_origin(origin)

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        caller = authorize(self._verifier, self._credential_of(environ))
        if caller.ok:
            environ["session_verifier.caller_claims"] = caller.claims
            return self._application(environ, start_response)
        start_response(f"{caller.status} {HTTPStatus(caller.status).phrase}", list(caller.headers.items()))
        return [caller.body]

    def _credential_of(self, environ: dict[str, Any]) -> str | CallerRequest | None:
        authorization = environ.get("HTTP_AUTHORIZATION")
        if self._origin is None:
            return authorization
        # WSGI passes on the decoded path (PEP 3333), in which `%2F` is lost. Many servers also pass on the target as sent.
        decoded = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        path = quote(decoded.encode("latin-1"), _PATH_CHARACTERS)
        target = environ.get("RAW_URI") or environ.get("REQUEST_URI") or path
        headers = {"authorization": authorization, "dpop": environ.get("HTTP_DPOP")}
        return CallerRequest(environ.get("REQUEST_METHOD", ""), _url_at(self._origin, target), headers)
