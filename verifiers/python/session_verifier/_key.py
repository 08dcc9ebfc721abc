"""The keys that verify access tokens."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.backends import default_backend
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256

from ._public_key import RSA_EXPONENT, PublicKey, read_public_key

Check = Callable[[bytes, bytes], bool]

#: The accepted algorithms of access tokens. They are all asymmetric; `none` is not accepted.
ALGORITHMS = ("ES256", "EdDSA", "RS256")


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


# `cryptography` would load this with the first key, in a thread. A process that is forked meanwhile could never load it.
default_backend()


def import_key(jwk: Any) -> Key | None:
    """Imports a JWK (RFC 7517); None if its use, type or members are not those of a key for access tokens."""
    if not isinstance(jwk, dict):
        return None
    kid, operations = jwk.get("kid"), jwk.get("key_ops", ["verify"])
    if not isinstance(kid, str) or jwk.get("use", "sig") != "sig":
        return None
    if not isinstance(operations, list) or "verify" not in operations:
        return None  # RFC 7517 section 4.3
    # A member of this service: the tokens that the key signs. Keys of security events sign no access tokens.
    types = jwk.get("token_types", ["at+jwt"])
    if not isinstance(types, list) or "at+jwt" not in types:
        return None
    for algorithm in ALGORITHMS:
        public = read_public_key(algorithm, jwk) if jwk.get("alg") in (None, algorithm) else None
        if public is not None:
            if public.fault() is not None:
                return None
            return Key(kid, algorithm, public.canonical.encode("ascii"), check_of(public))
    return None


def check_of(public: PublicKey) -> Check:
    """Returns the function that verifies signatures of a key without fault."""
    return {"ES256": _ec_check, "EdDSA": _ed_check, "RS256": _rsa_check}[public.algorithm](public.content)


def _ec_check(point: bytes) -> Check:
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
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


def _ed_check(x: bytes) -> Check:
    public = ed25519.Ed25519PublicKey.from_public_bytes(x)

    def verifies(content: bytes, signature: bytes) -> bool:
        try:
            public.verify(signature, content)
        except InvalidSignature:
            return False
        return True

    return verifies


def _rsa_check(modulus: bytes) -> Check:
    public = rsa.RSAPublicNumbers(RSA_EXPONENT, int.from_bytes(modulus, "big")).public_key()

    def verifies(content: bytes, signature: bytes) -> bool:
        try:
            public.verify(signature, content, padding.PKCS1v15(), SHA256())
        except InvalidSignature:
            return False
        return True

    return verifies
