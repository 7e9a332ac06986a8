"""Where the store of a fleet and the checkouts of a machine are, of every pair of settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from reconciler.fleet.places import DEFAULT, find_cache, find_store
from reconciler.model.fleet import Fleet, KeyMethod, KeySource

FOLDER = Path("/fleets/shops")
FLEET = Fleet("shops", {}, {}, KeySource(KeyMethod.ENV, "KEY"))
PLACES = {
    "state/a.db": "/fleets/shops/state/a.db",
    "/var/lib/b.db": "/var/lib/b.db",
    "postgresql://c.example.com/fleet": "postgresql://c.example.com/fleet",
}
"""A store as it is written, and where it is."""


@pytest.mark.parametrize("variable", [None, "", *PLACES])
def test_the_store_is_that_of_the_variable_then_of_the_fleet_file_then_the_default(variable: str | None) -> None:
    environ = {} if variable is None else {"RECONCILER_STORE": variable}
    for file in (None, "", *PLACES):
        expected = PLACES[variable] if variable else PLACES[file] if file else f"{FOLDER}/{DEFAULT}"
        assert find_store(replace(FLEET, store=file), FOLDER, environ) == expected


def test_the_checkouts_are_in_the_folder_of_the_variable_or_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/mara")
    default = Path("/home/mara/.cache/reconciler")
    assert find_cache({}) == find_cache({"RECONCILER_CACHE": ""}) == default
    assert find_cache({"RECONCILER_CACHE": "/c"}) == Path("/c")
