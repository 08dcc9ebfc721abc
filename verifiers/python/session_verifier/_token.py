"""Checks the signature, the claims and the lifetime of a token."""

import re

from ._claims import Checked, check_claims
from ._key import ALGORITHMS, Key
from ._key_set import KeySet
from ._options import Settings
from ._public_key import MAX_RSA_BITS, MIN_RSA_BITS
from ._strict_json import decode_segment, decode_text, parse_object
from ._verdict import Reason

#: A longer text is not an access token of the service.
MAX_LENGTH = 16_384
#: The length of a signature by ES256 and EdDSA. One by RS256 is as long as the modulus.
SHORT_SIGNATURE_BYTES = 64
RSA_SIGNATURE_BYTES = range(MIN_RSA_BITS // 8, MAX_RSA_BITS // 8 + 1)
#: The verification of a longer token is not remembered, so that long tokens, which anybody can send, do not fill the memory.
MAX_REMEMBERED = 2048
#: The media type of access tokens (RFC 9068 section 4, RFC 7515 section 4.1.9).
TYPE = re.compile(r"(application/)?at\+jwt", re.IGNORECASE | re.ASCII)
#: Other members, such as `crit` or `jwk`, are rejected: they could change how the token is verified (RFC 8725 section 3.10).
HEADER_MEMBERS = {"typ", "alg", "kid"}


def check_token(token: str, keys: KeySet, settings: Settings, allows_bound: bool = False) -> Checked | Reason:
    """Checks a token. If the result is `unknown_key`, newer keys may change it.

    With `allows_bound` the token may be bound to a key, because the caller checks the proof.
    """
    end, dot = token.rfind("."), token.find(".")
    if len(token) > MAX_LENGTH or dot < 1 or dot >= end:
        return "malformed"
    payload = decode_text(token[dot + 1 : end])
    signature = decode_segment(token[end + 1 :])
    if payload is None or signature is None:
        return "malformed"
    # Whether the signature has the length of the key's own is checked with the signature.
    if len(signature) != SHORT_SIGNATURE_BYTES and len(signature) not in RSA_SIGNATURE_BYTES:
        return "malformed"
    header = token[:dot]
    known = keys.headers.get(header)
    key = known if known is not None else _find_key(header, keys)
    if not isinstance(key, Key):
        return key
    remembered = keys.signatures.get(token)
    if remembered is not None and remembered[0] is key:
        is_valid = remembered[1]
    else:
        remembered = None
        # The segments are base64url, so the text is ASCII.
        is_valid = key.verifies(token[:end].encode("ascii"), signature)
    if known is None and is_valid:
        keys.remember_header(header, key)
    checked: Checked | Reason = "forged"
    if is_valid:
        claims = parse_object(payload)
        checked = "malformed" if claims is None else check_claims(claims, key, settings, allows_bound)
    # The result is remembered for refused tokens, because clients may present them again and again.
    if remembered is None and isinstance(checked, str) and len(token) <= MAX_REMEMBERED:
        keys.signatures.set(token, (key, is_valid))
    return checked


def _find_key(segment: str, keys: KeySet) -> Key | Reason:
    text = decode_text(segment)
    header = None if text is None else parse_object(text)
    if header is None or not HEADER_MEMBERS.issuperset(header):
        return "malformed"
    typ, alg, kid = header.get("typ"), header.get("alg"), header.get("kid")
    if not isinstance(kid, str):
        return "malformed"
    if not isinstance(typ, str) or TYPE.fullmatch(typ) is None:
        return "wrong_type"
    if alg not in ALGORITHMS:
        return "wrong_algorithm"
    if keys.is_revoked(kid):
        return "revoked_key"
    key = keys.find(kid)
    if key is None:
        return "unknown_key"
    # The key decides the algorithm; the header must name the same one (RFC 8725 section 3.1).
    return key if key.alg == alg else "wrong_algorithm"
