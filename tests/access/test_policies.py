"""Every action of traffic policies has an effect on access, or is known to have none."""

from __future__ import annotations

from reconciler.access.gates import SETTINGS
from reconciler.access.policies import ACTIONS, GATES, Effect
from reconciler.languages import traffic_catalog


def test_the_table_of_effects_has_each_action_of_the_catalog() -> None:
    assert ACTIONS.keys() == {*traffic_catalog.actions(), *traffic_catalog.OLD_ACTIONS}


def test_each_gate_has_its_program_and_the_settings_that_snapshot_files_keep() -> None:
    names = {name for name, effect in ACTIONS.items() if effect is Effect.GATE}
    assert GATES.keys() == names
    assert SETTINGS.keys() == {*names, "forward-internal", "http-request"}
