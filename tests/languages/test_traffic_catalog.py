"""Each variable, function and method that the platform documents is accepted, and a misspelling is an error."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.languages import cel, cel_check, traffic_catalog
from reconciler.model.problem import Severity


def test_every_variable_function_and_method_of_the_tables_is_accepted() -> None:
    samples = {"string": "''", "int": "1", "dyn": "vars", "list<dyn>": "[vars]", "map<string,dyn>": "{'a': vars}"}
    samples |= {"bytes": "b''", "list<string>": "['']"}
    for name, kind in traffic_catalog.variables().items():
        assert cel.check_types(name, cel_check._language())[1] == (), (name, kind)
    for table in (traffic_catalog.FUNCTIONS, traffic_catalog.METHODS):
        for receiver, name, arguments, _ in traffic_catalog.signatures(table):
            text = f"{name}({', '.join(samples[argument] for argument in arguments)})"
            text = f"{samples[receiver]}.{text}" if receiver else text
            assert cel_check.find_flaws(text, is_condition=False) == (), text


NAMES = sorted(
    name
    for name in traffic_catalog.variables()
    if traffic_catalog.variables()[name] == "string" and len(name.rpartition(".")[2]) > 2
)


@given(st.sampled_from(NAMES), st.data())
def test_two_swapped_letters_are_always_an_error(name: str, data: st.DataObject) -> None:
    owner, _, last = name.rpartition(".")
    at = data.draw(st.integers(0, len(last) - 2))
    swapped = last[:at] + last[at + 1] + last[at] + last[at + 2 :]
    if f"{owner}.{swapped}" in traffic_catalog.variables() or swapped == last:
        return
    (only,) = cel_check.find_flaws(f"{owner}.{swapped} == 'x'")
    assert (only.code, only.column) == ("traffic-member", len(owner) + 2)
    assert only.severity is Severity.ERROR
