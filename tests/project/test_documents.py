"""Parts of reading a document: outside values, references, durations, phrases, deliveries, layers and slots."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.languages.yaml import reader as yaml
from reconciler.languages.yaml.reader import Document
from reconciler.model.address import Address
from reconciler.model.manifest import Ensure, Rotation
from reconciler.model.problem import Position
from reconciler.model.value import Ref, Secret, Template
from reconciler.project import files
from reconciler.project.documents import durations, envelope, functions, phrases
from reconciler.project.documents.merge import Layer, MergedDocument, Role, SourceLocation, find_path, layers_of, merge
from reconciler.project.documents.outside import MAX_INCLUDE, Outside
from reconciler.project.documents.references import Declared, References, Unresolved


def document(text: str, file: str = "a.yaml") -> Document:
    (found,) = yaml.read(text.encode(), file).documents
    return found


# --- sources outside --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "is_secret", "problem"),
    [
        (None, False, "is not set"),
        (None, True, "is not set"),
        ("", True, "is empty"),
        ("", False, None),
        ("a\udcffb", False, "is not UTF-8"),
        ("\udc80", True, "is not UTF-8"),
        ("\u00e9\U0001f600\ue000", True, None),
        ("\ud7ff", True, None),
        (" x \n", True, None),
    ],
)
def test_an_environment_variable_is_read_unchanged_or_refused(
    tmp_path: Path, text: str | None, is_secret: bool, problem: str | None
) -> None:
    outside = Outside(tmp_path, {} if text is None else {"NAME": text})
    if problem is None:
        assert outside.read("from_env", "NAME", is_secret=is_secret) == text
        return
    with pytest.raises(Unresolved, match=f"the environment variable NAME {problem}") as raised:
        outside.read("from_env", "NAME", is_secret=is_secret)
    remedy = "set it to UTF-8 text" if "UTF" in problem else "export NAME where reconciler runs"
    assert (raised.value.remedy, raised.value.code) == (remedy, "unset-environment-variable")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"secret\n", "secret"),
        (b"secret\r\n", "secret"),
        (b"secret\n\n", "secret"),
        (b"\n", ""),
        (b" secret ", " secret "),
        (b"two\nlines\n", "two\nlines\n"),
        (b"\nsecret\n", "\nsecret\n"),
    ],
)
def test_a_line_break_at_the_end_of_a_single_line_is_not_part_of_it(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "file").write_bytes(content)
    outside = Outside(tmp_path, {})
    assert outside.read("from_file", "./file", is_secret=True) == text
    assert outside.included_files == {"file": content}


def test_a_file_is_read_once_and_one_that_is_not_text_is_refused_at_its_byte(tmp_path: Path) -> None:
    outside = Outside(tmp_path, {})
    (tmp_path / "file").write_bytes(b"ab\xff")
    with pytest.raises(Unresolved, match="file is not UTF-8: byte 0xff at offset 2"):
        outside.read("from_file", "file", is_secret=False)
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(Unresolved, match="byte 0xff"):
        outside.read("from_file", "file", is_secret=False)
    (tmp_path / "large").write_bytes(b"x" * MAX_INCLUDE)
    assert len(outside.read("from_file", "large", is_secret=False)) == MAX_INCLUDE == 1024 * 1024
    (tmp_path / "larger").write_bytes(b"x" * (MAX_INCLUDE + 1))
    with pytest.raises(files.Unreadable, match="larger is larger than 1 MiB"):
        outside.read("from_file", "larger", is_secret=False)


def test_a_source_exists_if_it_is_a_file_a_link_or_included(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    outside = Outside(tmp_path, {"file": "x"})
    outside.included_files["given"] = b""
    names = ("file", "./file", "link", "given", "./given", "none")
    assert [name for name in names if outside.has("from_file", name, is_secret=True)] == list(names[:5])
    with pytest.raises(files.Unreadable):
        outside.has("from_file", "../file", is_secret=True)


# --- references -------------------------------------------------------------------------------------------------------


def references(declared: Mapping[str, Ensure] | None = None, **more: Any) -> References:
    known = Declared(**more)
    for address, ensure in (declared or {}).items():
        known.add(Address.parse(address), ensure)
    return References(known)


PRESENT, ABSENT = Ensure.PRESENT, Ensure.ABSENT
KNOWN = {
    "IPPolicy/a": PRESENT,
    "ReservedAddress/x": PRESENT,
    "ReservedAddress/x.addr": PRESENT,
    "TunnelCredential/t": PRESENT,
    "AgentConfig/c": PRESENT,
    "IPPolicy/gone": ABSENT,
    "Vault/v": Ensure.FORGOTTEN,
}


@pytest.mark.parametrize(
    ("text", "kinds", "found"),
    [
        ("IPPolicy/a", (), "IPPolicy/a id"),
        ("IPPolicy/a", ("Vault", "IPPolicy"), "IPPolicy/a id"),
        ("IPPolicy/a.id", ("IPPolicy",), "IPPolicy/a id"),
        ("ReservedAddress/x.addr", (), "ReservedAddress/x.addr id"),
        ("ReservedAddress/x.addr.addr", (), "ReservedAddress/x.addr addr"),
        ("ReservedAddress/x.id", (), "ReservedAddress/x id"),
        ("IPPolicy/a", ("Vault",), "refers to the kind IPPolicy; this field takes a reference to Vault"),
        ("IPPolicy/a", ("Vault", "BotUser"), "refers to the kind IPPolicy; this field takes a reference to Vault or B"),
        (
            "ReservedAddress/x.addr.addr",
            ("ReservedAddress",),
            "refers to the output addr of ReservedAddress/x.addr; this field takes an id",
        ),
        ("AgentConfig/c", (), "refers to AgentConfig/c, which is rendered to a file and has no outputs"),
        ("each.key", (), "'each.key' is only available in a manifest with for_each"),
        ("eachother", (), "'eachother' is not a reference"),
        ("IPPolicy", (), "'IPPolicy' is not a reference"),
        ("IPPolicy/", (), "'IPPolicy/' is not a reference"),
        ("/a", (), "refers to the unknown kind "),
        ("IP Policy/a", (), "refers to the unknown kind IP Policy"),
        ("IPPolicy/gone", (), "refers to IPPolicy/gone, which is declared absent"),
        ("IPPolicy/gone.id", (), "refers to IPPolicy/gone, which is declared absent"),
        ("Vault/v", (), "Vault/v id"),
        ("TunnelCredential/t.token", (), "TunnelCredential/t.token is a one-time secret and cannot be referenced"),
        ("TunnelCredential/t.tokens", (), "TunnelCredential has no output tokens"),
        ("IPPolicy/a.description", (), "IPPolicy has no output description (a field of its manifest: write the value"),
        ("IPPolicy/a.x.y", (), "IPPolicy has no output x.y"),
        ("IPPolicy/none", (), "refers to IPPolicy/none, which is not declared"),
        ("IPPolicy/none.x.y", (), "refers to IPPolicy/none.x.y, which is not declared"),
    ],
)
def test_a_reference_names_a_declared_resource_and_one_of_its_outputs(
    text: str, kinds: tuple[str, ...], found: str
) -> None:
    known = references(KNOWN)
    for _ in range(2):  # the second result is from the cache
        if found.endswith((" id", " addr")) and not found.startswith("refers"):
            address, _, output = found.rpartition(" ")
            assert known.find(text, kinds) == Ref(Address.parse(address), output)
        else:
            with pytest.raises(Unresolved) as raised:
                known.find(text, kinds)
            assert str(raised.value).startswith(found)


@pytest.mark.parametrize(
    ("text", "remedy", "values"),
    [
        ("TunnelCredential/t.tok", "use id", {"output": "tok"}),
        ("ReservedAddress/x.adr", "did you mean addr?", {"output": "adr", "suggestion": "addr"}),
        ("IPPolicy/aa", "did you mean IPPolicy/a?", {"reference": "IPPolicy/aa"}),
        ("ReservedAddress/xs.addr", "did you mean ReservedAddress/x.addr?", {"reference": "ReservedAddress/xs.addr"}),
        ("IPPolicy/aa.metadata", "did you mean IPPolicy/a?", {"reference": "IPPolicy/aa.metadata"}),
        ("IPPolicy/zzz", "declare it, or write the id of an existing object", {"reference": "IPPolicy/zzz"}),
        ("TLSEdge/a", "declare it, or write the id of an existing object", {"reference": "TLSEdge/a"}),
        ("IPPolic/a", "did you mean IPPolicy?", {}),
        ("Zzz/a", "`reconciler kinds` lists all kinds", {}),
    ],
)
def test_the_remedy_for_an_invalid_reference_suggests_the_closest_match(
    text: str, remedy: str, values: dict[str, str]
) -> None:
    with pytest.raises(Unresolved) as raised:
        references(KNOWN).find(text, ())
    found = raised.value
    assert (found.remedy, dict(found.values)) == (remedy, values)


def test_the_remedy_for_a_reference_to_the_wrong_kind_names_the_first_that_fits() -> None:
    with pytest.raises(Unresolved) as raised:
        references(KNOWN).find("IPPolicy/a", ("Vault", "BotUser"))
    assert raised.value.remedy == "write {ref: Vault/NAME}"


def test_an_unknown_target_is_accepted_while_a_file_could_not_be_read() -> None:
    assert references(complete=False).find("IPPolicy/a.b", ()) == Ref(Address("IPPolicy", "a.b"))
    left_out = {Address("IPPolicy", "a"): Position("environments/x.yaml", 1, 1)}
    with pytest.raises(Unresolved, match=r"which environments/x\.yaml:1:1 leaves out"):
        references(left_out=left_out).find("IPPolicy/a", ())
    with pytest.raises(Unresolved, match="which is not declared"):
        references(left_out=left_out).find("IPPolicy/b", ())


def test_the_first_of_two_declarations_with_one_address_is_used() -> None:
    known = Declared()
    known.add(Address("IPPolicy", "a"), PRESENT)
    known.add(Address("IPPolicy", "a"), ABSENT)
    assert known.ensures == {Address("IPPolicy", "a"): PRESENT}


# --- durations and phrases --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7s", 7), ("2m", 120), ("3h", 10_800), ("90d", 7_776_000), ("2w", 1_209_600), ("999999s", 999_999), ("0s", 0)],
)
def test_a_duration_is_a_number_of_seconds(text: str, seconds: int) -> None:
    assert (durations.check_duration(text), durations.to_seconds(text)) == (None, seconds)


@pytest.mark.parametrize("text", ["", "7", "s", "7y", "-7s", "1.5h", "7 s", "1234567s", "7s "])
def test_texts_of_another_form_are_not_durations(text: str) -> None:
    assert durations.check_duration(text) == f"{text!r} is not a duration; write a duration, as in 90d or 24h"


@pytest.mark.parametrize(
    ("key", "operand", "remedy"),
    [
        ("env", "NAME", "write {from_env: NAME}"),
        ("fromEnv", "NAME", "write {from_env: NAME}"),
        ("value-from-env", "NAME", "write {from_env: NAME}"),
        ("secret", "hunter2", "write {from_env: …}"),
        ("secret", "A" * 62, "write {from_env: …}"),
        ("file", "a/b.txt", "write {from_file: a/b.txt}"),
        ("path", "/etc/passwd", "write {from_file: …}"),
        ("file", 3, "write {from_file: …}"),
        ("$ref", "IPPolicy/a", "write {ref: IPPolicy/a}"),
        ("refs", "hunter2", "write {ref: …}"),
        ("refs", None, "write {ref: …}"),
        ("other", "NAME", ""),
        ("", "", ""),
    ],
)
def test_a_misspelled_expression_is_suggested_without_a_value_that_may_be_secret(
    key: str, operand: Any, remedy: str
) -> None:
    assert phrases.suggest_expression(key, operand) == remedy


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "nothing"),
        (True, "true"),
        (False, "false"),
        (1, "a whole number"),
        (1.5, "a number"),
        ("", "text"),
        (Secret("x", "y"), "text"),
        ([], "a list"),
        ({}, "a map"),
        ({"ref": 1}, "a reference"),
        ({"from_env": 1}, "a value from the environment"),
        ({"from_file": 1}, "a value from a file"),
        ({"ref": 1, "from_env": 1}, "a map"),
        ({"a": 1}, "a map"),
        (Template(()), "a reference"),
        (Ref(Address("A", "b")), "a reference"),
        (object(), "something else"),
    ],
)
def test_a_value_is_described_by_its_type(value: Any, words: str) -> None:
    assert phrases.describe_found(value) == words


def test_paths_and_words_are_formatted() -> None:
    assert phrases.format_path(("a", 0, "b", 1, 2)) == "a[0].b[1][2]"
    assert phrases.format_path((0, "a")) == "[0].a"
    assert phrases.format_path(()) == ""
    assert phrases.join_words(["a"]) == "a"
    assert phrases.join_words(["a", "b"], "and") == "a and b"
    assert phrases.join_words(["a", "b", "c"]) == "a, b or c"


# --- functions --------------------------------------------------------------------------------------------------------


def charge_nothing(value: Any) -> None:
    """The budget of calls of any size."""


@pytest.mark.parametrize(
    ("expression", "problem", "remedy"),
    [
        ("lower(x.y) z", "unexpected z after the call", "write one call in ${{ … }}"),
        ("upper(x.y)", "unknown function upper", "use lower, join, split, default or format"),
        ("lowr(x.y)", "unknown function lowr", "did you mean lower?"),
        ("lower(lowr(x.y))", "unknown function lowr", "did you mean lower?"),
        ("lower(upper(x.y))", "unknown function upper", "use lower, join, split, default or format"),
        ("lower(,)", "expected an argument, found ','", 'write var.name, "text" or a number'),
        ("lower(", "expected an argument, found 'the end'", 'write var.name, "text" or a number'),
        ("lower(x.y x.z)", "expected ',' or ')', found 'x.z'", "separate arguments by ','"),
        ("lower(x.y;)", "cannot read ';)'", 'write arguments as var.name, "text" or a number'),
        ("lower(1a)", "cannot read '1a)'", 'write arguments as var.name, "text" or a number'),
        (r'lower("\x")', r'"\x" is not a text', "escape characters as in JSON, or use single quotes"),
        ("lower(A/b)", "A/b is a reference, whose value is known only after", "use functions with variables and texts"),
        ("lower(x.y, x.y)", "lower takes 1 argument", "write lower(var.name)"),
        ("split(x.y)", "split takes 2 arguments", 'write split(var.text, ",")'),
        ("format()", "format takes 1 argument", 'write format("{0}-{1}", var.a, var.b)'),
        ("default(x.y)", "default takes 2 arguments", 'write default(var.name, "text")'),
        ("join(x.y)", "join takes 2 arguments", 'write join(var.list, ",")'),
        ("join(x.list, null)", "join takes text, found nothing", "name a text or a number"),
        ("join(x.lists, ',')", "join takes text, found a list", "name a text or a number"),
        ("split(x.list, ',')", "split takes text, found a list", "name a text or a number"),
        ("format(null)", "format takes text, found nothing", "name a text or a number"),
        ("format('{0}', x.list)", "format takes text, found a list", "name a text or a number"),
        ("format('{0} {2}', 1, 2)", "format has no argument for {2}", "number the arguments from {0}"),
    ],
)
def test_an_invalid_call_is_reported_with_a_valid_one(expression: str, problem: str, remedy: str) -> None:
    values = {"x.y": "Y", "x.z": "Z", "x.list": ["a"], "x.lists": [["a"]]}
    with pytest.raises(functions.InvalidCall) as raised:
        functions.evaluate(expression, values.__getitem__, charge_nothing)
    assert str(raised.value).startswith(problem)
    assert raised.value.remedy == remedy


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("default(null, 'x')", "x"),
        ("default('', 'x')", "x"),
        ("default(0, 'x')", 0),
        ("default(-1.5, 'x')", -1.5),
        ("default(10, 'x')", 10),
        ("format('{1}{0}', 1, 2.5)", "2.51"),
        ("format('{01}', 1, 2)", "2"),
        ("format('a')", "a"),
        ("join(split('a-b', '-'), '')", "ab"),
        ("lower(7)", "7"),
        ("lower( 'A' , )", "a"),
        ("split('', ',')", []),
        ("split('a', ',')", ["a"]),
        ("lower(" * 8 + "'A'" + ")" * 8, "a"),
    ],
)
def test_literals_are_arguments(expression: str, value: Any) -> None:
    found = functions.evaluate(expression, dict[str, Any]().__getitem__, charge_nothing)
    assert (found, type(found)) == (value, type(value))


def test_a_result_may_have_exactly_the_largest_length() -> None:
    texts: dict[str, Any] = {"x.a": "a" * functions.MAX_LENGTH, "x.b": "a," * (functions.MAX_LENGTH - 1)}
    lowered = functions.evaluate("lower(x.a)", texts.__getitem__, charge_nothing)
    assert len(str(lowered)) == functions.MAX_LENGTH == 100_000
    assert len(functions.evaluate("split(x.b, ',')", texts.__getitem__, charge_nothing)) == functions.MAX_LENGTH
    for expression in ("format('{0}b', x.a)", "split(format('{0},', x.b), ',')"):
        with pytest.raises(functions.InvalidCall, match="more than 100,000 characters or items"):
            functions.evaluate(expression, texts.__getitem__, charge_nothing)


def test_calls_are_distinguished_from_references_and_list_their_arguments() -> None:
    assert [text for text in ("lower(a)", "a_1 (", "lower", "(a)", "1(a)", "A/b(c)") if functions.is_call(text)] == [
        "lower(a)",
        "a_1 (",
    ]
    assert [*functions.names_in("join(split(var.a, each.b), x, 'var.c')")] == ["var.a", "each.b"]
    assert [*functions.names_in("join(var.a; var.b)")] == ["var.a"]


# --- layers -----------------------------------------------------------------------------------------------------------


def test_a_map_of_several_layers_has_the_position_in_the_manifest_or_the_lowest_layer() -> None:
    below = document("\n\nspec: {a: {x: 1}, b: {x: 1}, c: {x: 1}, f: {x: 1}}\n", "defaults.yaml")
    own = document("\nspec: {a: {y: 2}, d: {y: 2}, f: 3}\n", "manifest.yaml")
    above = document("spec: {a: {z: 3}, b: {z: 3}, d: {z: 3}, e: {z: 3}, f: {z: 3}}\n", "environment.yaml")
    layers = [
        Layer(role, document.value, document.places)
        for role, document in zip((Role.DEFAULTS, Role.MANIFEST, Role.ENVIRONMENT), (below, own, above), strict=True)
    ]
    merged = merge(layers, layers[1])
    files_of = {name: merged.places[("spec", name)].file.partition(".")[0] for name in "abcdef"}
    assert files_of == {
        "a": "manifest",
        "b": "defaults",
        "c": "defaults",
        "d": "manifest",
        "e": "environment",
        "f": "environment",
    }
    assert merged.value["spec"]["f"] == {"z": 3}
    assert ("spec", "f", "x") not in merged.places
    assert merged.places.start == Position("manifest.yaml", 2, 1)
    assert merged.places.key(("spec", "c", "x")) == Position("defaults.yaml", 3, 34)
    assert isinstance(merged.places, MergedDocument)
    with pytest.raises(KeyError):
        merged.places.layer(("spec", "f", "x"))
    removing = document("spec: {a: null, d: {y: null}}\n", "environment.yaml")
    removed = merge([*layers[:2], Layer(Role.ENVIRONMENT, removing.value, removing.places)], layers[1])
    assert removed.value["spec"]["d"] == {}
    assert [path for path in (("spec", "a"), ("spec", "d", "y"), ("spec", "b")) if path in removed.places] == [
        ("spec", "b")
    ]
    assert object() not in merged.places
    assert layers_of(merged.places) == tuple(layers)
    assert [layer.value for layer in layers_of(own.places)] == [own.value]
    assert layers_of({}) == ()


def test_a_position_below_a_grafted_value_is_in_its_source_document() -> None:
    items, manifest = document("list: [{a: 1}]\n", "items.yaml"), document("kind: K\nspec: {x: here, y: {a: 1}}\n")
    layer = Layer(
        Role.MANIFEST, manifest.value, manifest.places, (), {("spec", "y"): SourceLocation(items.places, ("list", 0))}
    )
    assert layer.spot(("spec", "y", "a")).position == Position("items.yaml", 1, 12)
    assert layer.spot(("spec", "y")).written_value == {"a": 1}
    assert layer.spot(("spec", "x")).position == Position("a.yaml", 2, 11)
    assert layer.template(("spec", "y")).position == Position("a.yaml", 2, 20)
    key = SourceLocation(items.places, ("list",), of_key=True)
    assert (key.position, key.written_value) == (Position("items.yaml", 1, 1), "list")
    nested = Layer(Role.ENVIRONMENT, {"a": 1}, items.places, ("list", 0))
    assert nested.spot(("a",)).position == Position("items.yaml", 1, 12)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ((), ({"a": [{"b": 1}], "n": None}, True)),
        (("a", 0, "b"), (1, True)),
        (("n",), (None, True)),
        (("n", "x"), (None, False)),
        (("a", 1), ([{"b": 1}], False)),
        (("a", "b"), ([{"b": 1}], False)),
        (("a", 0, "b", 0), (1, False)),
        (("x",), ({"a": [{"b": 1}], "n": None}, False)),
    ],
)
def test_a_path_is_followed_as_far_as_it_exists(path: Any, found: tuple[Any, bool]) -> None:
    assert find_path({"a": [{"b": 1}], "n": None}, path) == found


# --- deliveries and other keys beside the spec ------------------------------------------------------------------------


def findings(more: str, kind: str = "TunnelCredential") -> list[str]:
    draft, found = envelope.read_draft("a.yaml", document(f"kind: {kind}\nname: a\n{more}\n"))
    assert draft.envelope is not None
    return [f"{phrases.format_path(finding.path)}: {finding.text}; {finding.remedy}" for finding in found]


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("TunnelCredential", "deliver: {token: {to_vault: {path: secrets/a}}}"),
        ("TunnelCredential", "deliver: {token: {to_vault: {path: secret/a, mount: kv}}}"),
        ("TunnelCredential", "lifecycle: {unmanaged_children: report}"),
        ("TunnelCredential", f"deliver: {{token: {{to_github_secret: {{repository: a/b, name: {'A' * 255}}}}}}}"),
        ("TunnelCredential", "id: cr_1"),
        ("IPPolicy", "lifecycle: {unmanaged_children: delete}"),
    ],
)
def test_valid_keys_beside_the_spec_are_accepted(kind: str, more: str) -> None:
    assert findings(more, kind) == []


def test_the_name_of_a_github_secret_has_at_most_255_characters() -> None:
    assert findings(f"deliver: {{token: {{to_github_secret: {{repository: a/b, name: {'A' * 256}}}}}}}") == [
        f"deliver.token.to_github_secret.name: '{'A' * 256}' is not a valid name of a GitHub secret; "
        "use letters, digits and '_'"
    ]


def test_an_envelope_holds_durations_in_seconds() -> None:
    text = "kind: TunnelCredential\nname: a\nrotate: {after: 90d, overlap: 24h}\nid: cr_1\n"
    draft, found = envelope.read_draft("a.yaml", document(text))
    assert found == []
    assert draft.envelope is not None
    assert draft.envelope.id == "cr_1"
    assert draft.envelope.rotate == Rotation(7_776_000, 86_400)


@pytest.mark.parametrize(
    ("deliver", "target", "settings"),
    [
        ("{to_file: ./a//b}", "a/b", {}),
        ("{to_dotenv: {file: ./e, name: N}}", "e", {"name": "N"}),
        ("{to_kubernetes_secret: {file: ./k, name: n}}", "k", {"name": "n", "key": "token"}),
        (
            "{to_kubernetes_secret: {file: k, name: n, key: x, namespace: s}}",
            "k",
            {"name": "n", "key": "x", "namespace": "s"},
        ),
        ("{to_command: {run: [a, b]}}", "a", {"run": ["a", "b"], "check": []}),
        (
            "{to_command: {run: [a], check: [c], env: [X]}}",
            "a",
            {"run": ["a"], "check": ["c"], "env": ["X"]},
        ),
        ("{to_github_secret: {repository: o/r, name: N}}", "o/r", {"name": "N"}),
        ("{to_github_secret: {repository: o/r, name: N, environment: e}}", "o/r", {"name": "N", "environment": "e"}),
        ("{to_vault: {path: p}}", "secret/p", {"path": "p", "key": "token", "mount": "secret"}),
    ],
)
def test_a_delivery_has_a_target_and_settings(deliver: str, target: str, settings: dict[str, Any]) -> None:
    text = f"kind: TunnelCredential\nname: a\ndeliver:\n  token: {deliver}\n"
    draft, found = envelope.read_draft("a.yaml", document(text))
    assert found == []
    delivery = draft.deliver["token"]
    assert (delivery.way, delivery.target, dict(delivery.settings)) == (deliver[1:].partition(":")[0], target, settings)
    assert delivery.position == Position("a.yaml", 4, 10)


def test_a_document_with_problems_has_an_address_and_no_further_findings() -> None:
    reading = yaml.read(b"kind: IPPolicy\nname: a\nname: a\nmore: 1\n", "a.yaml")
    draft, found = envelope.read_draft("a.yaml", reading.documents[0])
    assert (draft.subject, draft.envelope, found) == ("IPPolicy/a", None, [])
