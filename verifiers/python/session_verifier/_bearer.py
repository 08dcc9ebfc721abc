"""Decides about requests by their `Authorization` header, and makes the responses to those that are refused."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ._async_verifier import AsyncVerifier
from ._proof import ProvingRequest
from ._proof_key import PROOF_ALGORITHMS
from ._verdict import NO_CLAIMS, ProofReason, Reason, Verdict
from ._verifier import Verifier

_BEARER = re.compile(r"bearer +([^\s,]+)", re.IGNORECASE | re.ASCII)
_DPOP_SCHEME = re.compile(r"dpop\b", re.IGNORECASE | re.ASCII)
_DPOP = re.compile(r"dpop +([^\s,]+)", re.IGNORECASE | re.ASCII)

_BAD_BEARER = 'Bearer error="invalid_token"'
_ALGORITHMS = f'algs="{" ".join(PROOF_ALGORITHMS)}"'
_BAD_BOUND = f'DPoP error="invalid_token", {_ALGORITHMS}'
_BAD_PROOF = f'DPoP error="invalid_dpop_proof", {_ALGORITHMS}'
#: Is added to a challenge: the client gets another token by a refresh, and stays signed in.
_AS_STALE = ', error_description="stale"'


@dataclass(frozen=True, slots=True)
class Authorization:
    """The decision about a request. If the request is not authorized, it has the response to send.

    The response is 401 with a challenge (RFC 6750 section 3), or 503. `reason` is for the log; the body does not contain it.
    Of all reasons, the challenge names only `stale`.
    """

    ok: bool
    claims: Mapping[str, Any] = field(default_factory=lambda: NO_CLAIMS)
    #: Why the request is not authorized. `absent` means that it has no `Authorization` header.
    reason: Reason | ProofReason | Literal["absent"] | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class RequestHeaders(Protocol):
    """The headers of a request, by their names in lower case. Several headers of one name are joined with commas."""

    def get(self, name: str, /) -> str | None: ...


@dataclass(frozen=True, slots=True)
class CallerRequest:
    """A request whose token may be bound to a key."""

    method: str
    #: The URL to which the client has sent the request. Take its origin from the configuration and not from the header
    #: `Host`: otherwise a proof for another service would be accepted.
    url: str
    headers: RequestHeaders


@dataclass(frozen=True, slots=True)
class _Presented:
    """A token. `request` has the proof, if the token came with the scheme DPoP."""

    token: str
    request: ProvingRequest | None


def authorize(verifier: Verifier, given: str | CallerRequest | None) -> Authorization:
    """Verifies the token of an `Authorization` header. Never raises.

    The scheme is Bearer (RFC 6750 section 2.1). If a whole request is given, the scheme may also be DPoP with a proof (RFC
    9449 section 7).
    """
    presented = _read(given)
    if isinstance(presented, Authorization):
        return presented
    token, request = presented.token, presented.request
    return _respond(verifier.verify(token) if request is None else verifier.verify_bound(token, request), request)


async def authorize_async(verifier: AsyncVerifier, given: str | CallerRequest | None) -> Authorization:
    """Works as `authorize`, for asyncio."""
    presented = _read(given)
    if isinstance(presented, Authorization):
        return presented
    token, request = presented.token, presented.request
    verdict = await (verifier.verify(token) if request is None else verifier.verify_bound(token, request))
    return _respond(verdict, request)


def _read(given: str | CallerRequest | None) -> _Presented | Authorization:
    """Returns the token, or the response to a request that has none."""
    authorization = given.headers.get("authorization") if isinstance(given, CallerRequest) else given
    if not authorization:
        return _unauthenticated("absent", "Bearer")
    if isinstance(given, CallerRequest) and _DPOP_SCHEME.match(authorization):
        bound = _DPOP.fullmatch(authorization)
        request = ProvingRequest(given.method, given.url, given.headers.get("dpop"))
        return _Presented("" if bound is None else bound[1], request)
    match = _BEARER.fullmatch(authorization)
    # A header that has no bearer token is refused, and counted, as an empty token is.
    return _Presented("" if match is None else match[1], None)


def _respond(verdict: Verdict, request: ProvingRequest | None) -> Authorization:
    reason = verdict.reason
    if reason is None:
        return Authorization(True, verdict.claims)
    if reason == "unavailable":
        headers = {"content-type": "application/json", "retry-after": "1"}
        body = b'{"error":{"code":"E503_UNAVAILABLE","message":"temporarily unavailable, try again"}}'
        return Authorization(False, reason="unavailable", status=503, headers=headers, body=body)
    if request is None:
        challenge = _BAD_BEARER
    else:
        challenge = _BAD_PROOF if reason.startswith("proof_") else _BAD_BOUND
    return _unauthenticated(reason, challenge + _AS_STALE if reason == "stale" else challenge)


def _unauthenticated(reason: Reason | ProofReason | Literal["absent"], challenge: str) -> Authorization:
    headers = {"content-type": "application/json", "www-authenticate": challenge}
    body = b'{"error":{"code":"E001_AUTH_FAILURE","message":"authentication failed"}}'
    return Authorization(False, reason=reason, status=401, headers=headers, body=body)
