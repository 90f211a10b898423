"""Check Ignis Desktop: lint, format, types, import rules and tests. With ARGUMENTS, run pytest alone with them.

python3 installer/test.py [--install-only] [ARGUMENTS OF pytest]
"""

import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from installer import guard  # noqa: E402 - the project root must be on the path first

if __name__ == "__main__":
    guard.check()
    from installer import start

    sys.exit(start.test(sys.argv[1:]))
