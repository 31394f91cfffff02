"""HTTP with the standard library alone: blocking connections that are kept open, one for each thread, awaited from asyncio. A stream has its own thread and connection."""
from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import random
import socket
import ssl
import threading
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Mapping

from .errors import RivuletError

Headers = Mapping[str, str]
retried = frozenset({408, 429})
# The API sends a heartbeat into each stream far more often.
silence_seconds = 45


class Stream:
    """A response that is read line by line. To close it never waits: the thread that reads it closes the connection."""

    def __init__(self, connection: http.client.HTTPConnection, on_closed: Callable[[Stream], None]) -> None:
        self._connection = connection
        self._on_closed = on_closed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rivulet-stream")
        self._socket: socket.socket | None = None
        self._response: http.client.HTTPResponse | None = None
        self._is_closed = False

    async def begin(self, method: str, path: str, content: bytes | None, headers: Headers) -> http.client.HTTPResponse:
        return await self._in_thread(self._begin, method, path, content, headers)

    async def read_line(self) -> bytes:
        return await self._in_thread(self._response.readline if self._response else bytes)

    async def read(self) -> bytes:
        return await self._in_thread(self._response.read if self._response else bytes)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        cut(self._socket)
        self._thread.submit(self._end)
        self._thread.shutdown(wait=False)
        self._on_closed(self)

    def _in_thread(self, work: Any, *args: Any) -> Any:
        if self._is_closed:
            raise ConnectionError("The stream is closed")
        return asyncio.get_running_loop().run_in_executor(self._thread, work, *args)

    def _begin(self, method: str, path: str, content: bytes | None, headers: Headers) -> http.client.HTTPResponse:
        self._connection.connect()
        self._socket = self._connection.sock
        if self._is_closed:
            raise ConnectionError("The stream is closed")
        self._connection.request(method, path, content, dict(headers))
        self._response = self._connection.getresponse()
        return self._response

    def _end(self) -> None:
        if self._response is not None:
            self._response.close()
        self._connection.close()


class Http:
    """
    Calls below one URL. A call that gets no reply, 429 or 5xx is repeated, because every call of Rivulet can be repeated: for ever, or `retries` times.

    With a limit, a certificate that is not valid and a host without an address are final.
    """

    def __init__(
        self, url: str, key: str | None, threads: int = 64, retries: int | None = None, on_retry: Callable[[Exception], None] = lambda error: None
    ) -> None:
        self._url = urllib.parse.urlsplit(url)
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="rivulet")
        self._local = threading.local()
        self._open: set[http.client.HTTPConnection] = set()
        self._streams: set[Stream] = set()
        self._retries = retries
        self._on_retry = on_retry
        self.is_closed = False

    async def json(self, method: str, path: str, body: Any = None, headers: Headers = {}, timeout: float = 30) -> Any:
        content = None if body is None else json.dumps(body).encode()
        typed = {**headers, **({"content-type": "application/json"} if content is not None else {})}
        _, _, reply = await self.request(method, path, content, typed, timeout)
        return json.loads(reply) if reply else None

    async def request(
        self, method: str, path: str, content: bytes | None, headers: Headers = {}, timeout: float = 30
    ) -> tuple[int, Headers, bytes]:
        attempt = 0
        while True:
            try:
                status, found, reply = await self._in_thread(self._send, method, path, content, headers, timeout)
                if status < 400:
                    return status, found, reply
                raise error_of(status, reply, found)
            except (OSError, http.client.HTTPException, RivuletError) as error:
                attempt += 1
                if self.is_final(error, attempt):
                    raise
                self._on_retry(error)
                pause = max(min(2, 0.1 * 2**attempt) * random.uniform(0.8, 1.2), retry_after_of(error))
            await asyncio.sleep(pause)

    def is_final(self, error: Exception, attempt: int) -> bool:
        """Whether the call is not repeated after this failure of this attempt, the first being 1."""
        if isinstance(error, RivuletError) and (error.status is None or (error.status < 500 and error.status not in retried)):
            return True
        if self.is_closed or self._retries is None:
            return self.is_closed
        is_unknown_host = isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME
        return attempt > self._retries or is_unknown_host or isinstance(error, ssl.SSLCertVerificationError)

    async def stream(self, path: str, headers: Headers) -> tuple[int, Stream]:
        """The status, and a stream that its reader closes."""
        stream = Stream(self._connect(silence_seconds), self._streams.discard)
        self._streams.add(stream)
        try:
            response = await stream.begin("GET", self._url.path.rstrip("/") + path, None, {**self._headers, **headers})
            if response.status >= 400:
                raise error_of(response.status, await stream.read(), response.headers)
            return response.status, stream
        except BaseException:
            stream.close()
            raise

    def close(self) -> None:
        """Ends the calls and the streams that are under way."""
        self.is_closed = True
        for connection in list(self._open):
            cut(connection.sock)
        for stream in list(self._streams):
            stream.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _in_thread(self, work: Any, *args: Any) -> Any:
        return asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    def _connect(self, timeout: float | None) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "127.0.0.1", self._url.port
        if self._url.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=timeout, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=timeout)

    def _begin(self, connection: Any, method: str, path: str, content: bytes | None, headers: Headers) -> http.client.HTTPResponse:
        connection.request(method, self._url.path.rstrip("/") + path, content, {**self._headers, **headers})
        if connection.sock is not None:
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection.getresponse()

    def _send(self, method: str, path: str, content: bytes | None, headers: Headers, timeout: float) -> tuple[int, Headers, bytes]:
        connection = getattr(self._local, "connection", None)
        is_reused = connection is not None and connection.sock is not None
        connection = connection or self._connect(timeout)
        self._local.connection = connection
        self._open.add(connection)
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            try:
                response = self._begin(connection, method, path, content, headers)
            except (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
                # The API may close a connection while it is idle.
                if not is_reused or self.is_closed:
                    raise
                connection.close()
                connection.timeout = timeout
                response = self._begin(connection, method, path, content, headers)
            return response.status, response.headers, response.read()
        except BaseException:
            connection.close()
            self._open.discard(connection)
            self._local.connection = None
            raise


def cut(connected: socket.socket | None) -> None:
    """Wakes the thread that reads from the socket. It passes by TLS, whose state belongs to that thread."""
    if connected is not None:
        with contextlib.suppress(OSError):
            socket.socket.shutdown(connected, socket.SHUT_RDWR)


def retry_after_of(error: Exception) -> float:
    return error.retry_after if isinstance(error, RivuletError) else 0


def error_of(status: int, reply: bytes, headers: Headers) -> RivuletError:
    seconds = headers.get("retry-after") or ""
    retry_after = int(seconds) if seconds.isdecimal() else 0
    try:
        error = json.loads(reply)["error"]
        return RivuletError(error["code"], error["message"], status, retry_after)
    except (ValueError, KeyError, TypeError):
        return RivuletError("internal", f"The API returned {status}", status, retry_after)
