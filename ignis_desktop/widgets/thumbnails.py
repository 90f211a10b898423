"""Small pictures of attached images, decoded outside the window's thread and kept while the program runs."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QObject, QRunnable, QSize, Qt, QThreadPool, Signal
from PySide6.QtGui import QImage, QImageReader, QPixmap

SIDE = 96
"""Logical pixels of the longer side."""
_DEVICE_SIDE = SIDE * 2
_KEPT = 512


class Thumbnails(QObject):
    """``get`` answers at once when it can; otherwise ``ready`` comes with the key when the picture is there."""

    ready = Signal(bytes)
    _decoded = Signal(bytes, QImage)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._kept: OrderedDict[bytes, QPixmap] = OrderedDict()
        self._asked: set[bytes] = set()
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(1)
        self._decoded.connect(self._keep)

    def get(self, data: bytes) -> tuple[bytes, QPixmap | None]:
        """Key of an encoded picture and its thumbnail, None while it is being decoded (null if it cannot be)."""
        key = hashlib.blake2b(data, digest_size=16).digest()
        found = self._kept.get(key)
        if found is None and key not in self._asked:
            self._asked.add(key)
            self._pool.start(_Decode(self, key, data))
        return key, found

    def close(self) -> None:
        self._pool.clear()
        self._pool.waitForDone()

    def _keep(self, key: bytes, image: QImage) -> None:
        self._asked.discard(key)
        thumbnail = QPixmap.fromImage(image)
        thumbnail.setDevicePixelRatio(2.0)
        self._kept[key] = thumbnail
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        self.ready.emit(key)


class _Decode(QRunnable):
    def __init__(self, owner: Thumbnails, key: bytes, data: bytes) -> None:
        super().__init__()
        self._owner, self._key, self._data = owner, key, data

    def run(self) -> None:
        buffer = QBuffer()
        buffer.setData(QByteArray(self._data))
        buffer.open(QIODevice.OpenModeFlag.ReadOnly)
        reader = QImageReader(buffer)
        reader.setAutoTransform(True)
        size = reader.size()
        if size.isValid():
            reader.setScaledSize(size.scaled(QSize(_DEVICE_SIDE, _DEVICE_SIDE), Qt.AspectRatioMode.KeepAspectRatio))
        self._owner._decoded.emit(self._key, reader.read())


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
