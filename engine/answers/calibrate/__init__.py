"""Choosing the heads of a loaded model that point and locate: ``ignis calibrate``."""

from engine.answers.calibrate.choose import Figures
from engine.answers.calibrate.run import Calibration, calibrate
from engine.answers.calibrate.write import heads_file, write_heads

__all__ = ["Calibration", "Figures", "calibrate", "heads_file", "write_heads"]
