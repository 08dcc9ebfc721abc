"""The rules of a DPoP proof (RFC 9449 section 4.3)."""

import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ._proof_key import PROOF_ALGORITHMS, ProofKey, read_proof_key
from ._proof_url import proof_url
from ._strict_json import decode_segment, decode_text, parse_object, time_of
from ._verdict import ProofReason

#: This is enough for a proof with an RSA key of 4,096 bits and a URL of 2,000 characters.
MAX_LENGTH = 8192
#: The length of a `jti` counts UTF-16 code units, as in the other verifiers.
MAX_JTI_LENGTH = 256
#: How far the `iat` of a proof may be from the wall clock.
TOLERANCE_MS = 60_000

_SEGMENTS = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")


@dataclass(frozen=True, slots=True)
class ProvingRequest:
    """A request with a proof, and the facts that the proof is compared with (RFC 9449 section 7)."""

    method: str
    #: The URL to which the client has sent the request; behind a proxy, the public one. Take its origin from the
    #: configuration and not from the header `Host`: otherwise a proof for another service would be accepted.
    url: str
    #: The value of the header `DPoP`; None if there is none. Several headers are joined with commas.
    proof: str | None


@dataclass(frozen=True, slots=True)
class Proof:
    """A verified proof. Still to be checked are whether it is a replay, and whether the token is bound to its key."""

    #: The thumbprint of the proof's key (RFC 7638).
    thumbprint: str
    id: bytes


def verify_proof(request: ProvingRequest, token: str, now_ms: float) -> Proof | ProofReason:
    if not request.proof:
        return "proof_absent"
    if "," in request.proof:
        return "proof_ambiguous"
    segments = _SEGMENTS.fullmatch(request.proof)
    if segments is None or len(request.proof) > MAX_LENGTH:
        return "proof_malformed"
    header, signature = _object_of(segments[1]), decode_segment(segments[3])
    if header is None or signature is None:
        return "proof_malformed"
    key = _find_key(header)
    if isinstance(key, str):
        return key
    claims = _object_of(segments[2])
    fault = "proof_malformed" if claims is None else _find_fault(claims, request, now_ms)
    if claims is None or fault is not None:
        return fault or "proof_malformed"
    if claims.get("ath") != _digest(token):
        return "proof_wrong_token"
    verifies = key.open()
    if verifies is None:
        return "proof_bad_key"
    if not verifies(request.proof[: segments.end(2)].encode("ascii"), signature):
        return "proof_forged"
    thumbprint = _digest(key.canonical)
    return Proof(thumbprint, sha256(f"{thumbprint}.{claims['jti']}".encode()).digest())


def _find_key(header: dict[str, Any]) -> ProofKey | ProofReason:
    # These header members would change what is signed, or how it is read (RFC 7515 section 4.1.11, RFC 7797).
    if "crit" in header or "b64" in header:
        return "proof_malformed"
    if header.get("typ") != "dpop+jwt":
        return "proof_wrong_type"
    algorithm = header.get("alg")
    if algorithm not in PROOF_ALGORITHMS:
        return "proof_wrong_algorithm"
    return read_proof_key(algorithm, header.get("jwk")) or "proof_bad_key"


def _find_fault(claims: dict[str, Any], request: ProvingRequest, now_ms: float) -> ProofReason | None:
    jti, htm, htu, iat = claims.get("jti"), claims.get("htm"), claims.get("htu"), time_of(claims.get("iat"))
    if not isinstance(jti, str) or not 1 <= len(jti.encode("utf-16-le")) // 2 <= MAX_JTI_LENGTH:
        return "proof_malformed"
    if not all(isinstance(claims.get(name, ""), str) for name in ("ath", "nonce")):
        return "proof_malformed"
    if not isinstance(htm, str) or not isinstance(htu, str) or iat is None:
        return "proof_malformed"
    if htm != request.method:
        return "proof_wrong_method"
    url = proof_url(htu)
    if url is None or url != proof_url(request.url):
        return "proof_wrong_url"
    return "proof_stale" if abs(now_ms - iat * 1000) > TOLERANCE_MS else None


def _object_of(segment: str) -> dict[str, Any] | None:
    text = decode_text(segment)
    return None if text is None else parse_object(text)


def _digest(text: str) -> str:
    return urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode("ascii")
