"""Plays the laws of access over many random edits: `python -m tests.access.play FIRST:LAST`, two edits for each seed.

Prints each fault with its seed, and in the end how many edits were played. Exit code 1 if there is a fault.
"""

from __future__ import annotations

import gc
import sys
import time

from tests.access import test_laws as laws


def main(seeds: str) -> int:
    first, last = map(int, seeds.split(":"))
    gc.disable()  # collected between the slices: programs live as long as their edit
    faults = 0
    for start in range(first, last, laws.A_TEST):
        for law in laws.LAWS:
            for fault in law(start):
                faults += 1
                print(law.__name__, fault, flush=True)
        laws.edits.cache_clear()
        gc.collect()
    print(
        f"seeds {seeds}: {2 * (last - first):,} edits, {faults} faults, {time.process_time():.0f} s of CPU", flush=True
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
