"""Measures verification beside the bare signature check: python3 tests/benchmark.py

What other processes do slows both of them, and changes within milliseconds: short turns alternate, and medians of the processor's time
are compared.
"""

import json
import statistics
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from session_verifier import Verifier  # noqa: E402
from session_verifier._key import import_key  # noqa: E402
from session_verifier._strict_json import decode_segment  # noqa: E402
from test_verifier import FIRST, options  # noqa: E402
from vectors import Network  # noqa: E402

TURNS, CALLS = 300, 10


def encode(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def es256() -> tuple[dict[str, str], Callable[[bytes], bytes]]:
    private = ec.generate_private_key(ec.SECP256R1())
    point = private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def sign(content: bytes) -> bytes:
        r, s = decode_dss_signature(private.sign(content, ec.ECDSA(SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    return {"kty": "EC", "crv": "P-256", "x": encode(point[1:33]), "y": encode(point[33:])}, sign


def eddsa() -> tuple[dict[str, str], Callable[[bytes], bytes]]:
    private = ed25519.Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return {"kty": "OKP", "crv": "Ed25519", "x": encode(public)}, private.sign


def cost_of(call: Callable[[Any], object], of: Iterable[Any]) -> float:
    """Processor time of a call in this thread, in µs."""
    start = time.thread_time_ns()
    for each in of:
        call(each)
    return (time.thread_time_ns() - start) / CALLS / 1e3


def main() -> None:
    for alg, create in (("ES256", es256), ("EdDSA", eddsa)):
        jwk, sign = create()
        jwk["kid"] = alg
        imported = import_key(jwk)
        assert imported is not None
        check = imported.verifies
        verifier = Verifier(**{**options(), "transport": Network({"keys": [jwk]})})
        verifier.wait_until_ready()

        def token(number: int) -> str:
            """Returns a token that has never been seen."""
            header = encode(json.dumps({"typ": "at+jwt", "alg": alg, "kid": alg}).encode())
            content = f"{header}.{encode(json.dumps({**FIRST['claims'], 'jti': f'token {number}'}).encode())}"
            return f"{content}.{encode(sign(content.encode()))}"

        def parts(text: str) -> tuple[bytes, bytes]:
            content, _, segment = text.rpartition(".")
            return content.encode(), decode_segment(segment) or b""

        def verify(text: str) -> None:
            assert verifier.verify(text).ok

        def bare(signed: tuple[bytes, bytes]) -> None:
            assert check(*signed)

        turns = []
        for turn in range(TURNS):
            tokens = [token(turn * CALLS + number) for number in range(CALLS)]
            turns.append((cost_of(bare, [parts(each) for each in tokens]), cost_of(verify, tokens), cost_of(verify, tokens)))
        bare_us, fresh_us, cached_us = (statistics.median(each) for each in zip(*turns, strict=True))
        least = [min(each) for each in zip(*turns, strict=True)]
        print(
            f"{alg}: bare {bare_us:.1f} µs, verified {fresh_us:.1f} µs ({bare_us / fresh_us:.2f}), cached {cached_us:.2f} µs;"
            f" at best {least[0]:.1f}, {least[1]:.1f} ({least[0] / least[1]:.2f}), {least[2]:.2f}"
        )
        verifier.close()


main()
