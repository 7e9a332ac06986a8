"""Forms: plain values are read without pydantic, all others as pydantic reads them."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Annotated, Any

import pytest
from annotated_types import MaxLen
from pydantic import Field, ValidationError

from reconciler.model.fields.annotations import Between, MinItems
from reconciler.model.fields.form import Form
from reconciler.model.fields.readers import InDoubt


class Part(Form):
    size: Annotated[int, Between(1, 3)] = 1


class Whole(Form):
    """An example."""

    name: str
    part: Part | None = None
    parts: list[Part] = []  # noqa: RUF012 - copied for each instance
    words: Annotated[list[str], MinItems(1)] = ["a"]  # noqa: RUF012 - as above
    document: str | dict[str, Any] = ""
    short: Annotated[str, MaxLen(3)] = ""
    low: Annotated[int, Field(le=3)] = 1


class Narrow(Whole):
    name: str = "narrow"
    more: float = 0


def test_a_plain_value_has_the_fields_in_their_order_and_those_that_were_written() -> None:
    read = Whole.model_read({"words": ["b"], "name": "a", "part": {}})
    assert [*vars(read)] == [*Whole.model_fields]
    assert (read.name, read.words, read.part) == ("a", ["b"], Part())
    assert read.model_fields_set == {"name", "words", "part"}


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"name": 1},
        {"name": "a", "other": 1},
        {"name": "a", "part": {"size": 4}},
        {"name": "a", "part": {"size": True}},
        {"name": "a", "words": []},
        [],
        None,
    ],
)
def test_a_wrong_value_is_in_doubt_and_refused_by_pydantic(written: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of any kind
        Whole.model_read(written)
    assert isinstance(Whole.model_try(written), ValidationError)


@pytest.mark.parametrize("more", [{"document": {"a": 1}}, {"short": "abc"}, {"low": 2}, {"name": "\ud800"}])
def test_a_type_without_a_reader_is_left_to_pydantic(more: dict[str, Any]) -> None:
    written = {"name": "a", "parts": [{"size": 2}], **more}
    with pytest.raises((InDoubt, UnicodeEncodeError)):
        Whole.model_read(written)
    read = Whole.model_validate(written)
    assert type(read) is Whole
    assert read.parts == [Part(size=2)]
    assert read.model_dump() == {**Whole(name="a").model_dump(), **written}


def test_pydantic_judges_what_such_an_annotation_refuses() -> None:
    for more in ({"short": "abcd"}, {"low": 4}, {"document": 1}):
        assert isinstance(Whole.model_try({"name": "a", **more}), ValidationError)


def test_a_form_in_a_form_may_be_written_as_an_instance() -> None:
    assert Whole(name="a", part=Part(size=2)) == Whole.model_validate({"name": "a", "part": {"size": 2}})
    assert Whole(name="a", part=Part(size=2), low=2).part == Part(size=2)


def test_fields_of_a_base_come_first_and_can_be_replaced() -> None:
    assert [*Narrow.model_fields] == [*Whole.model_fields, "more"]
    assert Narrow.model_read({}).name == "narrow"
    assert isinstance(Narrow.model_read({"more": 1}).more, float)


def test_instances_share_no_default_that_can_be_changed() -> None:
    assert Whole(name="a").words is not Whole(name="a").words
    assert Whole.model_construct().words is not Whole.model_construct().words


def test_a_form_without_its_required_fields_has_the_defaults_of_the_others() -> None:
    made = Whole.model_construct()
    assert made.words == ["a"]
    assert not hasattr(made, "name")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda form: pickle.loads(pickle.dumps(form))])  # noqa: S301 - our own
def test_a_copy_is_equal_and_has_the_same_written_fields(copied: Any) -> None:
    form = Whole(name="a", part=Part(size=2))
    assert copied(form) == form
    assert hash(copied(Part())) == hash(Part())
    assert copied(form).model_fields_set == {"name", "part"}
    assert copied(form) != form.model_copy(update={"name": "b"})


def test_a_form_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(Whole(name="a"), "name", "b")  # noqa: B010 - what a type checker would refuse
    with pytest.raises(ValidationError, match="frozen"):
        delattr(Whole(name="a"), "name")


def test_a_dump_leaves_out_unset_and_default_values_on_request() -> None:
    form = Whole(name="a", part=Part(size=2))
    assert form.model_dump(exclude_defaults=True) == {"name": "a", "part": {"size": 2}}
    assert form.model_dump(exclude={"words", "part"}, exclude_none=True) == {
        "name": "a",
        "parts": [],
        "document": "",
        "short": "",
        "low": 1,
    }


def test_plain_values_load_no_pydantic() -> None:
    code = (
        "import sys\n"
        "from reconciler.project.settings.project_file import ProjectFile\n"
        "ProjectFile(stack='a', limits={'concurrency': 2})\n"
        "print('pydantic' in sys.modules, 'annotated_types' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False False\n"
