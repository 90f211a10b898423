"""Pictures by file, paste and drop, the same wherever a picture may be given."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice, QMimeData, QObject, QRunnable, QThreadPool, Signal
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFileDialog, QWidget

from ignis_desktop.store.chats import Picture
from ignis_desktop.widgets.texts import tr

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp")
_FILE_LIMIT = 64 << 20
"""Bytes; a larger file is no picture that anybody wants to ask about."""


class PictureIntake(QObject):
    added = Signal(object)
    """``Picture``"""
    refused = Signal(str)
    """Why something was not taken, in one sentence."""

    def choose(self, over: QWidget) -> None:
        """Asks for files."""
        patterns = " ".join(f"*{suffix}" for suffix in IMAGE_SUFFIXES)
        names, _ = QFileDialog.getOpenFileNames(over, tr("chat.attach"), "", f"{tr('chat.images')} ({patterns})")
        self.add_files([Path(name) for name in names])

    def add_files(self, paths: list[Path]) -> None:
        for path in paths:
            try:
                if path.stat().st_size > _FILE_LIMIT:
                    self.refused.emit(tr("chat.image_too_large", name=path.name, limit=_FILE_LIMIT >> 20))
                    continue
                data = path.read_bytes()
            except OSError as error:
                self.refused.emit(tr("chat.image_unreadable", name=path.name, reason=error.strerror or str(error)))
                continue
            self.added.emit(Picture(path.name, data))

    def take(self, data: QMimeData) -> bool:
        """Adds the pictures in a paste or a drop; False when there are none."""
        files = local_files(data)
        images = [path for path in files if path.suffix.lower() in IMAGE_SUFFIXES]
        if images:
            self.add_files(images)
            return True
        if data.hasImage():
            image = data.imageData()
            if isinstance(image, QImage) and not image.isNull():
                QThreadPool.globalInstance().start(_Encode(self, image))
                return True
        return False


def local_files(data: QMimeData) -> list[Path]:
    return [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]


class _Encode(QRunnable):
    """Turns a pasted picture into a file; a large one would hold the window up."""

    def __init__(self, intake: PictureIntake, image: QImage) -> None:
        super().__init__()
        self._intake, self._image = intake, image

    def run(self) -> None:
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        self._image.save(buffer, "PNG")  # type: ignore[call-overload]  # takes a str, whatever its stub says
        self._intake.added.emit(Picture(tr("chat.pasted_name"), bytes(buffer.data().data())))
