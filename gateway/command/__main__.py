"""``python -m gateway.command`` is ``eventlog``."""

from gateway.command import main

main()
