"""Small pictures of attached images, decoded outside the window's thread and kept while the program runs."""

from __future__ import annotations

from collections import OrderedDict

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QObject, QRunnable, QSize, Qt, QThreadPool, Signal
from PySide6.QtGui import QImage, QImageReader, QPixmap

SIDE = 96
"""Logical pixels of the longer side."""
_DEVICE_SIDE = SIDE * 2
_KEPT = 128


class Thumbnails(QObject):
    """``get`` answers at once when it can; otherwise ``ready`` comes with the same bytes when the picture is there.

    Pictures are told apart by their bytes, whose hash Python computes once.
    """

    ready = Signal(object)
    _decoded = Signal(object, QImage)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._kept: OrderedDict[bytes, QPixmap] = OrderedDict()
        self._asked: set[bytes] = set()
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(1)
        self._decoded.connect(self._keep)

    def get(self, data: bytes) -> QPixmap | None:
        """The thumbnail of an encoded picture; None while it is being decoded, a null pixmap if it cannot be."""
        found = self._kept.get(data)
        if found is None and data not in self._asked:
            self._asked.add(data)
            self._pool.start(_Decode(self, data))
        return found

    def close(self) -> None:
        self._pool.clear()
        self._pool.waitForDone()

    def _keep(self, data: bytes, image: QImage) -> None:
        self._asked.discard(data)
        thumbnail = QPixmap.fromImage(image)
        thumbnail.setDevicePixelRatio(2.0)
        self._kept[data] = thumbnail
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        self.ready.emit(data)


class _Decode(QRunnable):
    def __init__(self, owner: Thumbnails, data: bytes) -> None:
        super().__init__()
        self._owner, self._data = owner, data

    def run(self) -> None:
        buffer = QBuffer()
        buffer.setData(QByteArray(self._data))
        buffer.open(QIODevice.OpenModeFlag.ReadOnly)
        reader = QImageReader(buffer)
        reader.setAutoTransform(True)
        size = reader.size()
        if size.isValid():
            reader.setScaledSize(size.scaled(QSize(_DEVICE_SIDE, _DEVICE_SIDE), Qt.AspectRatioMode.KeepAspectRatio))
        self._owner._decoded.emit(self._data, reader.read())


class _Shared:
    instance: Thumbnails | None = None


def shared() -> Thumbnails:
    """The one cache of the process."""
    if _Shared.instance is None:
        _Shared.instance = Thumbnails()
    return _Shared.instance


def close_shared() -> None:
    """Ends the decoding thread; the next ``shared`` starts anew."""
    if _Shared.instance is not None:
        _Shared.instance.close()
        _Shared.instance = None
