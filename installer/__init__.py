"""Makes the project's own Python environment and starts what is in it. Standard library only."""
