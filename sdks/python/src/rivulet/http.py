"""HTTP with the standard library alone: blocking connections that are kept open, one for each thread, awaited from asyncio."""
from __future__ import annotations

import asyncio
import http.client
import json
import random
import socket
import ssl
import threading
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Mapping

from .errors import RivuletError

Headers = Mapping[str, str]
retried = frozenset({408, 429})


class Http:
    """Calls below one URL. A call that gets no reply, 429 or 5xx is repeated, because every call of Rivulet can be repeated."""

    def __init__(self, url: str, key: str | None, threads: int = 64) -> None:
        self._url = urllib.parse.urlsplit(url)
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="rivulet")
        self._local = threading.local()
        self._open: set[http.client.HTTPConnection] = set()
        self._closed = False

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
            except (OSError, http.client.HTTPException):
                if self._closed:
                    raise
            else:
                if status < 400:
                    return status, found, reply
                if status < 500 and status not in retried:
                    raise error_of(status, reply)
            attempt += 1
            await asyncio.sleep(min(2, 0.1 * 2**attempt) * random.uniform(0.8, 1.2))

    async def stream(self, method: str, path: str, content: bytes | None, headers: Headers) -> http.client.HTTPResponse:
        """A response that is read line by line. It has a connection of its own, which its reader closes."""
        response = await self._in_thread(self._begin, self._connect(None), method, path, content, headers)
        if response.status >= 400:
            reply = await self._in_thread(response.read)
            response.close()
            raise error_of(response.status, reply)
        return response

    async def read_line(self, response: http.client.HTTPResponse) -> bytes:
        return await self._in_thread(response.readline)

    def close(self) -> None:
        """Ends the calls that are under way."""
        self._closed = True
        for connection in list(self._open):
            if connection.sock is not None:
                try:
                    connection.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
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
        connection = getattr(self._local, "connection", None) or self._connect(timeout)
        self._local.connection = connection
        self._open.add(connection)
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            response = self._begin(connection, method, path, content, headers)
            return response.status, response.headers, response.read()
        except BaseException:
            connection.close()
            self._open.discard(connection)
            self._local.connection = None
            raise


def error_of(status: int, reply: bytes) -> RivuletError:
    try:
        error = json.loads(reply)["error"]
        return RivuletError(error["code"], error["message"], status)
    except (ValueError, KeyError, TypeError):
        return RivuletError("internal", f"The API returned {status}", status)
