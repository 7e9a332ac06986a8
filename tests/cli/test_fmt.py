"""`fmt` at the command line: which files it writes to, and what it says of them."""

from __future__ import annotations

import pytest

from tests.harness.project import Output, Shell


def test_fmt_names_the_schema_from_where_the_file_is_and_leaves_the_ends_of_lines(shell: Shell) -> None:
    shell.write("manifests/payments.yaml", "kind: IPPolicy\nname: a\n")
    (shell.root / "reconciler.yaml").write_bytes(b"---\r\nstack: prod\r\n")
    for name in ("./manifests/payments.yaml", str(shell.root / "manifests/payments.yaml")):
        shell("fmt", "--modeline", name)
        first = (shell.root / "manifests/payments.yaml").read_text().splitlines()[0]
        assert first == "# yaml-language-server: $schema=../.schemas/manifest.json"
        shell.write("manifests/payments.yaml", "kind: IPPolicy\nname: a\n")
    assert shell("fmt", "--modeline").code == 0
    line = b"# yaml-language-server: $schema=.schemas/project.json\r\n"
    assert (shell.root / "reconciler.yaml").read_bytes() == b"---\r\n" + line + b"stack: prod\r\n"


def test_fmt_writes_to_the_file_that_a_link_leads_to(shell: Shell) -> None:
    untidy, tidy = "name: a\nkind: IPPolicy\n", "kind: IPPolicy\nname: a\n"
    shell.write("common/x.yaml", untidy)
    link = shell.root / "manifests/x.yaml"
    link.symlink_to("../common/x.yaml")
    assert shell("fmt").code == 0
    assert (link.is_symlink(), (shell.root / "common/x.yaml").read_text()) == (True, tidy)


def test_fmt_refuses_a_link_that_leads_out_of_the_project(
    shell: Shell, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "x.yaml"
    outside.write_text("name: a\nkind: IPPolicy\n")
    (shell.root / "manifests/x.yaml").symlink_to(outside)
    said = shell("fmt", "manifests/x.yaml")
    assert (said.code, said.err) == (
        1,
        "error: manifests/x.yaml is a symbolic link to a file outside the project; format the target in its project\n",
    )
    assert outside.read_text() == "name: a\nkind: IPPolicy\n"


def test_fmt_writes_nothing_where_a_file_is_not_there_and_tells_names_in_order(shell: Shell) -> None:
    untidy = "name: a\nkind: IPPolicy\n"
    names = [f"manifests/{each}.yaml" for each in "cba"]
    for name in names:
        shell.write(name, untidy)
    assert (shell("fmt", names[0], "nope.yaml").code, (shell.root / names[0]).read_text()) == (1, untidy)
    assert shell("fmt", *names).out.splitlines() == sorted(names)


def test_fmt_keeps_a_comment_after_a_byte_order_mark(shell: Shell) -> None:
    shell.write("manifests/x.yaml", "\ufeff# from an editor\nname: a\nkind: IPPolicy\n")
    assert shell("fmt").code == 0
    assert (shell.root / "manifests/x.yaml").read_text() == "kind: IPPolicy\n# from an editor\nname: a\n"


def test_fmt_says_nothing_about_an_anchor_that_is_used_again(shell: Shell) -> None:
    shell.write("manifests/x.yaml", "kind: IPPolicy\nname: &a a\nspec:\n  description: &a x\n  metadata: *a\n")
    said = shell("fmt", "manifests/x.yaml")
    assert (said.code, said.err) == (0, "")


def test_fmt_check_shows_the_lines_that_would_change(shell: Shell) -> None:
    shell.write("manifests/x.yaml", "kind: IPPolicy\nname: a\nspec:\n    description: x \n\n\n")
    said = shell("fmt", "--check")
    assert said.code == 1
    assert said.out == (
        "manifests/x.yaml\n"
        "  line 4\n  -     description: x\\x20\n  +   description: x\n  line 6\n  - (empty line)\n  - (empty line)\n"
    )
    shell("fmt")
    assert shell("fmt", "--check") == Output(0, "", "")


def test_fmt_check_shows_the_beginning_of_many_changes(shell: Shell) -> None:
    documents = "".join(f"---\nname: p{number}\nkind: IPPolicy\n" for number in range(3000))
    shell.write("manifests/x.yaml", documents)
    said = shell("fmt", "--check")
    assert (said.code, len(said.out.splitlines())) == (1, 22)
    assert said.out.endswith("  …\n")


def test_fmt_check_shows_no_secret(shell: Shell) -> None:
    """Neither where a literal secret stands in a field, nor in a comment or an embedded text that names one."""
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
    said = shell("fmt", "--check")
    assert said.code == 1
    assert "  -     match: /\n" in said.out
    assert "hunter2" not in said.out


def test_fmt_begins_each_document_with_the_line_for_editors_when_asked(shell: Shell) -> None:
    line = "# yaml-language-server: $schema=../.schemas/manifest.json"
    shell.write("manifests/payments.yaml", "kind: IPPolicy\nname: a\n---\nname: b\nkind: IPPolicy\n")
    assert shell("fmt", "--modeline").code == 0
    text = f"{line}\nkind: IPPolicy\nname: a\n---\n{line}\nkind: IPPolicy\nname: b\n"
    assert (shell.root / "manifests/payments.yaml").read_text() == text
    assert (
        (shell.root / "reconciler.yaml")
        .read_text()
        .startswith("# yaml-language-server: $schema=.schemas/project.json\n")
    )
    assert shell("fmt", "--check", "--modeline").code == 0


def test_fmt_leaves_the_line_for_editors_on_top_and_adds_none_unasked(shell: Shell) -> None:
    line = "# yaml-language-server: $schema=elsewhere.json"
    shell.write("manifests/payments.yaml", f"{line}\nname: a\nkind: IPPolicy\n---\nkind: IPPolicy\nname: b\n")
    shell("fmt")
    text = f"{line}\nkind: IPPolicy\nname: a\n---\nkind: IPPolicy\nname: b\n"
    assert (shell.root / "manifests/payments.yaml").read_text() == text


def test_fmt_check_names_what_it_would_change_and_changes_nothing(shell: Shell) -> None:
    crooked = "name: b\nkind: BotUser\nspec:\n    name:   bot\n"
    shell.write("manifests/bot.yaml", crooked)
    said = shell("fmt", "--check")
    assert (said.code, said.out.splitlines()[0], said.err) == (1, "manifests/bot.yaml", "")
    assert (shell.root / "manifests/bot.yaml").read_text() == crooked


def test_fmt_lays_out_once_and_then_has_nothing_to_do(shell: Shell) -> None:
    shell.write("manifests/bot.yaml", "name: b\nkind: BotUser\nspec:\n    name:   bot\n")
    assert shell("fmt") == Output(0, "manifests/bot.yaml\n", "")
    assert (shell.root / "manifests/bot.yaml").read_text() == "kind: BotUser\nname: b\nspec:\n  name: bot\n"
    assert shell("fmt") == Output(0, "", "")
