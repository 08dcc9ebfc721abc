"""Checks the claims of a token whose signature is valid."""

from dataclasses import dataclass
from typing import Any

from ._key import Key
from ._options import Settings
from ._strict_json import time_of, to_double
from ._verdict import Reason, Verdict

#: The greatest version that the feed can express (uint32).
MAX_VERSION = 2**32 - 1


@dataclass(slots=True, eq=False)
class Checked:
    """A token whose signature, claims and lifetime are valid. Whether its session was revoked is not checked yet."""

    key: Key
    sid: str
    #: When the session was created; in a token without `sct`, when the token was issued.
    created_at_ms: float
    expires_at_ms: float
    #: Whether the token is bound to a key. Such a token is only accepted with a proof.
    is_bound: bool
    #: How often what the session says has changed; 0 before the first change.
    version: float
    accepted: Verdict


def check_claims(claims: dict[str, Any], key: Key, settings: Settings, allows_bound: bool) -> Checked | Reason:
    """Validates the claims as RFC 9068 section 4 does; those that section 2.2 requires must be present."""
    get = claims.get
    sub, jti, sid, client_id = get("sub"), get("jti"), get("sid"), get("client_id")
    if not (type(sub) is type(jti) is type(sid) is type(client_id) is str and sub and jti and sid and client_id):
        return "malformed"
    exp, iat = time_of(get("exp")), time_of(get("iat"))
    if exp is None or iat is None:
        return "malformed"
    if get("iss") != settings.issuer:
        return "wrong_issuer"
    aud = get("aud")
    if type(aud) is str:
        is_addressed = aud in settings.audiences
    elif type(aud) is list and all(type(each) is str for each in aud):
        is_addressed = not settings.audiences.isdisjoint(aud)
    else:
        return "malformed"
    if not is_addressed:
        return "wrong_audience"
    is_bound = "cnf" in claims
    # A token that is bound to a key (RFC 7800) needs a proof: somebody who presents it without one may have stolen it.
    if is_bound and not allows_bound:
        return "not_bearer"
    now_ms, expires_at_ms = settings.clock_ms(), exp * 1000
    if "nbf" in claims:
        nbf = time_of(claims["nbf"])
        if nbf is None or now_ms < nbf * 1000:
            return "not_yet_valid"
    if now_ms >= expires_at_ms:  # a token is expired on or after this time (RFC 7519 section 4.1.4)
        return "expired"
    version = _version_of(get("sv", 0))
    if exp < iat or version is None or not _has_actor(claims):
        return "malformed"
    device_bound = get("device_bound") is True
    if settings.require_device_bound and not device_bound:
        return "not_device_bound"
    sct = get("sct")
    created_at_ms = to_double(sct) if type(sct) is int or type(sct) is float else iat * 1000
    accepted = Verdict(True, None, claims, device_bound)
    return Checked(key, sid, created_at_ms, expires_at_ms, is_bound, version, accepted)


def _version_of(value: Any) -> float | None:
    """Returns the version of what the session says; None if it is malformed."""
    is_number = type(value) is int or type(value) is float
    return value if is_number and value == value // 1 and 0 <= value <= MAX_VERSION else None


def _has_actor(claims: dict[str, Any]) -> bool:
    """Returns whether the member `act` is valid, if there is one (RFC 8693 section 4.1)."""
    if "act" not in claims:
        return True
    actor = claims["act"]
    if type(actor) is not dict:
        return False
    sub = actor.get("sub")
    return type(sub) is str and sub != "" and _has_actor(actor)
