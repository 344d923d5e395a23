"""`kryograph` and `python -m kryograph`."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        # Some seconds, in which a person may already want to stop it.
        from kryograph.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
