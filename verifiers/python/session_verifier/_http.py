"""HTTP by the standard library: one request, one connection."""

import http.client
import socket
import ssl
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit


class Response(Protocol):
    """A response whose body is read piece by piece."""

    status: int

    def header(self, name: str) -> str | None: ...

    def read(self, size: int) -> bytes:
        """Returns up to `size` bytes as they arrive; none at the end. Raises OSError, also when nothing comes in time."""

    def close(self) -> None:
        """May be called from another thread, whose `read` then ends."""


class Transport(Protocol):
    """Makes requests. Another one may go through a proxy."""

    def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Response:
        """Returns the response. `timeout` bounds each wait, in seconds. Raises OSError or http.client.HTTPException."""


class _HttpResponse:
    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response
        # The connection gives its socket away where the response ends with it.
        self._socket = connection.sock
        self.status = response.status

    def header(self, name: str) -> str | None:
        return self._response.getheader(name)

    def read(self, size: int) -> bytes:
        return self._response.read1(size)

    def close(self) -> None:
        try:
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is closed
        self._connection.close()


class HttpTransport:
    def __init__(self, ssl_context: ssl.SSLContext | None) -> None:
        self._ssl_context = ssl_context

    def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Response:
        parts = urlsplit(url)
        host = parts.hostname or ""
        connection = (
            http.client.HTTPSConnection(host, parts.port, timeout=timeout, context=self._ssl_context)
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, parts.port, timeout=timeout)
        )
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.request(method, path, body, dict(headers))
            return _HttpResponse(connection, connection.getresponse())
        except BaseException:
            connection.close()
            raise
