"""Calls over TLS."""

import datetime
import http.server
import ipaddress
import ssl
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from session_verifier._http import HttpTransport


def write_certificate(path: str) -> None:
    """Writes a certificate of 127.0.0.1 that has signed itself, and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.timezone.utc)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(1)).not_valid_after(now + datetime.timedelta(1))
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = builder.add_extension(x509.SubjectAlternativeName([address]), False).sign(key, SHA256())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    Path(path).write_bytes(certificate.public_bytes(Encoding.PEM) + private)


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


class TlsTest(unittest.TestCase):
    def test_the_public_authorities_are_read_once(self) -> None:
        with tempfile.NamedTemporaryFile() as file:
            write_certificate(file.name)
            served, authorities = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=file.name)
            served.load_cert_chain(file.name)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello)
        self.addCleanup(server.server_close)
        server.socket = served.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        url, transport = f"https://127.0.0.1:{server.server_address[1]}/", HttpTransport(None)
        with mock.patch("ssl.create_default_context", return_value=authorities) as read:
            for _ in range(3):
                response = transport.request("GET", url, {}, None, time.monotonic() + 10)
                self.assertEqual(response.status, 200)
                response.close()
        read.assert_called_once()


if __name__ == "__main__":
    unittest.main()
