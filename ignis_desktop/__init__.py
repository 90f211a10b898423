"""Ignis Desktop: window, local server and command line around the engine."""

__version__ = "0.1.0"
