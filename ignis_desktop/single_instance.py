"""One window a user: a second start brings the first window to the front."""

from __future__ import annotations

import hashlib

from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from ignis_desktop.store.paths import data_dir

_ANSWER_MS = 500


def _name() -> str:
    # Windows that keep their files in different places do not exclude each other.
    return "ignis-desktop-" + hashlib.blake2b(str(data_dir()).encode(), digest_size=8).hexdigest()


def raise_running_window() -> bool:
    """Asks a window that is open already to come to the front; False when there is none."""
    socket = QLocalSocket()
    socket.connectToServer(_name())
    if not socket.waitForConnected(_ANSWER_MS):
        return False
    socket.write(b"raise\n")
    socket.waitForBytesWritten(_ANSWER_MS)
    socket.disconnectFromServer()
    return True


class RaiseListener(QObject):
    """Makes this process the one window; ``raise_wanted`` comes for every further start."""

    raise_wanted = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        QLocalServer.removeServer(_name())  # what a crashed window left behind
        self._server.listen(_name())
        self._server.newConnection.connect(self._on_connection)

    def close(self) -> None:
        self._server.close()

    def _on_connection(self) -> None:
        while (socket := self._server.nextPendingConnection()) is not None:
            socket.disconnected.connect(socket.deleteLater)
            self.raise_wanted.emit()
