"""Parses what two parsers must not read differently."""

import json
import math
import re
from binascii import a2b_base64
from typing import Any, NoReturn

#: Parsers in other languages have limits of their own. This one is the same in all verifiers.
MAX_DEPTH = 128

_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") | {""}
#: By the number of characters beyond the last group of four: the padding, and the characters without spare bits. One is never left.
_PADDING = ("", "", "==", "=")
_LAST = (_ALPHABET, frozenset[str](), frozenset("AQgw"), frozenset("AEIMQUYcgkosw048"))

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
#: A whole number of fewer digits is an int without a loss. Python converts any number of them (`sys.int_info`).
_MAX_DIGITS = 640
#: Around the object. Python's own `strip` removes more than JSON allows.
_SPACE = " \t\n\r"


def decode_segment(segment: str) -> bytes | None:
    """Decodes canonical base64url: alphabet, no padding, no spare bits (RFC 4648 section 3.5)."""
    rest = len(segment) % 4
    # What means something in base64 means nothing in base64url.
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

    None for anything else, and for an object with a duplicate member (RFC 7519 section 4), an unpaired surrogate
    (RFC 7493 section 2.1), or deeper nesting than MAX_DEPTH.
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


#: Of texts that are too short for a whole number that `int` refuses. Most tokens have one, and it is faster.
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
    """Returns the number as every JSON parser with 64-bit floating point reads it: 1e999 and its digits are infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def time_of(value: Any) -> float | None:
    """Returns a time in seconds since the epoch; None for anything else, such as 1e999, which is infinite."""
    kind = type(value)  # that of JSON is never another one
    try:
        seconds: float = float(value) if kind is int else value
    except OverflowError:
        return None
    return seconds if kind is int or (kind is float and math.isfinite(seconds)) else None
