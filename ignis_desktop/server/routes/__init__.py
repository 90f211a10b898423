"""One file a family of routes; each has a ``router``."""
