"""The public key in a proof of possession: which keys are accepted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from ._key import Check, coordinate_of, ec_check, ed_check
from ._strict_json import decode_segment

#: `Ed25519` is the newer name of `EdDSA` with that curve (RFC 9864).
PROOF_ALGORITHMS = ("ES256", "RS256", "EdDSA", "Ed25519")
#: The members of private and symmetric keys (RFC 7518 section 6). A client that sends one of them does not keep its key
#: secret.
PRIVATE_MEMBERS = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}
MIN_RSA_BITS, MAX_RSA_BITS = 2048, 4096
#: The only accepted exponent, and its base64url form. Smaller exponents help forgers if a verifier checks the padding
#: carelessly, and not every runtime supports greater ones.
RSA_EXPONENT, RSA_EXPONENT_TEXT = 65_537, "AQAB"


@dataclass(frozen=True, slots=True)
class ProofKey:
    #: The text whose SHA-256 is the thumbprint (RFC 7638 section 3).
    canonical: str
    #: Returns the function that verifies signatures; None if the key is not a point of its curve.
    open: Callable[[], Check | None]


def read_proof_key(algorithm: str, jwk: Any) -> ProofKey | None:
    """Reads a public JWK (RFC 7517) for an algorithm.

    Returns None unless the key is P-256, Ed25519, or RSA with 2,048 to 4,096 bits, is encoded canonically and has no
    private member.
    """
    if not isinstance(jwk, dict) or not PRIVATE_MEMBERS.isdisjoint(jwk) or jwk.get("alg", algorithm) != algorithm:
        return None
    if algorithm == "RS256":
        return _rsa_key(jwk)
    x, y = coordinate_of(jwk.get("x")), coordinate_of(jwk.get("y"))
    form = (jwk.get("kty"), jwk.get("crv"))
    if algorithm == "ES256":
        if form != ("EC", "P-256") or x is None or y is None:
            return None
        canonical = f'{{"crv":"P-256","kty":"EC","x":"{jwk["x"]}","y":"{jwk["y"]}"}}'
        point = b"\x04" + x + y
        return ProofKey(canonical, lambda: ec_check(point))
    if form != ("OKP", "Ed25519") or x is None:
        return None
    public = x
    return ProofKey(f'{{"crv":"Ed25519","kty":"OKP","x":"{jwk["x"]}"}}', lambda: ed_check(public))


def _rsa_key(jwk: dict[str, Any]) -> ProofKey | None:
    text = jwk.get("n")
    content = decode_segment(text) if isinstance(text, str) else None
    # A Base64urlUInt (RFC 7518 section 2) has no leading zero.
    if jwk.get("kty") != "RSA" or jwk.get("e") != RSA_EXPONENT_TEXT or not content or content[0] == 0:
        return None
    n = int.from_bytes(content, "big")
    if n % 2 == 0 or not MIN_RSA_BITS <= n.bit_length() <= MAX_RSA_BITS:
        return None
    return ProofKey(f'{{"e":"{RSA_EXPONENT_TEXT}","kty":"RSA","n":"{text}"}}', lambda: _rsa_check(n))


def _rsa_check(n: int) -> Check:
    public = rsa.RSAPublicNumbers(RSA_EXPONENT, n).public_key()

    def verifies(content: bytes, signature: bytes) -> bool:
        try:
            public.verify(signature, content, padding.PKCS1v15(), SHA256())
        except InvalidSignature:
            return False
        return True

    return verifies
