"""The keys that verify access tokens."""

from collections.abc import Callable
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from ._strict_json import decode_segment

Check = Callable[[bytes, bytes], bool]


class Key:
    """A key of the issuer's JWKS."""

    __slots__ = ("kid", "alg", "material", "verifies", "withdrawn")

    def __init__(self, kid: str, alg: str, material: bytes, verifies: Check) -> None:
        self.kid = kid
        self.alg = alg
        #: The public members: two keys with one kid are the same if these are equal.
        self.material = material
        self.verifies = verifies
        #: Whether the issuer has revoked the key or stopped publishing it. Its tokens are then not valid any more.
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
    x, y = _coordinate(jwk.get("x")), _coordinate(jwk.get("y"))
    if form == ("EC", "P-256") and jwk.get("alg") in (None, "ES256") and x is not None and y is not None:
        return _ec_key(kid, x, y)
    if form == ("OKP", "Ed25519") and jwk.get("alg") in (None, "EdDSA") and x is not None:
        return _ed_key(kid, x)
    return None


def _ec_key(kid: str, x: bytes, y: bytes) -> Key | None:
    try:
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), b"\x04" + x + y)
    except ValueError:
        return None  # the point is not on the curve
    algorithm = ec.ECDSA(SHA256())

    def verifies(content: bytes, signature: bytes) -> bool:
        # The signature is r ‖ s (RFC 7518 section 3.4).
        r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
        try:
            public.verify(encode_dss_signature(r, s), content, algorithm)
        except InvalidSignature:
            return False
        return True

    return Key(kid, "ES256", b"EC" + x + y, verifies)


def _ed_key(kid: str, x: bytes) -> Key | None:
    try:
        public = ed25519.Ed25519PublicKey.from_public_bytes(x)
    except ValueError:
        return None

    def verifies(content: bytes, signature: bytes) -> bool:
        try:
            public.verify(signature, content)
        except InvalidSignature:
            return False
        return True

    return Key(kid, "EdDSA", b"OKP" + x, verifies)


def _coordinate(value: Any) -> bytes | None:
    """Returns the 32 bytes of a coordinate, which have one encoding."""
    content = decode_segment(value) if isinstance(value, str) else None
    return content if content is not None and len(content) == 32 else None
