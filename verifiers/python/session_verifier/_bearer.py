"""The responses to requests that are not authorized."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ._verdict import NO_CLAIMS, REFUSED, Reason, Verdict
from ._verifier import AsyncVerifier, Verifier

_BEARER = re.compile(r"bearer +([^\s,]+)", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Authorization:
    """The decision about a request, and the response to one that is not authorized.

    The response is 401 with a challenge (RFC 6750 section 3), or 503. `reason` is for the log; the body does not have it.
    """

    ok: bool
    claims: Mapping[str, Any] = field(default_factory=lambda: NO_CLAIMS)
    #: `absent`: the request has no `Authorization` header.
    reason: Reason | Literal["absent"] | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def authorize(verifier: Verifier, authorization: str | None) -> Authorization:
    """Verifies the token of an `Authorization: Bearer` header (RFC 6750 section 2.1). Never raises."""
    if not authorization:
        return _unauthenticated("absent", "Bearer")
    match = _BEARER.fullmatch(authorization)
    return _respond(REFUSED["malformed"] if match is None else verifier.verify(match[1]))


async def authorize_async(verifier: AsyncVerifier, authorization: str | None) -> Authorization:
    """The same for asyncio."""
    if not authorization:
        return _unauthenticated("absent", "Bearer")
    match = _BEARER.fullmatch(authorization)
    return _respond(REFUSED["malformed"] if match is None else await verifier.verify(match[1]))


def _respond(verdict: Verdict) -> Authorization:
    if verdict.reason is None:
        return Authorization(True, verdict.claims)
    if verdict.reason == "unavailable":
        headers = {"content-type": "application/json", "retry-after": "1"}
        body = b'{"error":{"code":"E503_UNAVAILABLE","message":"temporarily unavailable, try again"}}'
        return Authorization(False, reason="unavailable", status=503, headers=headers, body=body)
    return _unauthenticated(verdict.reason, 'Bearer error="invalid_token"')


def _unauthenticated(reason: Reason | Literal["absent"], challenge: str) -> Authorization:
    headers = {"content-type": "application/json", "www-authenticate": challenge}
    body = b'{"error":{"code":"E001_AUTH_FAILURE","message":"authentication failed"}}'
    return Authorization(False, reason=reason, status=401, headers=headers, body=body)
