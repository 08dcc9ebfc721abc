"""An HTTP client on the standard library. Each request has its own connection and one deadline for all of its steps."""

# `getaddrinfo` would import it in a thread. A process that is forked meanwhile could never import it, and so connect to nothing.
import encodings.idna  # noqa: F401
import http.client
import io
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit


class Response(Protocol):
    """A response whose body is read piece by piece."""

    status: int

    def header(self, name: str) -> str | None: ...

    def read(self, size: int, deadline: float) -> bytes:
        """Returns up to `size` bytes as soon as some arrive; no bytes at the end. Raises OSError, for the deadline TimeoutError.

        `deadline` is a time of `time.monotonic`.
        """

    def close(self) -> None:
        """Closes the response. If another thread is waiting in `read`, that call ends."""


class Transport(Protocol):
    """Makes requests. An application may implement it, for example to use a proxy."""

    def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, deadline: float
    ) -> Response:
        """Returns the response as soon as its head has arrived. Raises OSError or http.client.HTTPException.

        The deadline bounds everything except the resolution of the host name by the system.
        """


class _Socket:
    """The part of a socket that http.client uses. One deadline bounds all operations together."""

    def __init__(self, connected: socket.socket, deadline: float) -> None:
        self.connected = connected
        self.deadline = deadline

    def sendall(self, content: bytes) -> None:
        _bound(self.connected, self.deadline)
        self.connected.sendall(content)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self))

    def close(self) -> None:
        """Does nothing, because http.client closes a socket before the response has been read. `HttpResponse` closes it."""


class _Reader(io.RawIOBase):
    def __init__(self, source: _Socket) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        _bound(self._source.connected, self._source.deadline)
        try:
            return self._source.connected.recv_into(buffer)
        except (BlockingIOError, ssl.SSLWantReadError):
            raise TimeoutError("timed out") from None


def _bound(connected: socket.socket, deadline: float) -> None:
    # After the deadline the timeout is 0, so bytes that have arrived are still read: this process may have been stopped.
    connected.settimeout(max(0.0, deadline - time.monotonic()))


class HttpResponse:
    def __init__(self, used: _Socket, response: http.client.HTTPResponse) -> None:
        self._socket = used
        self._response = response
        self.status = response.status

    def header(self, name: str) -> str | None:
        return self._response.getheader(name)

    def read(self, size: int, deadline: float) -> bytes:
        self._socket.deadline = deadline
        return self._response.read1(size)

    def close(self) -> None:
        try:
            self._socket.connected.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the connection is closed already
        self._socket.connected.close()

    def leave(self) -> None:
        """Closes this process's copy of the connection, which goes on in the process that was forked."""
        self._socket.connected.close()


class HttpTransport:
    def __init__(self, ssl_context: ssl.SSLContext | None) -> None:
        self._ssl_context = ssl_context

    def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, deadline: float
    ) -> Response:
        parts = urlsplit(url)
        host, is_secure = parts.hostname or "", parts.scheme == "https"
        port = parts.port or (443 if is_secure else 80)
        connected = _connect(host, port, deadline)
        try:
            if is_secure:
                _bound(connected, deadline)
                # It reads the certificates of all public authorities, which takes longer than a call.
                self._ssl_context = self._ssl_context or ssl.create_default_context()
                connected = self._ssl_context.wrap_socket(connected, server_hostname=host)
            connection = http.client.HTTPConnection(host, port)
            used = connection.sock = _Socket(connected, deadline)
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request(method, path, body, {"host": parts.netloc.rpartition("@")[2], **headers})
            return HttpResponse(used, connection.getresponse())
        except BaseException:
            connected.close()
            raise


def _connect(host: str, port: int, deadline: float) -> socket.socket:
    """Connects to the first address that accepts. Each gets a share of the time, because an address may never respond."""
    failure: OSError = ConnectionError(f"{host} has no address")
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for at, (family, kind, protocol, _, address) in enumerate(addresses):
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("timed out")
        connected = socket.socket(family, kind, protocol)
        try:
            connected.settimeout(remaining / (len(addresses) - at))
            connected.connect(address)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connected
        except OSError as error:
            connected.close()
            failure = error
    raise failure
