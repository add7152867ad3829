"""A process that has everything imported and forks a projector for each order, so that hundreds cost little.

Each line of its input is an order. When the projector has ended it says the number of the signal
that ended it (0: none), its exit code, and how many seconds it worked. The work begins when the
log is open: what comes before is the same for all.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from typing import NoReturn

import anyio

from tests.projections.crashes.child import Order, work


def main() -> None:
    """Fork until the input ends."""
    print("ready", flush=True)
    for line in sys.stdin:
        order: Order = json.loads(line)
        heard, word = os.pipe()
        child = os.fork()
        if child == 0:
            _live(order, word)
        os.close(word)
        os.read(heard, 1)
        begun = time.monotonic()
        after = order.get("killed_after")
        if after is not None and not select.select([heard], [], [], after)[0]:
            os.kill(child, signal.SIGKILL)  # its id is not given to another process before the wait
        os.read(heard, 1)
        seconds = time.monotonic() - begun
        os.close(heard)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        print(json.dumps({"signal": max(-code, 0), "code": max(code, 0), "seconds": seconds}), flush=True)


def _live(order: Order, word: int) -> NoReturn:
    code = 1
    try:
        anyio.run(work, order, word)
        code = 0
    except BaseException:
        import traceback  # noqa: PLC0415  only where something went wrong

        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
