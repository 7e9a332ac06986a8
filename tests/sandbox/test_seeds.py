"""Seed files: replayed through the operations or planted as they are, and refused with the number of the wrong item."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.kinds import read_only
from reconciler.sandbox.base import seeds
from reconciler.sandbox.base.database import Database
from reconciler.sandbox.operations.objects import Objects
from tests.harness.platform import SandboxProcess

PLANTED = '{"collection": "bot_users", "object": {"id": "bot_1"}}'


def test_a_seed_is_replayed_and_planted(start_sandbox: Callable[..., SandboxProcess], tmp_path: Path) -> None:
    seed = tmp_path / "seed.yaml"
    seed.write_text(
        """
        - path: /bot_users
          body: {name: berlin}
        - collection: endpoints
          object: {type: ephemeral, url: "https://a.sandbox.test", proto: https}
        """
    )
    sandbox = start_sandbox(seed=seed)
    assert [user["name"] for user in sandbox.get("/bot_users")["bot_users"]] == ["berlin"]
    assert [endpoint["type"] for endpoint in sandbox.get("/endpoints")["endpoints"]] == ["ephemeral"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[{"path": "/credentials", "body": []}]', "item 1: body: input should be a valid dictionary"),
        ('[{"path": "/credentials"}, {"path": 5}]', "item 2: path: input should be a valid string"),
        ('[{"path": "/weather"}]', "item 1: POST /weather is not supported"),
        ('[{"path": "/bot_users"}]', "item 1: name must not be empty."),
        ('[{"collection": 5, "object": {}}]', "item 1: collection: input should be a valid string"),
        ('[{"collection": "bot_users", "object": 5}]', "item 1: object: input should be a valid dictionary"),
        ("[{collection: bot_users, object: {created_at: 2024-01-01}}]", "item 1: object.created_at: input was not a"),
        (f"[{PLANTED}, {PLANTED}]", "item 2: An object with the id bot_1 already exists at /bot_users."),
        ("[5]", "item 1: it must be an object"),
        ("[{}]", "item 1: path: field required"),
        ("{}", "a seed file must be a list"),
        ("[}", "it is neither JSON nor YAML at line 1"),
        ("[" * 5000, "it has more than 100 levels"),
    ],
)
def test_an_invalid_seed_is_reported_with_its_item(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "seed.yaml"
    file.write_text(text)
    database = Database(":memory:")
    with pytest.raises(ValueError, match=re.escape(f"{file}: {why}")):
        seeds.load_seed(Objects(database, read_only.list_served()), file)
    database.close()
