"""Entries of a dotenv text: setting one changes no other byte, and programs that read the text get its value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.engine.ports import Undeliverable
from reconciler.project.secrets import dotenv

LINES = st.sampled_from(
    ["", "# a comment", "OTHER=1", "export OTHER='two\nlines'", 'TOKEN_OLD="a \\" quote"', "  ", "TOKEN=old", "TOKEN"]
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "TOKEN=new\n"),
        ("A=1", "A=1\nTOKEN=new\n"),
        ("A=1\r\n", "A=1\r\nTOKEN=new\r\n"),
        ("A=1\n\nTOKEN=old\nB=2\n", "A=1\n\nTOKEN=new\nB=2\n"),
        ("export TOKEN='old'\nTOKEN_2=kept\n", "export TOKEN=new\nTOKEN_2=kept\n"),
        ("  TOKEN = old # ours\n", "  TOKEN=new # ours\n"),
        ("TOKEN= # ours\r\n", "TOKEN=new # ours\r\n"),
        ('TOKEN="old" # ours', "TOKEN=new # ours"),
        ("export TOKEN=old B='precious one' # monthly\n", "export TOKEN=new B='precious one' # monthly\n"),
        ("TOKEN=1; export TOKEN\n", "TOKEN=new; export TOKEN\n"),
        ('B="a\nTOKEN=x"; export B\nTOKEN=old\n', 'B="a\nTOKEN=x"; export B\nTOKEN=new\n'),
        ("B=$'it\\'s' # it's\n# it's\nC=$(id)\nTOKEN=old\n", "B=$'it\\'s' # it's\n# it's\nC=$(id)\nTOKEN=new\n"),
        ("TOKEN=old\r\nB=2\r\n", "TOKEN=new\r\nB=2\r\n"),
        ("TOKEN=one\nB=2\nexport TOKEN=two", "TOKEN=new\nB=2\nexport TOKEN=new"),
        ('TOKEN="one\ntwo\\"\nB=2"\nC=3\n', "TOKEN=new\nC=3\n"),
        ("B='\nTOKEN=text of B\n' # B\nTOKEN=old\n", "B='\nTOKEN=text of B\n' # B\nTOKEN=new\n"),
        ("B=\"it's\"\nC='a'b\nTOKEN=old\nD=its\n", "B=\"it's\"\nC='a'b\nTOKEN=new\nD=its\n"),
        ("# TOKEN=no\nTOKEN\nTOKEN=\n", "# TOKEN=no\nTOKEN\nTOKEN=new\n"),
        ("\ufeffTOKEN=old\n", "\ufeffTOKEN=new\n"),
    ],
)
def test_an_entry_is_set_and_all_other_text_is_unchanged(before: str, after: str) -> None:
    assert dotenv.with_entry(before, "TOKEN", "new") == after


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("TOKEN=one\nB=2\nexport TOKEN=two\n", "two"),  # programs that read the file use the last one
        ('TOKEN=one\nTOKEN="a \\"b\\" #c"\n', 'a "b" #c'),
        ("TOKEN='a b'\n", "a b"),
        ("B=1\n", ""),
        ("TOKEN=\n", ""),
    ],
)
def test_the_value_of_an_entry_is_the_one_that_programs_read(text: str, value: str) -> None:
    assert dotenv.entry(text, "TOKEN") == value


@pytest.mark.parametrize("text", ['A=1\nB="open\nTOKEN=old\n', "A=1\nTOKEN='open\nB='x'\n", "A=1\nB=' \n"])
def test_a_quote_that_is_not_closed_is_refused_with_its_line(text: str) -> None:
    why = "line 2 has an unclosed quote; close it"
    with pytest.raises(Undeliverable, match=why):
        dotenv.with_entry(text, "TOKEN", "new")
    with pytest.raises(Undeliverable, match=why):
        dotenv.entry(text, "TOKEN")


@pytest.mark.parametrize(
    "line",
    ["B=$'a", 'B=foo"', "B=it's", "B=`id", "B=$(id", "B=(", "cat <<EOF", "B=$(cat <<-'EOF')", "B=a\\", "C=1; B='a"],
)
def test_a_value_that_a_shell_continues_on_the_next_line_is_refused(line: str) -> None:
    for text in (f"A=1\n{line}\nTOKEN=x'\n", f"A=1\n{line}"):
        with pytest.raises(
            Undeliverable, match=r"line 2 has an unclosed quote, bracket or here-document, .*; quote the whole"
        ):
            dotenv.with_entry(text, "TOKEN", "new")


@pytest.mark.parametrize(
    "line", ["TOKEN=my old", "TOKEN=old B=1", "TOKEN=old;1", "TOKEN='a'b", 'TOKEN=a"b #c"', "export TOKEN=a && id"]
)
def test_text_that_may_be_part_of_the_value_is_refused(line: str) -> None:
    why = "line 2 has more than a comment after the value of TOKEN; quote"
    with pytest.raises(Undeliverable, match=why):
        dotenv.with_entry(f"\n{line}\n", "TOKEN", "new")
    with pytest.raises(Undeliverable, match=why):
        dotenv.entry(f"\n{line}\n", "TOKEN")


@pytest.mark.parametrize(
    "line",
    ["TOKEN=a#b # the berlin agent", "TOKEN = a#b\t# c", "TOKEN='a#b' # c", 'TOKEN="a#b" # c', "export TOKEN=a#b B=1"],
)
def test_text_after_a_value_is_not_part_of_it(line: str) -> None:
    assert dotenv.entry(f"{line}\n", "TOKEN") == "a#b"


@given(lines=st.lists(LINES), newline=st.sampled_from(["\n", "\r\n"]))
def test_a_set_entry_reads_back_and_setting_it_again_changes_nothing(lines: list[str], newline: str) -> None:
    once = dotenv.with_entry(newline.join(lines), "TOKEN", "new")
    assert (dotenv.entry(once, "TOKEN"), dotenv.with_entry(once, "TOKEN", "new")) == ("new", once)
    assert dotenv.entry(once, "OTHER") == dotenv.entry(newline.join(lines), "OTHER")
