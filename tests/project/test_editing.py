import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.compat import StringIO

from reconciler.model.problem import Rejected
from reconciler.project import yaml
from reconciler.project.editing import ORDER, fmt, is_formatted
from tests.project.test_yaml import JSON

UNTIDY = """\
# licence

# about the spec
spec:
    hostports:
    - "a.example.com:443"   # first
    text: |
      not moved
        # not a comment
# about the name
name: x
kind: TLSEdge # end of line

# the end
---
name: y
kind: IPPolicy
"""

TIDY = """\
# licence

kind: TLSEdge # end of line
# about the name
name: x
# about the spec
spec:
  hostports:
    - "a.example.com:443"   # first
  text: |
    not moved
      # not a comment

# the end
---
kind: IPPolicy
name: y
"""


def test_keys_come_in_order_with_their_comments() -> None:
    assert fmt(UNTIDY, "f.yaml") == TIDY


def test_a_formatted_text_is_said_to_be_so() -> None:
    assert is_formatted(TIDY, "f.yaml")
    assert not is_formatted(UNTIDY, "f.yaml")


def test_a_file_with_problems_is_not_touched() -> None:
    with pytest.raises(Rejected, match=r"^f\.yaml:2:1: the key 'a' is written twice"):
        fmt("a: 1\na: 2\n", "f.yaml")


@pytest.mark.parametrize("text", ["a: 1\n...\n", "%YAML 1.2\n---\na: 1\n"])
def test_directives_are_not_lost_but_refused(text: str) -> None:
    with pytest.raises(Rejected, match=r"directives and '\.\.\.' cannot be laid out"):
        fmt(text, "f.yaml")


def test_nothing_but_comments_stays() -> None:
    assert fmt("# later\n", "f.yaml") == "# later\n"


DOCUMENT = st.lists(st.sampled_from(ORDER), unique=True, min_size=1).flatmap(
    lambda keys: st.fixed_dictionaries(dict.fromkeys(keys, JSON))
)


@settings(max_examples=40, deadline=None)  # ruamel.yaml is slow, and hypothesis' default a hundred
@given(st.lists(DOCUMENT, min_size=1, max_size=2))
def test_a_second_time_changes_nothing_and_the_meaning_stays(documents: list[dict]) -> None:
    out = StringIO()
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.dump_all(documents, out)
    once = fmt(out.getvalue(), "f.yaml")
    assert fmt(once, "f.yaml") == once
    assert [each.value for each in yaml.read(once.encode(), "f.yaml").documents] == documents
