"""Texts as they are given, folded into templates: the side of locating that needs no model."""
