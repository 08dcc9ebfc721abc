"""Requires a valid access token for every request of an ASGI or WSGI application."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http import HTTPStatus
from typing import Any

from ._bearer import authorize, authorize_async
from ._verifier import AsyncVerifier, Verifier

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]
StartResponse = Callable[..., Any]
WsgiApplication = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


class AsgiMiddleware:
    """The claims of the caller are in `scope["caller_claims"]`. A WebSocket without a token is refused."""

    def __init__(self, application: AsgiApplication, verifier: AsyncVerifier) -> None:
        self._application = application
        self._verifier = verifier

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._application(scope, receive, send)
        found = (value for name, value in scope["headers"] if name.lower() == b"authorization")
        caller = await authorize_async(self._verifier, next(found, b"").decode("latin-1"))
        if caller.ok:
            return await self._application({**scope, "caller_claims": caller.claims}, receive, send)
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close", "code": 1008 if caller.status == 401 else 1013})
        headers = [(name.encode(), value.encode()) for name, value in caller.headers.items()]
        await send({"type": "http.response.start", "status": caller.status, "headers": headers})
        await send({"type": "http.response.body", "body": caller.body})


class WsgiMiddleware:
    """The claims of the caller are in `environ["session_verifier.caller_claims"]`."""

    def __init__(self, application: WsgiApplication, verifier: Verifier) -> None:
        self._application = application
        self._verifier = verifier

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        caller = authorize(self._verifier, environ.get("HTTP_AUTHORIZATION"))
        if caller.ok:
            environ["session_verifier.caller_claims"] = caller.claims
            return self._application(environ, start_response)
        start_response(f"{caller.status} {HTTPStatus(caller.status).phrase}", list(caller.headers.items()))
        return [caller.body]
