"""Every fault and what it does to every operation: once in passing, and when it lasts. The test only reads this.

Columns: list a collection, get a module, create what carries our record, create what is known by its name, create what
has a one-time secret, patch, put a module, delete.

D  done, as if nothing had been        R  tried again, and done
L  lost, and found again               A  deleted and created anew, because the secret was lost
N  read as: not there                  G  gone already, which is what a delete wants
F  failed, with a message              B  believed to be gone, until the next refresh
                                       U  list incomplete: nothing planned
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

OPERATIONS = ("list", "get", "create", "create named", "create secret", "patch", "put", "delete")
CLASSES = (("list", "get"), ("create", "create named", "create secret"), ("patch", "put"), ("delete",))


def error(code: int | None, text: str = "No.") -> dict[str, Any]:
    named = {"error_code": f"ERR_NGROK_{code}"} if code else {}
    return {"body": {**named, "msg": text, "details": {"operation_id": "op_1"}}}


def answers(status: int, code: int | None = None, *, done: bool = False, **more: Any) -> dict[str, Any]:
    return {"then": "commit-then-status" if done else "status", "status": status, **error(code), **more}


def says(text: str, kind: str = "application/json", *, done: bool, status: int = 0) -> dict[str, Any]:
    """Some other text in the place of a good answer."""
    then = "commit-then-status" if done else "status"
    return {"then": then, "status": status or 200, "body": text, "headers": {"Content-Type": kind}}


def after(value: str) -> dict[str, Any]:
    return {**answers(429, 226), "headers": {"Retry-After": value}}


def _date(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


HTML = "<!doctype html><title>Sign in</title>"
ELSEWHERE = {"Location": "http://localhost:9/edges"}
SAME = {"Location": "/elsewhere"}

FAULTS: dict[str, Any] = {
    # what happens to the connection; "astray" goes to an address where nobody is
    "connection refused": "refused",
    "no such host": "dns",
    "reset before anything": {"then": "cut"},
    "reset after the effect": {"then": "commit-then-cut"},
    "timeout before the effect": {"then": "hang"},
    "timeout after the effect": {"then": "commit-then-hang"},
    "answer breaks off": {"then": "commit-then-truncate"},
    "slow answer": {"then": "answer", "pace": 0.002},
    "answer too slow": {"then": "answer", "pace": 0.1},
    # what is in the answer
    "invalid JSON, not done": says('{"id": ', done=False),
    "invalid JSON, done": says('{"id": ', done=True),
    "HTML, not done": says(HTML, "text/html", done=False),
    "HTML, done": says(HTML, "text/html", done=True),
    "HTML 502": says(HTML, "text/html", done=False, status=502),
    "JSON of another shape, done": says("[]", done=True),
    # statuses
    "400": answers(400, 1400),
    "400 domain in use": answers(400, 446),
    "400 dangling CNAME": answers(400, 511),
    "400 pooling differs": answers(400, 18016),
    "400 pooling changes": answers(400, 18017),
    "400 hostport in use": answers(400, 7122),
    "401": answers(401, 200),
    "403": answers(403, 203),
    "404": answers(404),
    "405": answers(405),
    "408": answers(408),
    "408, done": answers(408, done=True),
    "409": answers(409),
    "413": answers(413),
    "422": answers(422),
    "429 in 2 s": after("2"),
    "429 at a date": after(_date(20)),
    "429 at a date in the past": after(_date(-3600)),
    "429 in a day": after("86400"),
    "429 in nonsense": after("soon"),
    "429": answers(429, 226),
    "500": answers(500),
    "500, done": answers(500, done=True),
    "501": answers(501),
    "502": answers(502),
    "502, done": answers(502, done=True),
    "503": answers(503),
    "503, done": answers(503, done=True),
    "503 in 5 s": answers(503, headers={"Retry-After": "5"}),
    "504": answers(504),
    "504, done": answers(504, done=True),
    "redirect to a path": answers(307, headers=SAME),
    "redirect elsewhere": answers(302, headers=ELSEWHERE),
    "redirect after the effect": answers(303, done=True, headers=SAME),
}

SILENT = ("timeout before the effect", "timeout after the effect", "answer too slow")  # only the deadline ends these

#                              once / always, for
#                              list  get   create named secret patch put   delete
OUTCOMES = """
connection refused           | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
no such host                 | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
reset before anything        | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
reset after the effect       | R/U | R/U | L/L | L/L | A/F | R/F | R/F | G/G
timeout before the effect    | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
timeout after the effect     | R/U | R/U | L/L | L/L | A/F | R/F | R/F | G/G
answer breaks off            | R/U | R/U | L/L | L/L | A/F | R/F | R/F | G/G
slow answer                  | D/D | D/D | D/D | D/D | D/D | D/D | D/D | D/D
answer too slow              | R/U | R/U | L/L | L/L | A/F | R/F | R/F | D/D
invalid JSON, not done       | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
invalid JSON, done           | R/U | R/U | L/L | L/L | A/F | R/F | R/F | G/G
HTML, not done               | U/U | U/U | R/F | R/F | R/F | R/F | R/F | R/F
HTML, done                   | U/U | U/U | L/L | L/L | A/F | R/F | R/F | G/G
HTML 502                     | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
JSON of another shape, done  | U/U | U/U | L/L | L/L | A/F | D/D | D/D | D/D
400                          | U/U | U/U | F/F | F/F | F/F | F/F | F/F | F/F
400 domain in use            | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
400 dangling CNAME           | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
400 pooling differs          | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
400 pooling changes          | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
400 hostport in use          | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
401                          | F/F | F/F | F/F | F/F | F/F | F/F | F/F | F/F
403                          | F/F | F/F | F/F | F/F | F/F | F/F | F/F | F/F
404                          | U/U | N/N | F/F | F/F | F/F | F/F | F/F | B/B
405                          | U/U | U/U | F/F | F/F | F/F | F/F | F/F | F/F
408                          | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
408, done                    | R/U | R/U | L/L | L/L | A/F | R/F | R/F | G/G
409                          | U/U | U/U | F/F | F/F | F/F | F/F | F/F | F/F
413                          | U/U | U/U | F/F | F/F | F/F | F/F | F/F | F/F
422                          | U/U | U/U | F/F | F/F | F/F | F/F | F/F | F/F
429 in 2 s                   | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
429 at a date                | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
429 at a date in the past    | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
429 in a day                 | U/U | U/U | F/F | F/F | F/F | F/F | F/F | F/F
429 in nonsense              | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
429                          | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
500                          | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
500, done                    | R/U | R/U | L/L | L/L | A/F | R/F | R/F | G/G
501                          | U/U | U/U | F/F | F/F | F/F | F/F | F/F | F/F
502                          | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
502, done                    | R/U | R/U | L/L | L/L | A/F | R/F | R/F | G/G
503                          | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
503, done                    | R/U | R/U | L/L | L/L | A/F | R/F | R/F | G/G
503 in 5 s                   | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
504                          | R/U | R/U | R/F | R/F | R/F | R/F | R/F | R/F
504, done                    | R/U | R/U | L/L | L/L | A/F | R/F | R/F | G/G
redirect to a path           | U/U | U/U | R/F | R/F | R/F | F/F | F/F | F/F
redirect elsewhere           | U/U | U/U | R/F | R/F | R/F | F/F | F/F | F/F
redirect after the effect    | U/U | U/U | L/L | L/L | A/F | F/F | F/F | F/F
"""


@dataclass(frozen=True)
class Cell:
    fault: str
    operation: str
    lasting: bool
    outcome: str

    def __str__(self) -> str:
        return f"{self.operation}, {self.fault}{' for good' if self.lasting else ''}"

    @property
    def turn(self) -> tuple[str, tuple[str, ...]] | None:
        """The fault and the class of the operation, in one cell of each two.

        From fault to fault the operations of a class take turns, and after them the fault that passes and the one
        that lasts.
        """
        (members,) = (cls for cls in CLASSES if self.operation in cls)
        round_, turn = divmod(list(FAULTS).index(self.fault), len(members))
        return (self.fault, members) if (members[turn], bool(round_ % 2)) == (self.operation, self.lasting) else None


def cells() -> Iterator[Cell]:
    for line in OUTCOMES.strip().splitlines():
        name, *columns = (part.strip() for part in line.split("|"))
        for operation, pair in zip(OPERATIONS, columns, strict=True):
            once, always = pair.split("/")
            yield Cell(name, operation, False, once)
            yield Cell(name, operation, True, always)
