"""Describes why a token was refused, by neither the token nor its signature."""

import math
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from ._key import ALGORITHMS, Key
from ._options import Settings
from ._proof import TOLERANCE_MS, ProvingRequest
from ._proof_url import proof_url
from ._strict_json import decode_text, parse_object
from ._token import MAX_LENGTH

#: The greatest length of a text in a description, in code points. A longer one ends with an ellipsis.
MAX_TEXT = 200
#: The claims that every access token has, beside `iss` and `aud` (RFC 9068 section 2.2).
REQUIRED_CLAIMS = ["client_id", "exp", "iat", "jti", "sid", "sub"]
#: Control and format characters, such as line breaks and direction marks, could forge lines of a log.
_UNSAFE = {"Cc", "Cf", "Zl", "Zp", "Cs"}
#: Stands for a member that is missing. None is the value of a member that is null.
_ABSENT = object()

_Members = Mapping[str, Any]
_Row = tuple[str, object, object]


class PublishedKeys(Protocol):
    def kids(self) -> tuple[str, ...]: ...

    def verifying_kids(self, now_ms: float) -> tuple[str, ...]: ...

    def find(self, kid: str) -> Key | None: ...


def describe_refusal(
    reason: str, token: object, request: ProvingRequest | None, settings: Settings, keys: PublishedKeys
) -> tuple[dict[str, str], dict[str, str]]:
    """Returns what was expected and what was received; empty for a reason that no value of the token explains."""
    header, claims = _read(token)
    rows = _describe_form(header, claims) if reason == "malformed" else []
    rows += _describe_token(reason, header or {}, claims or {}, settings, keys)
    if request is not None:
        rows += _describe_proof(reason, request, settings.clock_ms())
    expected = {name: _text_of(value) for name, value, _ in rows}
    return expected, {name: _text_of(value) for name, _, value in rows}


def _describe_token(
    reason: str, header: _Members, claims: _Members, settings: Settings, keys: PublishedKeys
) -> list[_Row]:
    seconds = math.floor(settings.clock_ms() / 1000)
    if reason == "wrong_type":
        return [("typ", "at+jwt", header.get("typ", _ABSENT))]
    if reason == "wrong_algorithm":
        kid = header.get("kid")
        key = keys.find(kid) if isinstance(kid, str) else None
        return [("alg", list(ALGORITHMS) if key is None else key.alg, header.get("alg", _ABSENT))]
    rows: dict[str, _Row] = {
        "kid": ("kid", sorted(keys.kids()), header.get("kid", _ABSENT)),
        "iss": ("iss", settings.issuer, claims.get("iss", _ABSENT)),
        "aud": ("aud", sorted(settings.audiences), claims.get("aud", _ABSENT)),
        "cnf": ("cnf", _ABSENT, claims.get("cnf", _ABSENT)),
        "device_bound": ("device_bound", True, claims.get("device_bound", _ABSENT)),
        "nbf": ("nbf", f"<= {seconds}", claims.get("nbf", _ABSENT)),
        "exp": ("exp", f"> {seconds}", claims.get("exp", _ABSENT)),
    }
    return [rows[name] for name in _DECIDING.get(reason, ())]


#: The members that decide about a reason.
_DECIDING: Mapping[str, tuple[str, ...]] = {
    "revoked_key": ("kid",),
    "unknown_key": ("kid", "iss"),
    "forged": ("kid", "iss"),
    "wrong_issuer": ("iss",),
    "wrong_audience": ("aud",),
    "not_bearer": ("cnf",),
    "not_device_bound": ("device_bound",),
    "not_yet_valid": ("nbf",),
    "expired": ("exp",),
}


def _describe_form(header: _Members | None, claims: _Members | None) -> list[_Row]:
    """Describes a malformed token by the names of its members: a token of another kind of issuer has other ones."""

    def names_of(members: _Members | None) -> object:
        return "not readable" if members is None else sorted(members)

    return [("header", ["alg", "kid", "typ"], names_of(header)), ("claims", REQUIRED_CLAIMS, names_of(claims))]


def _describe_proof(reason: str, request: ProvingRequest, now_ms: float) -> list[_Row]:
    claims = _read(request.proof)[1] or {}
    if reason == "proof_wrong_method":
        return [("htm", request.method, claims.get("htm", _ABSENT))]
    if reason == "proof_wrong_url":
        htu, expected = claims.get("htu", _ABSENT), proof_url(request.url)
        # The query is no part of `htu` (RFC 9449 section 4.2), and may contain a secret.
        received = htu.partition("?")[0].partition("#")[0] if isinstance(htu, str) else htu
        return [("htu", _ABSENT if expected is None else expected, received)]
    if reason == "proof_stale":
        return [("iat", f"{math.floor(now_ms / 1000)} +- {TOLERANCE_MS // 1000}", claims.get("iat", _ABSENT))]
    return []


def _read(token: object) -> tuple[_Members | None, _Members | None]:
    """Reads header and claims of a token that was refused. A part is None if it cannot be decoded."""
    if not isinstance(token, str) or len(token) > MAX_LENGTH:
        return None, None
    dot, end = token.find("."), token.rfind(".")
    return _object_of(token[: max(dot, 0)]), _object_of(token[dot + 1 : end]) if dot < end else None


def _object_of(segment: str) -> _Members | None:
    text = decode_text(segment)
    return None if text is None else parse_object(text)


def _text_of(value: object) -> str:
    """Returns a value as a text that is safe in a log. The verifiers in other languages write it in the same way."""
    if value is _ABSENT:
        return "absent"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float) and abs(value) < 2**53:
        return str(math.floor(value))
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = ", ".join(value)
    return _safe(value) if isinstance(value, str) else "of another type"


def _safe(text: Iterable[str]) -> str:
    kept = [each for each in text if unicodedata.category(each) not in _UNSAFE]
    if len(kept) > MAX_TEXT:
        return "".join(kept[:MAX_TEXT]) + "…"
    return "".join(kept) or "empty"
