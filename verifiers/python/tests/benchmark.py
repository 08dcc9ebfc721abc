"""Measures verification beside the bare signature check of `cryptography`: python3 tests/benchmark.py

Other processes slow down both, by an amount that changes within milliseconds. So both run in short turns, one after the other, and the
medians of their processor time are compared: over all turns, and over those that were disturbed least.
"""

import json
import statistics
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from session_verifier import Verifier  # noqa: E402
from test_verifier import FIRST, options  # noqa: E402
from vectors import Network  # noqa: E402

TURNS, CALLS = 300, 10


class Algorithm(NamedTuple):
    jwk: dict[str, str]
    #: Returns the signature in two forms: that of `cryptography` (DER, for ES256), and that of tokens.
    sign: Callable[[bytes], tuple[bytes, bytes]]
    #: Checks a signature in the form of `cryptography`.
    check: Callable[[bytes, bytes], None]


def encode(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def es256() -> Algorithm:
    private = ec.generate_private_key(ec.SECP256R1())
    public = private.public_key()
    point = public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def sign(content: bytes) -> tuple[bytes, bytes]:
        signature = private.sign(content, ec.ECDSA(SHA256()))
        r, s = decode_dss_signature(signature)
        return signature, r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def check(signature: bytes, content: bytes) -> None:
        public.verify(signature, content, ec.ECDSA(SHA256()))

    return Algorithm({"kty": "EC", "crv": "P-256", "x": encode(point[1:33]), "y": encode(point[33:])}, sign, check)


def eddsa() -> Algorithm:
    private = ed25519.Ed25519PrivateKey.generate()
    public = private.public_key()

    def sign(content: bytes) -> tuple[bytes, bytes]:
        signature = private.sign(content)
        return signature, signature

    x = encode(public.public_bytes(Encoding.Raw, PublicFormat.Raw))
    return Algorithm({"kty": "OKP", "crv": "Ed25519", "x": x}, sign, public.verify)


def cost_of(call: Callable[[Any], object], of: Iterable[Any]) -> float:
    """Returns the processor time of a call in this thread, in µs."""
    start = time.thread_time_ns()
    for each in of:
        call(each)
    return (time.thread_time_ns() - start) / CALLS / 1e3


def main() -> None:
    for alg, create in (("ES256", es256), ("EdDSA", eddsa)):
        jwk, sign, check = create()
        verifier = Verifier(**{**options(), "transport": Network({"keys": [{**jwk, "kid": alg}]})})
        verifier.wait_until_ready()

        def signed(number: int) -> tuple[str, tuple[bytes, bytes]]:
            """Returns a new token, and the arguments of the bare check of its signature."""
            header = encode(json.dumps({"typ": "at+jwt", "alg": alg, "kid": alg}).encode())
            content = f"{header}.{encode(json.dumps({**FIRST['claims'], 'jti': f'token {number}'}).encode())}"
            signature, segment = sign(content.encode())
            return f"{content}.{encode(segment)}", (signature, content.encode())

        def verify(text: str) -> None:
            assert verifier.verify(text).ok

        def bare(given: tuple[bytes, bytes]) -> None:
            check(*given)

        turns = []
        for turn in range(TURNS):
            tokens, contents = zip(*(signed(turn * CALLS + number) for number in range(CALLS)), strict=True)
            turns.append((cost_of(bare, contents), cost_of(verify, tokens), cost_of(verify, tokens)))
        for name, some in (("all turns", turns), ("the quietest tenth", sorted(turns, key=sum)[: TURNS // 10])):
            bare_us, fresh_us, cached_us = (statistics.median(each) for each in zip(*some, strict=True))
            ratio = bare_us / fresh_us
            print(f"{alg}, {name}: bare {bare_us:.1f} µs, verified {fresh_us:.1f} µs ({ratio:.2f}), cached {cached_us:.2f} µs")
        verifier.close()


main()
