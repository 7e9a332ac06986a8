"""What a kind offers besides the fields of its spec."""

from __future__ import annotations

from reconciler.model.fields.field import Field
from reconciler.model.fields.spec import Read
from reconciler.model.kind import Kind
from tests.model.test_fields import Example


class ExampleRead(Read):
    address: str = ""


def test_a_kind_has_its_id_and_the_fields_of_responses_as_outputs() -> None:
    kind = Kind(spec=Example, read=ExampleRead, path="/examples", list_key="examples", id_prefix="ex_")
    assert kind.name == "Example"
    assert kind.outputs[:2] == ("id", "address")
    assert isinstance(kind.by_name["name"], Field)
    assert not kind.keeps_owner
