"""The search for secrets, on which other tests rely, finds each encoding and nothing else."""

from __future__ import annotations

import base64
import html
import itertools
import json
from urllib.parse import quote

import pytest

from tests.security.canaries import Canaries, fresh

SECRET = fresh('"<&é/+\\')


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        SECRET[3:11],
        SECRET[-8:],
        json.dumps({"a": SECRET}),
        quote(SECRET),
        html.escape(SECRET),
        SECRET.encode().hex(),
        *(base64.b64encode(b"x" * before + SECRET.encode() + b"tail").decode() for before in range(3)),
        *(base64.b64encode(b"x" * before + SECRET[4:20].encode()).decode() for before in range(3)),
    ],
    ids=itertools.count(),
)
def test_a_secret_is_found_in_every_spelling(written: str) -> None:
    assert Canaries({"it": SECRET}).find("here", f"so {written} it is".encode())


def test_other_text_has_no_secret() -> None:
    canaries = Canaries({"it": SECRET})
    assert canaries.find("here", (fresh() + SECRET[:7] + "~" + fresh()).encode() * 50) == []
