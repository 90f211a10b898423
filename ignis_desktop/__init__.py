"""Ignis Desktop: window, local server and command line around the engine."""
