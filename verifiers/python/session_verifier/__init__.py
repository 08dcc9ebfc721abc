"""Verifies the access tokens of the session service locally, and learns of every logout within milliseconds.

    from session_verifier import Verifier

    verifier = Verifier(
        admin_url="http://127.0.0.1:8081",  # the admin API: keys, revocation feed and introspection
        admin_token=lambda: Path("/run/secrets/session-admin-token").read_text().strip(),
        issuer="https://sessions.example",
        audience="https://api.example",
    )
    verifier.wait_until_ready()  # keys and current revocations are known
    verdict = verifier.verify(token)
    if verdict.ok:
        print(verdict.claims["sub"])

docs/reference/verifier-protocol.md has the rules that it follows, which are those of the verifiers in other languages.
"""

from ._async_verifier import AsyncVerifier
from ._bearer import Authorization, CallerRequest, authorize, authorize_async
from ._errors import AdminTokenError, AdminUrlError, VerifierClosedError
from ._middleware import AsgiMiddleware, WsgiMiddleware
from ._options import Event
from ._proof import ProvingRequest
from ._refusals import Refusal, State
from ._verdict import PROOF_REASONS, REASONS, ProofReason, Reason, Verdict
from ._verifier import Verifier

__all__ = [
    "PROOF_REASONS",
    "REASONS",
    "AdminTokenError",
    "AdminUrlError",
    "AsgiMiddleware",
    "AsyncVerifier",
    "Authorization",
    "CallerRequest",
    "Event",
    "ProofReason",
    "ProvingRequest",
    "Reason",
    "Refusal",
    "State",
    "Verdict",
    "Verifier",
    "VerifierClosedError",
    "WsgiMiddleware",
    "authorize",
    "authorize_async",
]
