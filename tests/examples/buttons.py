"""A program with buttons. Prints "shown" when it is, and the name of each button that is pressed."""

from __future__ import annotations

import sys

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QGridLayout, QLineEdit, QPushButton, QWidget

NAMES = ("Save", "Print", "Cancel", "Delete", "Help", "Search")


def main() -> int:
    app = QApplication(sys.argv)
    window = QWidget()
    window.setWindowTitle("Buttons")
    window.setGeometry(120, 80, 640, 320)
    layout = QGridLayout(window)
    layout.setSpacing(24)
    layout.setContentsMargins(32, 32, 32, 32)
    layout.addWidget(QLineEdit("Quarterly report"), 0, 0, 1, 3)
    for index, name in enumerate(NAMES):
        button = QPushButton(name)
        button.setMinimumHeight(44)
        button.clicked.connect(lambda _checked=False, name=name: print(name, flush=True))
        layout.addWidget(button, 1 + index // 3, index % 3)
    window.show()
    QTimer.singleShot(300, lambda: print("shown", flush=True))
    return app.exec()


if __name__ == "__main__":
    sys.exit(main())
