"""`python -m kryograph`."""

from kryograph.cli import main

main()
