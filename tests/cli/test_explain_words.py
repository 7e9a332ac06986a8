"""`explain Kind.word`: of what stands beside a spec."""

from __future__ import annotations

import pytest

from reconciler.model.codes import CODES
from reconciler.model.fields.field import fields_of
from reconciler.project.documents.manifest_document import ManifestDocument
from tests.harness.project import Shell

BESIDE = [field.name for field in fields_of(ManifestDocument) if field.name != "name"]


@pytest.mark.parametrize("word", [*BESIDE, "for_each"])
def test_every_word_beside_a_spec_is_explained(shell: Shell, word: str) -> None:
    said = shell("explain", f"TunnelCredential.{word}")
    assert said.code == 0
    assert said.out.startswith(f"TunnelCredential.{word} (")
    assert said.out.count("\n\n") >= 2  # what it is, and where it is shown
    assert "A manifest key, at the same level as `spec`; examples are in docs/manifests.md" in said.out


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("HTTPSEdge.moved", "Former address, as in Kind/oldname"),
        ("HTTPSEdge.lifecycle.ignore", "Fields that are not managed"),
        ("TunnelCredential.rotate.after", "such as 90d"),
        ("TunnelCredential.deliver.to_dotenv", "* file  string. Path of the file"),
        ("TunnelCredential.deliver.token.to_dotenv.name", "Name of the entry."),
        ("HTTPSEdge.rotate", "HTTPSEdge does not support rotate: it has no one-time secret."),
        ("HTTPSEdge.deliver", "HTTPSEdge does not support deliver: it has no one-time secret."),
        ("AgentConfig.id", "AgentConfig does not support id: it is rendered to a file and has no object"),
        ("BotUser.name", "The name, unique among the bot users of the account."),  # a field of the spec comes first
    ],
)
def test_a_word_is_explained_for_the_kind_that_was_named(shell: Shell, path: str, told: str) -> None:
    said = shell("explain", path)
    assert said.out.startswith(f"{path} (")
    assert told in said.out


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("TunnelCredential", "id, ensure, moved, lifecycle, deliver, rotate, for_each"),
        ("BotUser", "id, ensure, moved, lifecycle, for_each"),
        ("AgentConfig", "for_each"),
    ],
)
def test_a_kind_lists_what_its_manifests_may_say_beside_the_spec(shell: Shell, kind: str, words: str) -> None:
    assert shell("explain", kind).out.endswith(f"\nManifest keys: {words}\n")


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("BotUser.lifecycle.protct", "unknown field 'protct' in BotUser.lifecycle; did you mean 'protect'?"),
        ("BotUser.moved.x", "unknown field 'x' in BotUser.moved; it is a single value"),
    ],
)
def test_what_is_not_inside_a_word_is_told(shell: Shell, path: str, told: str) -> None:
    said = shell("explain", path)
    assert (said.code, told in said.err) == (64, True)


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_is_explained(shell: Shell, code: str) -> None:
    said = shell("explain", code)
    assert said.code == 0
    assert said.out.startswith(f"{code} (")
    assert CODES[code].remedy in " ".join(said.out.split())


def test_a_misspelt_code_is_refused_with_the_nearest(shell: Shell) -> None:
    said = shell("explain", "unknown-feild")
    assert said.code != 0
    assert "unknown code 'unknown-feild'; did you mean 'unknown-field'?" in said.err
