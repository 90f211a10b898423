"""The window and its panels, one file each."""
