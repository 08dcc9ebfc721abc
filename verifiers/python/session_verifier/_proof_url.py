"""Normalizes URLs, so that the URL in a proof can be compared with that of the request (docs/reference/verifier-protocol.md)."""

import re

#: Scheme, host, port and path; the host is a name, an IPv4 address or an IPv6 one, and there are no credentials.
_PARTS = re.compile(
    r"(https?)://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]*))?(/[^?#]*)?(?:[?#].*)?",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
_DEFAULT_PORTS = {"http": "80", "https": "443"}
#: The characters that need no escape in a path (RFC 3986 section 3.3).
_UNESCAPED = re.compile(rb"[^A-Za-z0-9._~!$&'()*+,;=:@/%-]")
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def proof_url(text: str) -> str | None:
    """Returns a URL without query and fragment, normalized (RFC 3986 sections 6.2.2 and 6.2.3).

    None for what is no http(s) URL, has credentials, or a host that is not in ASCII.
    """
    parts = _PARTS.fullmatch(text)
    if parts is None:
        return None
    scheme, authority, port, path = parts[1].lower(), parts[2].lower(), parts[3], parts[4] or "/"
    if port and port != _DEFAULT_PORTS[scheme]:
        authority += f":{port}"
    escaped = _UNESCAPED.sub(lambda found: b"%%%02X" % found[0][0], path.encode("utf-8", "replace"))
    normalized = _ESCAPE.sub(_normalize_escape, escaped).decode("ascii")
    return f"{scheme}://{authority}{_remove_dot_segments(normalized)}"


def _normalize_escape(found: re.Match[bytes]) -> bytes:
    """Decodes an escaped character that needs no escape; the others get upper case."""
    character = int(found[0][1:], 16)
    return bytes([character]) if character in _UNRESERVED else found[0].upper()


def _remove_dot_segments(path: str) -> str:
    """Resolves the segments `.` and `..` of an absolute path (RFC 3986 section 5.2.4)."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)
