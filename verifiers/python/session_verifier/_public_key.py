"""Which public keys are accepted, wherever one is read."""

from dataclasses import dataclass
from typing import Any, Literal

from cryptography.hazmat.primitives.asymmetric import ec

from ._strict_json import decode_segment

MIN_RSA_BITS, MAX_RSA_BITS = 2048, 4096
#: The only accepted exponent, and its base64url form. Smaller exponents help forgers if a verifier checks the padding
#: carelessly, and not every runtime supports greater ones.
RSA_EXPONENT, RSA_EXPONENT_TEXT = 65_537, "AQAB"

#: Why a key of the right form is refused. `off_curve`: it is not a point of P-256 (RFC 7518 section 6.2.1).
#: `small_order`: it is a point of Ed25519 for which anybody can sign.
KeyFault = Literal["off_curve", "small_order"]

_P = 2**255 - 19
_Y8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
#: The y coordinates of the eight points of small order of Ed25519, also those that are not reduced.
_SMALL_ORDER_Y = {0, 1, _Y8, _P - _Y8, _P - 1, _P, _P + 1}


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key in canonical encoding."""

    algorithm: str
    #: The uncompressed point of P-256, the point of Ed25519, or the modulus of RSA.
    content: bytes
    #: The text whose SHA-256 is the thumbprint (RFC 7638 section 3).
    canonical: str

    def fault(self) -> KeyFault | None:
        """Returns why the key must not be used; None if it may be."""
        if self.algorithm == "ES256":
            try:
                ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), self.content)
            except ValueError:
                return "off_curve"
        # The last bit of a point of Ed25519 is the sign of x (RFC 8032 section 5.1.2).
        if self.algorithm == "EdDSA" and int.from_bytes(self.content, "little") % 2**255 in _SMALL_ORDER_Y:
            return "small_order"
        return None


def read_public_key(algorithm: str, jwk: dict[str, Any]) -> PublicKey | None:
    """Reads the members of a public JWK (RFC 7517) for ES256, EdDSA or RS256.

    Returns None unless the key is P-256, Ed25519, or RSA with 2,048 to 4,096 bits, in canonical encoding. `fault` checks
    the point.
    """
    kty, crv = jwk.get("kty"), jwk.get("crv")
    if algorithm == "RS256":
        n = _modulus_of(jwk.get("n"))
        if kty != "RSA" or jwk.get("e") != RSA_EXPONENT_TEXT or n is None:
            return None
        return PublicKey("RS256", n, f'{{"e":"{RSA_EXPONENT_TEXT}","kty":"RSA","n":"{jwk["n"]}"}}')
    x = _coordinate_of(jwk.get("x"))
    if algorithm == "EdDSA":
        if (kty, crv) != ("OKP", "Ed25519") or x is None:
            return None
        return PublicKey("EdDSA", x, f'{{"crv":"Ed25519","kty":"OKP","x":"{jwk["x"]}"}}')
    y = _coordinate_of(jwk.get("y"))
    if (kty, crv) != ("EC", "P-256") or x is None or y is None:
        return None
    canonical = f'{{"crv":"P-256","kty":"EC","x":"{jwk["x"]}","y":"{jwk["y"]}"}}'
    return PublicKey("ES256", b"\x04" + x + y, canonical)


def _coordinate_of(value: Any) -> bytes | None:
    """Decodes a coordinate; None unless it has 32 bytes in canonical base64url."""
    content = decode_segment(value) if isinstance(value, str) else None
    return content if content is not None and len(content) == 32 else None


def _modulus_of(value: Any) -> bytes | None:
    """Decodes an odd modulus of an accepted size."""
    content = decode_segment(value) if isinstance(value, str) else None
    # A Base64urlUInt (RFC 7518 section 2) has no leading zero.
    if not content or content[0] == 0:
        return None
    n = int.from_bytes(content, "big")
    return content if n % 2 == 1 and MIN_RSA_BITS <= n.bit_length() <= MAX_RSA_BITS else None
