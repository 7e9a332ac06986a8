"""One-time secrets are read back from files that sinks wrote, and from no file outside the project."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.engine.ports import Undeliverable
from reconciler.model.manifest import Delivery
from reconciler.model.value import Secret
from reconciler.project.secrets import read_back
from reconciler.project.secrets.sinks import ProjectSinks

FILE = Delivery("to_file", "secrets/token")
ENTRY = Delivery("to_dotenv", "secrets/.env", settings={"name": "TOKEN"})
SECRETS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp", "Zs"]), min_size=1)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.mark.parametrize("delivery", [FILE, ENTRY], ids=lambda delivery: delivery.way)
@given(text=SECRETS)
async def test_a_delivered_secret_is_read_back(root: Path, delivery: Delivery, text: str) -> None:
    await ProjectSinks(root).deliver(delivery, Secret(text, "test"), overwrites=True)
    assert read_back.read_secret(root, delivery).reveal() == text


def test_a_dotenv_entry_is_read_back_in_any_spelling(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/.env").write_text("# TOKEN=no\nTOKEN_OLD=no\n export TOKEN = 'yes' \nOTHER='\nTOKEN=no'\n")
    assert read_back.read_secret(tmp_path, ENTRY).reveal() == "yes"


@pytest.mark.parametrize(
    ("delivery", "text", "why"),
    [
        (FILE, None, "there is no file secrets/token"),
        (FILE, "\n", "secrets/token has no content"),
        (ENTRY, "OTHER=1\n", "secrets/.env has no entry TOKEN"),
        (ENTRY, 'TOKEN="torn\n', "secrets/.env: line 1 has an unclosed quote"),
        (Delivery("to_command", "vault"), None, "a secret delivered with to_command cannot be read back"),
    ],
)
def test_a_missing_secret_is_reported_with_its_place(
    tmp_path: Path, delivery: Delivery, text: str | None, why: str
) -> None:
    (tmp_path / "secrets").mkdir()
    if text is not None:
        (tmp_path / delivery.target).write_text(text)
    with pytest.raises(Undeliverable, match=why):
        read_back.read_secret(tmp_path, delivery)


def test_a_link_out_of_the_project_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("other")
    root = tmp_path / "project"
    (root / "secrets").mkdir(parents=True)
    (root / "secrets/token").symlink_to(tmp_path / "outside")
    with pytest.raises(Undeliverable, match="symlink to a place outside the project"):
        read_back.read_secret(root, FILE)
