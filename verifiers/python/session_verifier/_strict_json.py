"""Parses JSON and base64url strictly, so that all verifiers read a token in the same way."""

import json
import math
import re
from binascii import a2b_base64
from typing import Any, NoReturn

#: The greatest nesting. It is the same in all verifiers, because the limits of JSON parsers differ.
MAX_DEPTH = 128

_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") | {""}
#: The padding, by the number of characters after the last group of four.
_PADDING = ("", "", "==", "=")
#: The last characters whose spare bits are zero, by the number of characters after the last group of four, which is never 1.
_LAST = (_ALPHABET, frozenset[str](), frozenset("AQgw"), frozenset("AEIMQUYcgkosw048"))

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
#: `int` always accepts texts with fewer digits than this (`sys.int_info`). Longer whole numbers become floats.
_MAX_DIGITS = 640
#: The white space that JSON allows around the object. `strip` without an argument would remove more.
_SPACE = " \t\n\r"


def decode_segment(segment: str) -> bytes | None:
    """Decodes canonical base64url, which has no padding and no spare bits (RFC 4648 section 3.5)."""
    rest = len(segment) % 4
    # These three characters belong to base64 and not to base64url. `a2b_base64` would accept them.
    if segment[-1:] not in _LAST[rest] or "+" in segment or "/" in segment or "=" in segment:
        return None
    try:
        return a2b_base64(segment.replace("-", "+").replace("_", "/") + _PADDING[rest], strict_mode=True)
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

    Returns None for anything else, and for an object with a duplicate member (RFC 7519 section 4), an unpaired
    surrogate (RFC 7493 section 2.1), or deeper nesting than MAX_DEPTH.
    """
    text = text.strip(_SPACE)
    if text[:1] != "{":
        return None
    is_nested = text.find("{", 1) > 0 or "[" in text
    if is_nested and text.count("{") + text.count("[") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        return None
    decoder = _SHORT_DECODER if len(text) < _MAX_DIGITS else _DECODER
    try:
        value: dict[str, Any]
        value, end = decoder.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    if end != len(text):
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


#: The decoder of short texts, whose whole numbers have too few digits for `int` to refuse them. It is faster.
_SHORT_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_reject)
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


def to_double(number: int | float) -> float:
    """Returns the number as a 64-bit float, as JSON parsers of other languages do: one that is out of range is infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def time_of(value: Any) -> float | None:
    """Returns a time in seconds since the epoch; None for values that are not finite numbers."""
    kind = type(value)  # `isinstance` is not used, because True is an instance of int
    try:
        seconds: float = float(value) if kind is int else value
    except OverflowError:
        return None
    return seconds if kind is int or (kind is float and math.isfinite(seconds)) else None
