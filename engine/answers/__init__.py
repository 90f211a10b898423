"""Answers without generating: lines of a text and places on a screen, read from attention heads."""
