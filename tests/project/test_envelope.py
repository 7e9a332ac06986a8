"""What may stand beside a spec: of each word that is of the wrong sort the remedy says what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.cli.main import main

DICTATED = {
    "deliver: secrets/.env": (
        "deliver: expected a map, found text; write a map, as in {token: {to_file: secrets/token}}"
    ),
    "deliver: {token: secrets/.env}": (
        "deliver.token: expected a map, found text; write a map, as in {to_file: secrets/token}"
    ),
    "deliver: {token: {to_file: [a]}}": (
        "deliver.token.to_file: expected text, found a list; write a path, as in secrets/token"
    ),
    "deliver: {token: {to_dotenv: secrets/.env}}": (
        "deliver.token.to_dotenv: expected a map, found text; write a map, as in {file: secrets/.env, name: TOKEN}"
    ),
    "deliver: {token: {to_kubernetes_secret: token}}": (
        "deliver.token.to_kubernetes_secret: expected a map, found text; "
        "write a map, as in {file: secrets/token.yaml, name: token}"
    ),
    "deliver: {token: {to_kubernetes_secret: {file: a.yaml, name: Bad Name}}}": (
        "deliver.token.to_kubernetes_secret.name: 'Bad Name' is not a valid name of a Kubernetes Secret; "
        "use lower-case letters, digits, '-' and '.'"
    ),
    "deliver: {token: {to_kubernetes_secret: {file: a.yaml, name: a.b-c, key: a b, namespace: edge}}}": (
        "deliver.token.to_kubernetes_secret.key: 'a b' is not a valid key of a Kubernetes Secret; "
        "use letters, digits, '-', '_' and '.'"
    ),
    "deliver: {token: {to_kubernetes_secret: {file: a.yaml, name: a, key: .env, namespace: a.b}}}": (
        "deliver.token.to_kubernetes_secret.namespace: 'a.b' is not a valid namespace; "
        "use up to 63 lower-case letters, digits and '-'"
    ),
    "deliver: {token: {to_command: cat}}": (
        "deliver.token.to_command: expected a map, found text; write a map, as in {run: [program, argument]}"
    ),
    "deliver: {token: {to_vault: secret/data/a}}": (
        "deliver.token.to_vault: expected a map, found text; write a map, as in {path: agents/berlin}"
    ),
    "deliver: {token: {to_vault: {path: secret/data/agents/a}}}": (
        "deliver.token.to_vault: the path secret/data/agents/a begins with the mount secret; "
        "write the path within the mount, as in `path: agents/a`"
    ),
    "deliver: {token: {to_vault: {path: agents/../a}}}": (
        "deliver.token.to_vault.path: 'agents/../a' is not a supported path of Vault; "
        "use letters, digits, '-', '_', '.' and '@', separated by '/'"
    ),
    "deliver: {token: {to_vault: {path: a, key: a b, mount: kv/}}}": (
        "deliver.token.to_vault.key: 'a b' is not a supported key of a Vault secret; "
        "use letters, digits, '-', '_' and '.'",
        "deliver.token.to_vault.mount: 'kv/' is not a supported path of Vault; "
        "use letters, digits, '-', '_', '.' and '@', separated by '/'",
    ),
    "deliver: {token: {to_github_secret: TOKEN}}": (
        "deliver.token.to_github_secret: expected a map, found text; "
        "write a map, as in {repository: owner/name, name: TOKEN}"
    ),
    "deliver: {token: {to_github_secret: {repository: web, name: A}}}": (
        "deliver.token.to_github_secret.repository: 'web' is not a repository of GitHub; write OWNER/NAME"
    ),
    "deliver: {token: {to_github_secret: {repository: acme/.., name: github_token}}}": (
        "deliver.token.to_github_secret.repository: 'acme/..' is not a repository of GitHub; write OWNER/NAME",
        "deliver.token.to_github_secret.name: github_token: GitHub reserves names that begin with GITHUB_; "
        "use another name",
    ),
    "deliver: {token: {to_github_secret: {repository: acme/web, name: A-B, environment: prod}}}": (
        "deliver.token.to_github_secret.name: 'A-B' is not a valid name of a GitHub secret; use letters, digits and '_'"
    ),
    "deliver: {token: {to_github_secret: {repository: acme/web, name: A, environment: ..}}}": (
        "deliver.token.to_github_secret.environment: '..' is not a supported name of a GitHub environment; "
        "use letters, digits, ' ', '-', '_', '.' and '/'"
    ),
    "rotate: 90d": "rotate: expected a map, found text; write a map, as in {after: 90d}",
    "rotate: {after: 1}": "rotate.after: expected text, found a whole number; write a duration, as in 90d or 24h",
    "rotate: {after: '1'}": "rotate.after: '1' is not a duration; write a duration, as in 90d or 24h",
    "rotate: {after: 90d, overlap: 24}": (
        "rotate.overlap: expected text, found a whole number; write a duration, as in 90d or 24h"
    ),
    "lifecycle: protect": "lifecycle: expected a map, found text; write a map, as in {protect: true}",
    "lifecycle: {protect: 1}": "lifecycle.protect: expected true or false, found a whole number; write true or false",
}


@pytest.mark.parametrize("line", DICTATED)
def test_of_a_word_of_the_wrong_sort_the_remedy_says_what_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "reconciler.yaml").write_text("stack: prod\n")
    more = "" if line.startswith("deliver") else "deliver: {token: {to_file: secrets/token}}\n"
    (tmp_path / "manifests" / "a.yaml").write_text(f"kind: TunnelCredential\nname: a\n{more}{line}\n")
    assert main(["validate", "--project", str(tmp_path)]) == 1
    told = [line for line in capsys.readouterr().err.splitlines() if "TunnelCredential/a." in line]
    expected = DICTATED[line]
    assert [each.partition("TunnelCredential/a.")[2] for each in told] == (
        [expected] if isinstance(expected, str) else [*expected]
    )
