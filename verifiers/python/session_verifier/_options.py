"""The options of a verifier."""

import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from ._http import HttpTransport, Transport
from ._verdict import ProofReason, Reason

Policy = Literal["introspect", "refuse"]


@dataclass(frozen=True, slots=True)
class Event:
    """An event for the log of the verifying service.

    An outage causes one event. `token_refused` is reported once a minute for each reason; `Refusal` explains its fields.
    """

    name: Literal["keys_read", "keys_unreadable", "feed_following", "feed_lost", "token_refused"]
    kids: tuple[str, ...] = ()
    error: BaseException | None = None
    reason: Reason | ProofReason | None = None
    count: int = 0
    expected: Mapping[str, str] = field(default_factory=dict)
    received: Mapping[str, str] = field(default_factory=dict)


Report = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Settings:
    issuer: str
    audiences: frozenset[str]
    require_device_bound: bool
    admin_url: str | None
    admin_token: Callable[[], str] | None
    jwks_url: str
    policy: Policy
    max_staleness_ms: float
    cache_size: int
    report: Report
    transport: Transport
    clock_ms: Callable[[], float]
    monotonic_ms: Callable[[], float]


def resolve_options(
    *,
    issuer: str,
    audience: str | Sequence[str],
    admin_url: str | None = None,
    admin_token: str | Callable[[], str] | None = None,
    require_device_bound: bool = False,
    ssl_context: ssl.SSLContext | None = None,
    jwks_url: str | None = None,
    policy: Policy | None = None,
    max_staleness_ms: float = 5000,
    cache_size: int = 10_000,
    report: Report | None = None,
    transport: Transport | None = None,
    clock_ms: Callable[[], float] | None = None,
    monotonic_ms: Callable[[], float] | None = None,
) -> Settings:
    """Applies the defaults. Raises ValueError for options that cannot work."""
    _require_text("issuer", issuer)
    # The type allows no None, but a variable of the environment that is not set is one.
    listed = [audience] if audience is None or isinstance(audience, str) else list(audience)
    for each in listed:
        _require_text("audience", each)
    audiences = frozenset(listed)
    if not audiences:
        raise ValueError("Verifier needs an audience")
    if isinstance(admin_token, str):
        _require_text("admin_token", admin_token)
    if admin_url is None and jwks_url is None:
        raise ValueError("Verifier needs admin_url or jwks_url")
    if admin_url is None and policy is not None:
        raise ValueError("Verifier: a policy needs admin_url")
    if admin_url is not None and admin_token is None and ssl_context is None and transport is None:
        raise ValueError("Verifier: admin_url needs admin_token, or ssl_context with a client certificate")
    if policy not in (None, "introspect", "refuse"):
        raise ValueError("Verifier: policy must be introspect or refuse")
    if not max_staleness_ms >= 0:
        raise ValueError("Verifier: max_staleness_ms must be a number, at least 0")
    if cache_size != int(cache_size) or cache_size < 2:
        raise ValueError("Verifier: cache_size must be a whole number, at least 2")
    for url in (admin_url, jwks_url):
        if url is not None and not _is_url(url):
            raise ValueError("Verifier: admin_url and jwks_url must be http:// or https:// URLs without a password")
    if jwks_url is None and admin_url is not None:
        parts = urlsplit(admin_url)
        jwks_url = f"{parts.scheme}://{parts.netloc}/.well-known/jwks.json"
    token = (lambda: admin_token) if isinstance(admin_token, str) else admin_token
    return Settings(
        issuer=issuer,
        audiences=audiences,
        require_device_bound=require_device_bound,
        admin_url=admin_url,
        admin_token=token,
        jwks_url=jwks_url or "",
        policy=policy or "introspect",
        max_staleness_ms=max_staleness_ms,
        cache_size=int(cache_size),
        report=_safe(report),
        transport=transport or HttpTransport(ssl_context),
        clock_ms=clock_ms or (lambda: time.time_ns() / 1e6),
        monotonic_ms=monotonic_ms or (lambda: time.monotonic_ns() / 1e6),
    )


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:  # of an address or a port that is none
        return False


def _require_text(name: str, value: object) -> None:
    """The message does not contain the value, because it may be a secret in the wrong place."""
    if not isinstance(value, str) or value.strip() == "":
        given = "empty" if isinstance(value, str) else f"a {type(value).__name__}"
        raise ValueError(f"Verifier: {name} must be a text that is not empty, and is {given}")


def _safe(report: Report | None) -> Report:
    """Wraps `report` so that its errors do not stop the verifier."""

    def call(event: Event) -> None:
        try:
            if report is not None:
                report(event)
        except Exception:
            pass  # there is nowhere to report an error of `report` itself

    return call
