"""Processes that keep live shards, beside Spark's Python workers.

Spark gives a shard's task to any of its Python workers, so that a session which lives in one of them would mostly be
in the wrong one. Therefore sessions live in a few processes of their own, one for each core, and the workers send them
what comes in. Each shard has its place in one of them. They are started by the first worker that needs them, and end
with the process that started the workers. Losing one costs nothing but time: sessions are made again from the state.

Nothing that ``import cepheid.spark`` imports may import this module, or Python says so when a process is started.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from cepheid.language.problems import CepheidError
from cepheid.spark.keeper import Keeper, Keeping
from cepheid.spark.said import SAID

READY, TAKEN = b"ready\n", b"taken\n"
ATTEMPTS = 5
PATIENCE = 60.0
"""Seconds that a process has to end once it has let go of its connections."""


class HostError(RuntimeError):
    """A process for shards did not start, or an error in it."""


class LostError(CepheidError, HostError):
    """A process for shards has ended before it answered. Nobody has its shards now; they can be made again."""


class _Remote:
    """A keeper in another process, with this number."""

    def __init__(self, connection: Connection, process: int) -> None:
        self._connection = connection
        self._process = process

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            try:
                self._connection.send((name, arguments))
                done, result = self._connection.recv()
            except (EOFError, ConnectionError):
                _await_end(self._process)
                raise LostError("a process that keeps shards has ended in the midst of its work") from None
            if done:
                return result
            raise result if isinstance(result, SAID) else HostError(result)

        return call


@contextmanager
def keeper_of(shard: int, hosts: int) -> Iterator[Keeping]:
    """The keeper of a shard, one of some on this machine."""
    parent = os.getppid()
    name = _address(parent, shard % hosts)
    connection = _connected(name)
    for _ in range(ATTEMPTS):
        if connection is not None:
            break
        _start(name, parent)
        connection = _connected(name)
    if connection is None:
        raise HostError(f"the process that keeps shard {shard} does not answer")
    with connection:
        yield _Remote(connection, _process_of(connection))


def hosts_here(wanted: int | None) -> int:
    """How many processes keep shards on the machine that this runs on: a worker's, which need not be the driver's.

    They find each other as Linux lets them; elsewhere there are none, and shards live in the workers.
    """
    if sys.platform != "linux":
        return 0
    return (os.cpu_count() or 1) if wanted is None else wanted


def _address(parent: int, number: int) -> str:
    """A name that no other user, no other Spark and no later process with the same number has."""
    return f"\0cepheid/{os.getuid()}/{parent}-{_start_time(parent)}/{number}"


def _start_time(process: int) -> str:
    """When a process was started, in ticks of the system's clock."""
    status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    return status.rpartition(")")[2].split()[19]


def _connected(name: str) -> Connection | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(name)
        except ConnectionRefusedError:
            return None
        if _user_of(client) != os.getuid():
            raise HostError("the process that keeps shards is another user's")
        return Connection(client.detach())


def _await_end(process: int) -> None:
    """Until then, it can still be connected to, and what it has counted is not gone."""
    try:
        ended = os.pidfd_open(process)  # can be read when the process has ended
    except ProcessLookupError:
        return
    ready, _, _ = select.select([ended], [], [], PATIENCE)
    os.close(ended)
    if not ready:
        raise HostError("the process that keeps shards does not answer any more, and does not end")


def _process_of(connection: Connection) -> int:
    with socket.socket(fileno=os.dup(connection.fileno())) as peer:
        return _credentials(peer)[0]


def _user_of(peer: socket.socket) -> int:
    return _credentials(peer)[1]


def _credentials(peer: socket.socket) -> tuple[int, int, int]:
    """The numbers of its process, user and group."""
    size = struct.calcsize("3i")
    process, user, group = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return process, user, group


def _start(name: str, parent: int) -> None:
    """Start a process, and wait until it, or another one that was quicker, listens."""
    command = [sys.executable, "-m", "cepheid.spark.host", name[1:], str(parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment)
    _started.append(process)
    assert process.stdout is not None
    with process.stdout as output:
        said = output.readline()
    if said not in (READY, TAKEN):
        raise HostError(
            f"no process for shards could be started: {' '.join(command)}. See what it wrote to the standard error of "
            "the executor. To do without such processes, which is slower: set spark.cepheid.hosts to 0."
        )


_started: list[subprocess.Popen[bytes]] = []
"""They outlive whoever started them; those that do not are waited for here when the next one is started."""


# --- the process itself


def main(name: str, parent: int) -> None:
    """Serve until the parent of the workers is gone."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        server.bind(f"\0{name}")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        _say(TAKEN)
        return
    server.listen(128)
    gone = os.pidfd_open(parent)  # can be read when the process has ended
    _say(READY)
    keeper = Keeper()
    while True:
        ready, _, _ = select.select([server.fileno(), gone], [], [])
        if gone in ready:
            return
        peer, _ = server.accept()
        if _user_of(peer) == os.getuid():
            with Connection(peer.detach()) as connection:
                _serve(connection, keeper)
        else:
            peer.close()


def _say(word: bytes) -> None:
    os.write(1, word)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)


def _serve(connection: Connection, keeper: Keeper) -> None:
    """Answer one worker. Its errors are its own: the next one is served all the same."""
    while True:
        try:
            name, arguments = connection.recv()
        except (EOFError, ConnectionError):
            return
        try:
            answer = (True, getattr(keeper, name)(*arguments))
        except SAID as error:
            answer = (False, error)
        except Exception:
            answer = (False, traceback.format_exc())
        try:
            connection.send(answer)
        except ConnectionError:
            return


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
