"""Entry point of `kryograph` and of `python -m kryograph`."""

import os
import sys

# Threads that wait for work spin for a moment only, because another program may need their core.
# OpenMP reads these variables when torch is imported; those of the user have precedence.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # GNU: a tenth of a millisecond, not ten
    os.environ.setdefault("KMP_BLOCKTIME", "1")  # Intel and LLVM: one millisecond, not 200

try:
    from kryograph.cli import main
except KeyboardInterrupt:  # Ctrl-C in the fraction of a second that the import takes
    sys.exit(130)

if __name__ == "__main__":
    main()
