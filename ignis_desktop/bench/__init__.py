"""``ignis bench``: what the program does under load and how fast it is, measured from outside.

Nothing here runs in the interpreter of the engine that it measures: a load generator's own work would show in the
figures.
"""
