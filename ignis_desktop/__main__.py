"""``python -m ignis_desktop`` is ``ignis``."""

from ignis_desktop.cli import main

if __name__ == "__main__":
    main()
