"""Seeds of histories that once ended badly, each with what was wrong. They are played first, for ever.

A seed stands for a history only as long as nobody changes how histories are drawn: then it is one more random history,
and what it found lives on in a test of its own (named here).
"""

FOUND: dict[int, str] = {
    2016: "a bot user made again after somebody deleted it, and lost with the process, was not bound: "
    "tests/engine/test_recovery.py",
    2030: "an event source replaced, the old one not deleted, was forgotten: tests/planning/test_deciding.py",
    2151: "a create looked for in a list that lagged behind was made twice: tests/engine/test_recovery.py",
    5467: "a replacement broken off and then taken back waited for its referrers: tests/planning/test_matching.py",
    8919: "an event source whose replacement was lost with the process lived on: tests/engine/test_recovery.py",
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
