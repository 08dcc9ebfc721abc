"""Errors of the admin API."""


class RpcError(Exception):
    """An error of an RPC. `code` is an error code of Connect, such as `unauthenticated`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class AdminTokenError(Exception):
    """The admin API does not accept the verifier's admin token, or the token lacks the scope `watch`."""


class VerifierClosedError(Exception):
    """The verifier was closed before keys and revocations were known."""


#: The error codes that mean a bad admin token, with their messages. A retry does not fix these errors.
CREDENTIAL_FAULTS = {
    "unauthenticated": "the admin API does not accept the verifier's admin_token",
    "permission_denied": "the verifier's admin_token lacks the scope `watch`",
}
