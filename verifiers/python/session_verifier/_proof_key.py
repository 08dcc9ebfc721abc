"""The public key in a proof of possession: which keys are accepted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._key import Check, check_of
from ._public_key import PublicKey, read_public_key

#: `Ed25519` is the newer name of `EdDSA` with that curve (RFC 9864).
PROOF_ALGORITHMS = ("ES256", "RS256", "EdDSA", "Ed25519")
#: The members of private and symmetric keys (RFC 7518 section 6). A client that sends one of them does not keep its key
#: secret.
PRIVATE_MEMBERS = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}


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
    read = read_public_key("EdDSA" if algorithm == "Ed25519" else algorithm, jwk)
    if read is None:
        return None
    public = read
    return ProofKey(public.canonical, lambda: _open(public))


def _open(public: PublicKey) -> Check | None:
    fault = public.fault()
    if fault == "off_curve":
        return None
    # Anybody can sign for a point of small order, so that no signature proves anything.
    return check_of(public) if fault is None else lambda _content, _signature: False
