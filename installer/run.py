"""Start Ignis Desktop, installing it into the project's own .venv first when needed.

python3 installer/run.py [--install-only] [ARGUMENTS OF ignis]
"""

import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from installer import guard  # noqa: E402 - the project root must be on the path first

if __name__ == "__main__":
    guard.check()
    from installer import start

    sys.exit(start.run(sys.argv[1:]))
