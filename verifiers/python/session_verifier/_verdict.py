"""The decision about a token."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

Reason = Literal[
    "malformed",
    "wrong_type",
    "wrong_algorithm",
    "unknown_key",
    "revoked_key",
    "forged",
    "wrong_issuer",
    "wrong_audience",
    "not_bearer",
    "not_device_bound",
    "not_yet_valid",
    "expired",
    "revoked",
    "stale",
    "unavailable",
]

#: The reasons why a token is rejected. Every reason but `unavailable` is certain: respond 401. `unavailable` means that
#: the decision is not possible now: respond 503, and keep the client logged in.
REASONS: tuple[Reason, ...] = get_args(Reason)

ProofReason = Literal[
    "proof_absent",
    "proof_ambiguous",
    "proof_malformed",
    "proof_wrong_type",
    "proof_wrong_algorithm",
    "proof_bad_key",
    "proof_wrong_method",
    "proof_wrong_url",
    "proof_wrong_token",
    "proof_stale",
    "proof_nonce",
    "proof_forged",
    "proof_replayed",
    "proof_other_key",
]

#: The reasons why the proof of a bound token is rejected: respond 401. `proof_nonce` occurs only at the service.
PROOF_REASONS: tuple[ProofReason, ...] = get_args(ProofReason)

NO_CLAIMS: Mapping[str, Any] = {}


class Verdict(NamedTuple):
    """The decision about a token. An accepted token has claims, a rejected one has a reason."""

    ok: bool
    #: None for an accepted token.
    reason: Reason | ProofReason | None
    #: The claims (RFC 9068 section 2.2). All requests with the token share them: do not change them.
    claims: Mapping[str, Any]
    #: Whether the client has proven possession of the device key of its session.
    device_bound: bool


REFUSED: Mapping[Reason | ProofReason, Verdict] = {
    reason: Verdict(False, reason, NO_CLAIMS, False) for reason in (*REASONS, *PROOF_REASONS)
}
