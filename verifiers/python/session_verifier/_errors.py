"""Errors of the admin API."""


class RpcError(Exception):
    """An error of an RPC. `code` is an error code of Connect, such as `unauthenticated`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class AdminTokenError(Exception):
    """The admin API does not accept the verifier's admin token, or the token lacks the scope `watch`."""


class AdminUrlError(Exception):
    """`admin_url` is not the admin API."""


class VerifierClosedError(Exception):
    """The verifier was closed before keys and revocations were known."""


#: The error codes that mean a bad admin token or URL, with their errors. A retry does not fix these.
FAULTS: dict[str, tuple[type[Exception], str]] = {
    "unauthenticated": (AdminTokenError, "the admin API does not accept the verifier's admin_token"),
    "permission_denied": (AdminTokenError, "the verifier's admin_token lacks the scope `watch`"),
    "unimplemented": (AdminUrlError, "admin_url is not the admin API, but perhaps the public one"),
}
