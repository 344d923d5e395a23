"""Entry point of `kryograph` and of `python -m kryograph`."""

import sys

try:
    from kryograph.cli import main
except KeyboardInterrupt:  # Ctrl-C in the fraction of a second that the import takes
    sys.exit(130)

if __name__ == "__main__":
    main()
