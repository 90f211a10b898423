"""Says in a sentence why this machine cannot run Ignis. Parses on every Python since 2.7: it must run to refuse."""

import sys

OLDEST = (3, 11)
TOO_NEW = (3, 15)


def refusal(version, platform):
    """The sentence to refuse with, or None. ``version`` is sys.version_info, ``platform`` is sys.platform."""
    if platform == "darwin":
        return "Ignis Desktop runs on Linux and Windows; macOS is not supported."
    found = "%d.%d" % (version[0], version[1])
    if tuple(version[:2]) < OLDEST:
        return (
            "Ignis Desktop needs Python 3.11 or newer, and this is Python %s. "
            "Install a newer one and start again with it, e.g. python3.12 installer/run.py" % found
        )
    if tuple(version[:2]) >= TOO_NEW:
        return (
            "Ignis Desktop is pinned to a PyTorch release that has no build for Python %s. "
            "Start again with Python 3.11 to 3.14, e.g. python3.14 installer/run.py" % found
        )
    return None


def check():
    """Exit with 2 and a sentence on standard error unless this Python and system will do."""
    sentence = refusal(sys.version_info, sys.platform)
    if sentence is not None:
        sys.stderr.write(sentence + "\n")
        sys.exit(2)
