"""`fmt`: which files it writes, and its output."""

from __future__ import annotations

import errno
import os

import pytest

from tests.harness.project import Output, Shell


def test_fmt_writes_the_schema_relative_to_the_file_and_preserves_line_ends(shell: Shell) -> None:
    shell.write("manifests/payments.yaml", "kind: IPPolicy\nname: a\n")
    (shell.root / "reconciler.yaml").write_bytes(b"---\r\nstack: prod\r\n")
    for name in ("./manifests/payments.yaml", str(shell.root / "manifests/payments.yaml")):
        shell("fmt", "--modeline", name)
        first = (shell.root / "manifests/payments.yaml").read_text().splitlines()[0]
        assert first == "# yaml-language-server: $schema=../.reconciler/schemas/manifest.json"
        shell.write("manifests/payments.yaml", "kind: IPPolicy\nname: a\n")
    assert shell("fmt", "--modeline").code == 0
    line = b"# yaml-language-server: $schema=.reconciler/schemas/project.json\r\n"
    assert (shell.root / "reconciler.yaml").read_bytes() == b"---\r\n" + line + b"stack: prod\r\n"


def test_fmt_writes_to_the_target_of_a_symbolic_link(shell: Shell) -> None:
    untidy, tidy = "name: a\nkind: IPPolicy\n", "kind: IPPolicy\nname: a\n"
    shell.write("common/x.yaml", untidy)
    link = shell.root / "manifests/x.yaml"
    link.symlink_to("../common/x.yaml")
    assert shell("fmt").code == 0
    assert (link.is_symlink(), (shell.root / "common/x.yaml").read_text()) == (True, tidy)


def test_fmt_refuses_a_symbolic_link_out_of_the_project(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "x.yaml"
    outside.write_text("name: a\nkind: IPPolicy\n")
    (shell.root / "manifests/x.yaml").symlink_to(outside)
    result = shell("fmt", "manifests/x.yaml")
    assert (result.code, result.err) == (
        1,
        "error: manifests/x.yaml is a symbolic link to a file outside the project; format the target in its project\n",
    )
    assert outside.read_text() == "name: a\nkind: IPPolicy\n"


def test_fmt_writes_nothing_if_a_file_is_missing_and_prints_names_in_order(shell: Shell) -> None:
    untidy = "name: a\nkind: IPPolicy\n"
    names = [f"manifests/{letter}.yaml" for letter in "cba"]
    for name in names:
        shell.write(name, untidy)
    assert (shell("fmt", names[0], "nope.yaml").code, (shell.root / names[0]).read_text()) == (1, untidy)
    assert shell("fmt", *names).out.splitlines() == sorted(names)


def test_fmt_preserves_a_comment_after_a_byte_order_mark(shell: Shell) -> None:
    shell.write("manifests/x.yaml", "\ufeff# from an editor\nname: a\nkind: IPPolicy\n")
    assert shell("fmt").code == 0
    assert (shell.root / "manifests/x.yaml").read_text() == "kind: IPPolicy\n# from an editor\nname: a\n"


def test_fmt_accepts_an_anchor_that_is_defined_twice(shell: Shell) -> None:
    shell.write("manifests/x.yaml", "kind: IPPolicy\nname: &a a\nspec:\n  description: &a x\n  metadata: *a\n")
    result = shell("fmt", "manifests/x.yaml")
    assert (result.code, result.err) == (0, "")


def test_fmt_check_shows_the_lines_that_would_change(shell: Shell) -> None:
    shell.write("manifests/x.yaml", "kind: IPPolicy\nname: a\nspec:\n    description: x \n\n\n")
    result = shell("fmt", "--check")
    assert result.code == 1
    assert result.out == (
        "manifests/x.yaml\n"
        "  line 4\n  -     description: x\\x20\n  +   description: x\n  line 6\n  - (empty line)\n  - (empty line)\n"
    )
    shell("fmt")
    assert shell("fmt", "--check") == Output(0, "", "")


def test_fmt_check_shows_the_beginning_of_many_changes(shell: Shell) -> None:
    documents = "".join(f"---\nname: p{number}\nkind: IPPolicy\n" for number in range(500))
    shell.write("manifests/x.yaml", documents)
    result = shell("fmt", "--check")
    assert (result.code, len(result.out.splitlines())) == (1, 22)
    assert result.out.endswith("  …\n")


def test_fmt_check_shows_no_secret(shell: Shell) -> None:
    """Neither a literal secret in a field, nor one in a comment or an embedded text."""
    shell.write(
        "manifests/x.yaml",
        """\
kind: HTTPSEdgeRoute
name: a
spec:
    edge_id: {ref: HTTPSEdge/shop}
    match: /
    match_type: path_prefix
    webhook_verification: {provider: slack, secret: "hunter2-a"}
    # the old token was hunter2-b
    traffic_policy:
        value: |
            on_http_request:
              - actions:
                  - type: basic-auth
                    config:
                      credentials:
                        - "user:hunter2-c"
---
kind: TLSCertificate
name: b
spec:
    certificate_pem: x
    private_key_pem: |
        hunter2-d
        hunter2-d
    description: >-
        hunter2-d
""",
    )
    result = shell("fmt", "--check")
    assert result.code == 1
    assert "  -     match: /\n" in result.out
    assert "hunter2" not in result.out


def test_fmt_modeline_begins_each_document_with_the_line_for_editors(shell: Shell) -> None:
    line = "# yaml-language-server: $schema=../.reconciler/schemas/manifest.json"
    shell.write("manifests/payments.yaml", "kind: IPPolicy\nname: a\n---\nname: b\nkind: IPPolicy\n")
    shell.write("tests/access.yaml", "- {from: 203.0.113.9, to: dashboard, expect: deny}\n")
    assert shell("fmt", "--modeline").code == 0
    assert (shell.root / "tests/access.yaml").read_text() == (
        "# yaml-language-server: $schema=../.reconciler/schemas/access-tests.json\n"
        "- {from: 203.0.113.9, to: dashboard, expect: deny}\n"
    )
    text = f"{line}\nkind: IPPolicy\nname: a\n---\n{line}\nkind: IPPolicy\nname: b\n"
    assert (shell.root / "manifests/payments.yaml").read_text() == text
    assert (
        (shell.root / "reconciler.yaml")
        .read_text()
        .startswith("# yaml-language-server: $schema=.reconciler/schemas/project.json\n")
    )
    assert shell("fmt", "--check", "--modeline").code == 0


def test_fmt_preserves_the_line_for_editors_and_adds_none_without_modeline(shell: Shell) -> None:
    line = "# yaml-language-server: $schema=elsewhere.json"
    shell.write("manifests/payments.yaml", f"{line}\nname: a\nkind: IPPolicy\n---\nkind: IPPolicy\nname: b\n")
    shell("fmt")
    text = f"{line}\nkind: IPPolicy\nname: a\n---\nkind: IPPolicy\nname: b\n"
    assert (shell.root / "manifests/payments.yaml").read_text() == text


def test_fmt_check_lists_unformatted_files_and_changes_nothing(shell: Shell) -> None:
    crooked = "name: b\nkind: BotUser\nspec:\n    name:   bot\n"
    shell.write("manifests/bot.yaml", crooked)
    result = shell("fmt", "--check")
    assert (result.code, result.out.splitlines()[0], result.err) == (1, "manifests/bot.yaml", "")
    assert (shell.root / "manifests/bot.yaml").read_text() == crooked


def test_fmt_formats_once_and_then_changes_nothing(shell: Shell) -> None:
    shell.write("manifests/bot.yaml", "name: b\nkind: BotUser\nspec:\n    name:   bot\n")
    assert shell("fmt") == Output(0, "manifests/bot.yaml\n", "")
    assert (shell.root / "manifests/bot.yaml").read_text() == "kind: BotUser\nname: b\nspec:\n  name: bot\n"
    assert shell("fmt") == Output(0, "", "")


def test_fmt_inline_moves_children_and_notes_each_one_that_cannot_be_moved(shell: Shell) -> None:
    rule = "kind: IPPolicyRule\nname: %s\nspec: {ip_policy_id: {ref: IPPolicy/hq}, cidr: %s, action: allow}\n"
    shell.write("reconciler.yaml", "stack: s\n")
    shell.write("manifests/all.yaml", "kind: IPPolicy\nname: hq\n---\n" + rule % ("lan", "10.0.0.0/8"))
    shell.write("manifests/rules.yaml", rule % ("hq-vpn", "10.0.0.0/16"))
    site = "kind: IPPolicy\nname: ${{ each.key }}\nfor_each: [site]\n---\n"
    shell.write("manifests/sites.yaml", site + rule.replace("/hq", "/site") % ("site-lan", "10.0.0.0/8"))
    assert shell("fmt", "--inline", "manifests/all.yaml").code == 64
    checked = shell("fmt", "--inline", "--check")
    assert checked.code == 1
    assert checked.err.startswith(
        "manifests/all.yaml:4:1: note: IPPolicyRule/lan: cannot be declared in the manifest of"
    )
    moved = shell("fmt", "--inline")
    assert moved.out == "manifests/all.yaml\nmanifests/rules.yaml (deleted: all of its documents were moved)\n"
    assert moved.err.splitlines()[0].startswith("manifests/all.yaml:6:1: note: IPPolicyRule/lan: cannot be declared")
    assert "rename IPPolicyRule/lan IPPolicyRule/hq-lan" in moved.err
    stays = moved.err.splitlines()[1]
    assert stays.startswith(
        "manifests/sites.yaml:5:1: note: IPPolicyRule/site-lan: cannot be declared in the manifest of"
    )
    assert moved.code == 0
    assert shell("fmt", "--inline", "--check") == Output(0, "", moved.err)
    assert not (shell.root / "manifests/rules.yaml").exists()
    assert shell("rename", "IPPolicyRule/lan", "IPPolicyRule/hq-lan").code == 0
    assert shell("fmt", "--inline") == Output(0, "manifests/all.yaml\n", f"{stays}\n1 note\n")
    assert (shell.root / "manifests/all.yaml").read_text() == (
        "kind: IPPolicy\nname: hq\nrules:\n  vpn: {cidr: 10.0.0.0/16, action: allow}\n"
        '  lan:\n    moved: [IPPolicyRule/lan]\n    cidr: "10.0.0.0/8"\n    action: allow\n'
    )
    assert shell("fmt", "--inline") == Output(0, "", f"{stays}\n1 note\n")


def test_fmt_inline_deletes_no_child_before_the_file_of_its_parent_is_written(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = (
        "kind: IPPolicyRule\nname: a-x\nspec:\n  ip_policy_id: {ref: IPPolicy/a}\n  cidr: 10.0.0.0/8\n  action: allow\n"
    )
    shell.write("manifests/a.yaml", child)
    shell.write("manifests/b.yaml", "kind: IPPolicy\nname: a\nspec: {}\n")

    def fail(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        result = shell("fmt", "--inline")
    assert result.code == 1
    assert "no space left" in result.err.lower()
    assert (shell.root / "manifests/a.yaml").read_text() == child


def test_components_of_the_project_are_formatted_with_a_schema_of_their_own(shell: Shell) -> None:
    shell.write("components/part.yaml", "inputs:\n   a: {type: string}\n---\nname: p\nkind: IPPolicy\n")
    assert shell("fmt", "--modeline").code == 0
    first, *lines = (shell.root / "components/part.yaml").read_text().splitlines()
    assert first.endswith("/component.json")
    assert [line for line in lines if not line.startswith("#")] == [
        "inputs:", "  a: {type: string}", "---", "kind: IPPolicy", "name: p",
    ]  # fmt: skip


def test_fmt_reads_the_policies_of_the_environment(shell: Shell) -> None:
    shell.write("environments/prod.yaml", "policies: [rules]\n")
    for folder in ("policies", "rules"):
        shell.write(f"{folder}/a.yaml", "policies: []\n")
    result = shell("fmt", "--modeline", "--check", "--env", "prod")
    assert ("rules/a.yaml" in result.out, "policies/a.yaml" in result.out) == (True, False)
    result = shell("fmt", "--modeline", "--check")
    assert ("rules/a.yaml" in result.out, "policies/a.yaml" in result.out) == (False, True)
