"""Seeds of histories that found a bug, each with the bug. They run first in each run.

After a change of how histories are drawn, a seed is one more random history; the bug has a test of its own, named here.
"""

FOUND: dict[int, str] = {
    2016: "a deleted bot user, created again before a crash, was not bound: tests/engine/test_recovery.py",
    2030: "an event source replaced, the old one not deleted, was forgotten: tests/planning/test_deciding.py",
    2151: "a create searched in a stale list was repeated: tests/engine/test_recovery.py",
    5467: "a replacement broken off and then taken back waited for its referrers: tests/planning/test_matching.py",
    8919: "an event source was not deleted after a crash during its replacement: tests/engine/test_recovery.py",
    18206: "a bot user's move was half written when the process died, and two addresses had it: "
    "tests/engine/test_apply.py",
    23933: "the same of an event source: tests/engine/test_apply.py",
    49735: "a token was overwritten by that of a replacement, which somebody deleted: tests/planning/test_matching.py",
    2514: "an object on its way out was taken for the one that is to have its key: tests/planning/test_matching.py",
    91252: "an event source that returned to its former subscription forgot the one that it left there: "
    "tests/planning/test_deciding.py",
    343402: "a credential was replaced twice, and the second was deleted before the first, whose delete was refused: "
    "tests/planning/test_matching.py",
    978868: "a credential was replaced twice, and somebody deleted its first successor: "
    "tests/planning/test_matching.py",
    1122049: "the same after a death: tests/planning/test_matching.py",
    703: "a create became visible while the reading waited for another one: tests/operations/test_first_reading.py",
    506628: "two event sources were bound to one object, and each blocked the other: tests/planning/test_matching.py",
}
