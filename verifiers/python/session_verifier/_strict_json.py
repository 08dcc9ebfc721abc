"""Parses what two parsers must not read differently."""

import binascii
import json
import math
import re
from typing import Any, NoReturn

#: Parsers in other languages have limits of their own. This one is the same in all verifiers.
MAX_DEPTH = 128

_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") | {""}
#: base64url in the alphabet of base64. Whatever else means something to a decoder of base64 means nothing here.
_TO_BASE64 = bytes.maketrans(b"-_+/=", b"+/!!!")
#: By the number of characters beyond the last group of four: the padding, and the characters without spare bits. One is never left.
_PADDING = (b"", b"", b"==", b"=")
_LAST = (_ALPHABET, frozenset[str](), frozenset("AQgw"), frozenset("AEIMQUYcgkosw048"))

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
#: A whole number of fewer digits is an int without a loss.
_MAX_DIGITS = 300


def decode_segment(segment: str) -> bytes | None:
    """Decodes canonical base64url: alphabet, no padding, no spare bits (RFC 4648 section 3.5)."""
    rest = len(segment) % 4
    if segment[-1:] not in _LAST[rest]:
        return None
    try:
        return binascii.a2b_base64(segment.encode("ascii").translate(_TO_BASE64) + _PADDING[rest], strict_mode=True)
    except ValueError:
        return None


def decode_text(segment: str) -> str | None:
    """Returns the text of a base64url segment; None unless its bytes are UTF-8."""
    content = decode_segment(segment)
    try:
        return None if content is None else content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def parse_object(text: str) -> dict[str, Any] | None:
    """Parses a JSON object.

    None for anything else, and for an object with a duplicate member (RFC 7519 section 4), an unpaired surrogate
    (RFC 7493 section 2.1), or deeper nesting than MAX_DEPTH.
    """
    if text.count("{") + text.count("[") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        return None
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    if "\\u" in text and _ESCAPED_SURROGATE.search(text) and _has_surrogate(value):
        return None
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a duplicate member")
    return members


def _int(digits: str) -> int | float:
    return int(digits) if len(digits) < _MAX_DIGITS else float(digits)


def _reject(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_int=_int, parse_constant=_reject)


def _depth(text: str) -> int:
    depth = deepest = 0
    for bracket in re.findall(r"[\[\]{}]", _STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _has_surrogate(value: Any) -> bool:
    if isinstance(value, str):
        return _SURROGATE.search(value) is not None
    if isinstance(value, list):
        return any(map(_has_surrogate, value))
    if isinstance(value, dict):
        return any(_has_surrogate(name) or _has_surrogate(member) for name, member in value.items())
    return False


def time_of(value: Any) -> float | None:
    """Returns a time in seconds since the epoch; None for anything else, such as 1e999, which is infinite."""
    kind = type(value)  # that of JSON is never another one
    if kind is int:
        return float(value)
    return value if kind is float and math.isfinite(value) else None
