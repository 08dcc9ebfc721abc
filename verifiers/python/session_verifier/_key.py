"""The keys that verify access tokens."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256

from ._strict_json import decode_segment

Check = Callable[[bytes, bytes], bool]


class Key:
    """A key of the issuer's JWKS."""

    __slots__ = ("kid", "alg", "material", "verifies", "withdrawn")

    def __init__(self, kid: str, alg: str, material: bytes, verifies: Check) -> None:
        self.kid = kid
        self.alg = alg
        #: The public members. Two keys with the same kid are the same key if their material is equal.
        self.material = material
        self.verifies = verifies
        #: Whether the issuer has revoked the key or stopped publishing it. Tokens signed with it are then not valid any more.
        self.withdrawn = False


def import_key(jwk: Any) -> Key | None:
    """Imports a JWK (RFC 7517); None if its use, type or curve is not that of a key for access tokens."""
    if not isinstance(jwk, dict):
        return None
    kid, operations = jwk.get("kid"), jwk.get("key_ops", ["verify"])
    if not isinstance(kid, str) or jwk.get("use", "sig") != "sig":
        return None
    if not isinstance(operations, list) or "verify" not in operations:
        return None  # RFC 7517 section 4.3
    form = (jwk.get("kty"), jwk.get("crv"))
    x, y = coordinate_of(jwk.get("x")), coordinate_of(jwk.get("y"))
    if form == ("EC", "P-256") and jwk.get("alg") in (None, "ES256") and x is not None and y is not None:
        check = ec_check(b"\x04" + x + y)
        return None if check is None else Key(kid, "ES256", b"EC" + x + y, check)
    if form == ("OKP", "Ed25519") and jwk.get("alg") in (None, "EdDSA") and x is not None:
        return Key(kid, "EdDSA", b"OKP" + x, ed_check(x))
    return None


def ec_check(point: bytes) -> Check | None:
    """Returns the function that verifies signatures of a P-256 key; None if the point is not on the curve."""
    try:
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except ValueError:
        return None
    # The digest is computed by hashlib, which takes an eighth of the time that `cryptography` 38 takes.
    algorithm = ec.ECDSA(Prehashed(SHA256()))

    def verifies(content: bytes, signature: bytes) -> bool:
        # The signature is r ‖ s (RFC 7518 section 3.4).
        if len(signature) != 64:
            return False
        r, s = _der_integer(signature[:32]), _der_integer(signature[32:])
        try:
            public.verify(bytes((0x30, len(r) + len(s))) + r + s, sha256(content).digest(), algorithm)
        except InvalidSignature:
            return False
        return True

    return verifies


def _der_integer(digits: bytes) -> bytes:
    """Encodes an unsigned number in DER (X.690 section 8.3): without leading zeros, except one before a set sign bit."""
    digits = digits.lstrip(b"\0")
    if not digits or digits[0] >= 0x80:
        digits = b"\0" + digits
    return bytes((0x02, len(digits))) + digits


def ed_check(x: bytes) -> Check:
    """Returns the function that verifies signatures of an Ed25519 key."""
    public = ed25519.Ed25519PublicKey.from_public_bytes(x)

    def verifies(content: bytes, signature: bytes) -> bool:
        try:
            public.verify(signature, content)
        except InvalidSignature:
            return False
        return True

    return verifies


def coordinate_of(value: Any) -> bytes | None:
    """Decodes a coordinate; None unless it has 32 bytes in canonical base64url."""
    content = decode_segment(value) if isinstance(value, str) else None
    return content if content is not None and len(content) == 32 else None
