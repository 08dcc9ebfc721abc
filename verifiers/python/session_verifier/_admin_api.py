"""Calls the admin API, by Connect's protocol with JSON."""

import json
import re
import struct
import time
from collections.abc import Iterator
from typing import Any

from ._errors import RpcError
from ._http import Response
from ._options import Settings

SERVICE = "/auth.admin.v1.SessionAdminService/"
#: The size limits of a message of the feed, and of other responses.
MAX_MESSAGE_BYTES = 16 << 20
MAX_BODY_BYTES = 1 << 20
#: Bits of the first byte of an envelope.
COMPRESSED, END = 1, 2
#: A part of the response of the service's public API to RPCs of the admin API.
NOT_FOUND_OF_PUBLIC_API = b'"E404_NOT_FOUND"'


def call(settings: Settings, rpc: str, content_type: str, body: bytes, deadline: float) -> Response:
    """Posts a message to an RPC. Raises RpcError, OSError or http.client.HTTPException."""
    headers = {"content-type": content_type, "connect-protocol-version": "1"}
    if settings.admin_token is not None:
        token = settings.admin_token().strip()
        if not re.fullmatch(r"[\x20-\x7e]+", token):
            # The error of http.client would contain the token.
            raise RpcError("unauthenticated", "admin_token has characters that a header cannot carry")
        headers["authorization"] = f"Bearer {token}"
    url = (settings.admin_url or "").removesuffix("/") + SERVICE + rpc
    response = settings.transport.request("POST", url, headers, body, deadline)
    if response.status == 200:
        return response
    try:
        raise _error_of(response, deadline)
    finally:
        response.close()


def _error_of(response: Response, deadline: float) -> RpcError:
    body = b""
    try:
        body = read_all(response, 64 * 1024, deadline)
        error = json.loads(body)
        return RpcError(str(error["code"]), str(error.get("message", "")))
    except Exception:  # any body that has no error, such as one that was cut
        # A proxy responds for the service, as while the service is away: it may know no route to it.
        code = "unimplemented" if NOT_FOUND_OF_PUBLIC_API in body else "unavailable"
        return RpcError(code, f"the admin API responds {response.status}")


def read_all(response: Response, limit: int, deadline: float) -> bytes:
    """Returns the body. Raises ValueError if it is longer than `limit`, and TimeoutError after the deadline."""
    pieces, size = [], 0
    while piece := response.read(65_536, deadline):
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise ValueError("the response is too large")
    return b"".join(pieces)


def introspect_token(settings: Settings, token: str, deadline: float) -> bool:
    """Returns whether the service reports the token as active. Raises an Exception if it does not respond in time."""
    body = json.dumps({"token": token}).encode()
    response = call(settings, "IntrospectToken", "application/json", body, deadline)
    try:
        # What is no response of the service must not look like one about a token that is not active, which has no members.
        active = json.loads(read_all(response, MAX_BODY_BYTES, deadline)).get("active", False)
        if not isinstance(active, bool):
            raise ValueError("this is no response of IntrospectToken")
        return active
    finally:
        response.close()


def open_feed(settings: Settings, cursor: str, deadline: float) -> Response:
    """Begins a stream of the feed."""
    message = json.dumps({"cursor": cursor}).encode()
    body = struct.pack(">BI", 0, len(message)) + message
    return call(settings, "WatchRevocations", "application/connect+json", body, deadline)


def read_feed(response: Response, max_silence: float) -> Iterator[dict[str, Any]]:
    """Yields the batches of a stream as they arrive. `max_silence` is the time limit for each, in seconds.

    Raises RpcError, OSError or ValueError when the stream ends.
    """
    while True:
        deadline = time.monotonic() + max_silence
        flags, length = struct.unpack(">BI", _read_exactly(response, 5, deadline))
        if length > MAX_MESSAGE_BYTES:
            raise ValueError(f"a message of {length} bytes")
        message = json.loads(_read_exactly(response, length, deadline))
        if flags & COMPRESSED:
            raise ValueError("the feed is compressed, which was not asked for")
        if flags & END:
            error = message.get("error")
            if error is None:
                raise ConnectionError("the feed ended")
            raise RpcError(str(error.get("code")), str(error.get("message", "")))
        yield message


def _read_exactly(response: Response, size: int, deadline: float) -> bytes:
    pieces = []
    while size > 0:
        piece = response.read(size, deadline)
        if not piece:
            raise ConnectionError("the feed was cut")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
