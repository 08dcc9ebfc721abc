"""Checks the claims of a token whose signature is valid."""

from dataclasses import dataclass
from typing import Any

from ._key import Key
from ._options import Settings
from ._strict_json import time_of, to_double
from ._verdict import Reason, Verdict


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
    if exp < iat:
        return "malformed"
    device_bound = get("device_bound") is True
    if settings.require_device_bound and not device_bound:
        return "not_device_bound"
    sct = get("sct")
    created_at_ms = to_double(sct) if type(sct) is int or type(sct) is float else iat * 1000
    accepted = Verdict(True, None, claims, device_bound)
    return Checked(key, sid, created_at_ms, expires_at_ms, is_bound, accepted)
