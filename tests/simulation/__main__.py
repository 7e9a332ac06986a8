"""`python -m tests.simulation SEED` tells one history; `A:B` plays a range and names the seeds that end badly."""

from __future__ import annotations

import sys
import time

from tests.simulation.simulate import play


def main(words: list[str]) -> int:
    first, colon, last = words[0].partition(":")
    if not colon:
        broken = play(int(first), print)
        print("\n".join(broken) or "every invariant holds")
        return bool(broken)
    began, most, found = time.perf_counter(), int(words[1]) if len(words) > 1 else 10, 0
    for seed in range(int(first), int(last)):
        if broken := play(seed):
            found += 1
            print(f"{seed}: " + "\n    ".join(broken), flush=True)
            if found == most:
                break
    print(f"{found} of the histories {words[0]} end badly, {time.perf_counter() - began:.1f} s")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
