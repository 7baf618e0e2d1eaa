"""A network between a program and the API server that can be cut, between two messages or in the middle of one."""

from __future__ import annotations

import contextlib
import socket
import threading


class BadNetwork:
    """Forwards connections to a port of this machine; `with` opens and closes it."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._torn: set[socket.socket] = set()
        self._flows = threading.Event()
        self._flows.set()
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> BadNetwork:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self._threads[0].join()
        self.let_go()
        self.cut()
        for thread in self._threads[1:]:
            thread.join()

    def cut(self) -> None:
        """End every connection now."""
        with self._lock:
            for end in self._open:
                _shut(end)

    def tear(self) -> None:
        """End every connection that is open now in the middle of the next thing that comes from the server."""
        with self._lock:
            self._torn |= self._open

    def hold(self) -> None:
        """Deliver nothing until `let_go`; connections stay, and new ones are accepted."""
        self._flows.clear()

    def let_go(self) -> None:
        self._flows.set()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                near.close()
                continue
            with self._lock:
                self._open |= {near, far}
            thread = threading.Thread(target=self._carry, args=(near, far))
            self._threads.append(thread)
            thread.start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        """Both directions, until either end closes."""
        upstream = threading.Thread(target=self._pump, args=(near, far))
        upstream.start()
        self._pump(far, near)
        upstream.join()
        with self._lock:
            self._open -= {near, far}
            self._torn -= {near, far}
        near.close()
        far.close()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(65536):
                self._flows.wait()
                if sink in self._torn and source in self._torn:
                    sink.sendall(chunk[: len(chunk) // 2])
                    break
                sink.sendall(chunk)
        _shut(source)
        _shut(sink)


def _shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
