"""Reusable pieces of the window. None of them knows the engine."""
