"""The whole life of each kind on a sandbox in process: created, in sync, updated field by field, reset, replaced,
repaired, created again, adopted, destroyed. The expectations are derived from the kind's own fields.

In `make test`, an object of each kind is created, updated, reset, replaced and repaired; one of each trait that matters
for it is deleted and created again.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reconciler import kinds
from reconciler.cli.terminal import exit_codes
from reconciler.model.change import Action, ChangedBy, Order
from reconciler.model.fields.annotations import AlwaysSent
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.plan import Plan
from reconciler.sandbox.base.variants import Variants
from reconciler.testing import Sandbox
from tests.harness.platform import restore_objects, save_objects
from tests.harness.tiers import first_of_each, full
from tests.kinds import lives
from tests.kinds.lives import Document, Life
from tests.kinds.living import (
    Found,
    Leaf,
    LivingProject,
    account,
    in_account,
    leaves,
    paths_of,
    same,
    value_at,
    with_value,
    without,
)


def immutable_values(life: Life) -> Document:
    """The other values of the fields that force replacement."""
    known = leaves(kinds.get(life.kind))
    return {path: value for path, value in life.others.items() if known[path].is_fixed}


def parts(life: Life) -> list[Field]:
    """The declared fields that a DELETE removes, as far as a list shows them."""
    fields = kinds.get(life.kind).fields
    return [
        field
        for field in fields
        if field.delete_segment and field.name in life.spec and not Leaf(field.name, field, field).is_hidden
    ]


def choices_of(life: Life) -> list[str]:
    """The declared parts of modules that have a server default."""
    known = leaves(kinds.get(life.kind))
    return [
        path
        for path, leaf in known.items()
        if leaf.is_given_back and leaf.top.module and value_at(life.spec, path) is not None
    ]


LIVES = (
    *lives.LIVES,
    *(
        dataclasses.replace(life, called="patch-empties", variants={"patch_empties": True})
        for life in lives.LIVES
        if any(AlwaysSent in field for field in kinds.get(life.kind).fields)
    ),
)
FIRST = {life.kind: life for life in reversed(LIVES)}  # the most complete life of each kind
WHOLE = [life for life in LIVES if not life.brief]


def first_lives(these: Iterable[Life]) -> list[Any]:
    """In `make test` one life of each kind, and one on each variant of the platform."""
    return first_of_each(these, lambda life: life.kind, lambda life: str(life.variants))


def of_lives(these: Iterable[Life]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("life", first_lives(these), ids=str)


# What planning and applying look at when they delete an object of a kind, or create it again.
TRAITS_OF_DELETION: tuple[Callable[[Kind], Hashable], ...] = (
    lambda kind: str(type(kind.part_of)),
    lambda kind: kind.part_kinds != (),
    lambda kind: kind.requires_parts is None,
    lambda kind: kind.unique,
    lambda kind: kind.identity_shared_while,
    lambda kind: kind.keeps_owner,
    lambda kind: kind.key,
    lambda kind: kind.one_time,
    lambda kind: kind.irreplaceable,
    lambda kind: kind.carries_traffic,
    lambda kind: kind.host is None,
    lambda kind: kind.alias is None,
    lambda kind: kind.modules.traffic,
    lambda kind: kind.wire.automatic,
    lambda kind: kind.wire.fixed != {},
)


def of_kind(trait: Callable[[Kind], Hashable]) -> Callable[[Life], Hashable]:
    return lambda life: trait(kinds.get(life.kind))


each_life = of_lives(LIVES)
each_whole_life = of_lives(WHOLE)
each_trait = pytest.mark.parametrize(
    "life", first_of_each(FIRST.values(), *(of_kind(trait) for trait in TRAITS_OF_DELETION)), ids=str
)
with_fixed = of_lives(life for life in WHOLE if life.replaced or immutable_values(life))
with_choices = of_lives(life for life in WHOLE if choices_of(life))
with_parts = of_lives(life for life in WHOLE if parts(life))


def behavior_key(leaf: Leaf) -> Hashable:
    """The properties of a field that determine how the product handles it."""
    field, top = leaf.field, leaf.top
    kept = (
        field.behaviors,
        field.default is None,
        field.canonical is None,
        field.as_map is None,
        field.read_as is None,
    )
    return ("." in leaf.path, field.shape, *kept, top.behaviors, top.delete_segment is None)


def first_of_each_handling() -> set[tuple[str, str]]:
    """Kinds and paths of fields, one for each combination of these properties."""
    found: dict[Hashable, tuple[str, str]] = {}
    for kind in FIRST:
        for path, leaf in leaves(kinds.get(kind)).items():
            found.setdefault(behavior_key(leaf), (kind, path))
    return set(found.values())


ALONE = first_of_each_handling()
each_by_itself = pytest.mark.parametrize(
    "one_by_one", [False, pytest.param(True, marks=full)], ids=["one of each handling", "each"]
)


def in_steps(life: Life, paths: Iterable[str], *, one_by_one: bool) -> list[list[str]]:
    """Groups of fields to change together. Each field that forces replacement or is the first with its properties is a
    group of its own, as is any field if `one_by_one`. The other fields are one group."""
    known, kind = leaves(kinds.get(life.kind)), kinds.get(life.kind)
    alone, together = [], []
    for path in paths:
        leaf = known.get(path) or Leaf(path, kind.by_name[path], kind.by_name[path])
        if one_by_one or leaf.is_fixed or (life.kind, path) in ALONE:
            alone.append([path])
        else:
            together.append(path)
    return [*alone, together] if together else alone


@pytest.fixture
def sparse(request: pytest.FixtureRequest) -> bool:
    """Whether responses omit text that is not set: as the test sets it, or for all tests with SPARSE_LIVES=1."""
    return bool(getattr(request, "param", os.environ.get("SPARSE_LIVES") == "1"))


in_both_ways = pytest.mark.parametrize(
    "sparse", [False, pytest.param(True, marks=full)], ids=["full", "sparse"], indirect=True
)
SOME = ("IPPolicyRule", "TLSEdge", "TunnelGroupBackend")  # with text at the top, in lists and in modules
whole_lives_and_some_sparse = pytest.mark.parametrize(
    ("life", "sparse"),
    [
        *(
            pytest.param(*live.values, os.environ.get("SPARSE_LIVES") == "1", id=str(*live.values), marks=live.marks)
            for live in first_lives(WHOLE)
        ),
        *(pytest.param(FIRST[kind], True, id=f"{FIRST[kind]}-sparse") for kind in SOME),
    ],
    indirect=["sparse"],
)


@pytest.fixture
def project(life: Life, sparse: bool, tmp_path: Path) -> Iterator[LivingProject]:
    (tmp_path / "reconciler.yaml").write_text(
        "stack: life\nlimits: {requests_per_minute: 100000, concurrency: 2, settle_seconds: 0}\n"
    )
    (tmp_path / "manifests").mkdir()
    with Sandbox(variants=Variants(**{"sparse": sparse, **life.variants})) as sandbox:
        yield LivingProject(tmp_path, sandbox, life, is_sparse=sparse)


class Saved(NamedTuple):
    """What a project and its platform remember of an apply."""

    store: Path
    platform: bytes


@pytest.fixture(scope="module")
def saved() -> dict[tuple[str, bool], Saved]:
    return {}


@pytest.fixture
def created(
    project: LivingProject, saved: dict[tuple[str, bool], Saved], tmp_path_factory: pytest.TempPathFactory
) -> LivingProject:
    """The project, with its subject created as declared: by the first test of a life, whose result the others copy."""
    project.declare(project.life.spec)
    key, own = (str(project.life), project.is_sparse), project.root / "state"
    if key in saved:
        shutil.copytree(saved[key].store, own)
        restore_objects(project.sandbox, saved[key].platform)
    else:
        project.apply()
        store = tmp_path_factory.mktemp("life") / "state"
        shutil.copytree(own, store)
        saved[key] = Saved(store, save_objects(project.sandbox))
    return project


# --- the table is complete --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", kinds.every(), ids=lambda kind: kind.name)
def test_the_lives_of_a_kind_declare_and_change_every_field(kind: Kind) -> None:
    known, its_lives = leaves(kind), [life for life in LIVES if life.kind == kind.name]
    declared = {path for path in known for life in its_lives if value_at(life.spec, path) is not None}
    changed = {path for life in its_lives for path in life.others}
    assert declared == known.keys()
    assert changed == {path for path, leaf in known.items() if len(leaf.field.choices) != 1 and leaf.has_effect}
    parts = {path for life in its_lives for path in life.replaced}
    assert parts == {field.name for field in kind.fields if field.immutable_part is not None}


# --- created, and then in sync ----------------------------------------------------------------------------------------


@in_both_ways
@each_life
def test_an_object_is_created_as_declared_and_then_in_sync(created: LivingProject) -> None:
    live = created.live()
    for path, leaf in leaves(created.kind).items():
        assert_holds(created, live, leaf, value_at(created.life.spec, path))
    again = created.apply()
    assert again.plan.is_empty
    assert again.calls == []
    assert again.plan.unmanaged == ()  # what the platform created for it does not count as unmanaged


# --- updates ----------------------------------------------------------------------------------------------------------


@each_by_itself
@each_whole_life
def test_each_field_is_updated_in_place(created: LivingProject, one_by_one: bool) -> None:
    known, spec, first = leaves(created.kind), created.life.spec, created.live()
    free = [path for path in created.life.others if not known[path].is_fixed]
    for paths in in_steps(created.life, free, one_by_one=one_by_one):
        for path in paths:
            spec = with_value(spec, path, created.life.others[path])
        created.declare(spec)
        assert the_change(created.apply().plan, created) == (Action.UPDATE, set(paths), {ChangedBy.GIT})
        live = created.live()
        assert live.path == first.path
        for path in paths:
            assert_holds(created, live, known[path], created.life.others[path])
    assert created.plan().is_empty


@pytest.mark.parametrize("life", [life for life in LIVES if life.called == "delivery"], ids=str)
def test_another_way_to_authenticate_is_updated_in_place(created: LivingProject) -> None:
    keys = {"creds": {"cloud_access_key_id": "AKID", "cloud_secret_access_key": "cloud secret"}}
    created.declare(with_value(created.life.spec, "target.delivery.auth", keys))
    (change,) = created.apply().plan.changes
    assert (change.action, {field.changed_by for field in change.fields}) == (Action.UPDATE, {ChangedBy.GIT})
    assert {field.path for field in change.fields} == {
        "target.delivery.auth.role",
        "target.delivery.auth.creds.cloud_access_key_id",
        "target.delivery.auth.creds.cloud_secret_access_key",
    }


@each_by_itself
@whole_lives_and_some_sparse
def test_each_removed_field_is_reset_to_its_default(project: LivingProject, one_by_one: bool) -> None:
    known, spec = leaves(project.kind), fullest(project)
    needed = (*project.kind.required_unless_id, *project.life.bound)
    tops = {top.name: Leaf(top.name, top, top) for top in project.kind.fields}
    project.declare(spec)
    project.apply()
    inner = [
        path
        for path, leaf in known.items()
        if "." in path and value_at(spec, path) is not None
        if not leaf.field.required and path not in project.life.bound
    ]
    outer = [name for name, leaf in tops.items() if name in spec and not leaf.field.required and name not in needed]
    for paths in in_steps(project.life, inner, one_by_one=one_by_one) + in_steps(
        project.life, outer, one_by_one=one_by_one
    ):
        cleared = []
        for path in paths:
            cleared.append((tops.get(path) or known[path], value_at(spec, path)))
            spec = without(spec, path)
        project.declare(spec)
        assert_cleared(project, cleared)
    assert project.plan().is_empty


@with_choices
def test_a_server_default_is_unchanged_by_an_update_of_another_field(project: LivingProject) -> None:
    known, spec, chosen = leaves(project.kind), project.life.spec, project.life.spec
    for path in choices_of(project.life):
        spec = without(spec, path)
    project.declare(spec)
    project.apply()
    for top in {known[path].top.name for path in choices_of(project.life)}:
        project.patch_by_hand(project.live(), top, chosen)
        assert project.plan().is_empty
        spec = with_value(spec, f"{top}.enabled", not spec[top].get("enabled", True))
    project.declare(spec)
    assert {path.rpartition(".")[2] for path in the_change(project.apply().plan, project)[1]} == {"enabled"}
    live = project.live()
    for path in choices_of(project.life):
        assert_holds(project, live, known[path], value_at(chosen, path))
    assert project.plan().is_empty


@with_fixed
def test_a_change_of_an_immutable_field_replaces_the_object(created: LivingProject) -> None:
    known, spec = leaves(created.kind), created.life.spec
    for path, value in {**immutable_values(created.life), **created.life.replaced}.items():
        old = created.live()
        spec = with_value(spec, path, value)
        created.declare(spec)
        applied, new = created.apply(), created.live()
        (change,) = applied.plan.changes
        assert (change.action, {field.changed_by for field in change.fields}) == (Action.REPLACE, {ChangedBy.GIT})
        assert {field.path.partition(".")[0] for field in change.fields if field.forces_replacement} == {
            top_field(created.kind, path)
        }
        assert change.order is order_of(created.kind, path)
        # The path of an event source has its type, which a replacement for other fields does not change.
        assert new.path != old.path or created.kind.key != "id"
        create = applied.calls.index(f"POST {new.path.rpartition('/')[0]}")
        delete = applied.calls.index(f"DELETE {old.path}")
        assert (create < delete) is (change.order is Order.CREATE_FIRST)
        assert created.sandbox.request("GET", old.path).status_code == (404 if new.path != old.path else 200)
        if path in known:
            assert_holds(created, new, known[path], value)
    assert created.plan().is_empty


# --- drift and adoption -----------------------------------------------------------------------------------------------


@each_by_itself
@each_whole_life
def test_drift_of_each_field_is_detected_and_reverted(created: LivingProject, one_by_one: bool) -> None:
    known, spec, moved, live = leaves(created.kind), created.life.spec, set[str](), created.live()
    visible = [path for path in created.life.others if not known[path].is_fixed and not known[path].is_hidden]
    for paths in in_steps(created.life, visible, one_by_one=one_by_one):
        for path in paths:
            spec = with_value(spec, path, created.life.others[path])
            live = dataclasses.replace(live, body=created.sandbox.get(live.path))
            created.patch_by_hand(live, known[path].top.name, spec)
        moved |= set(paths)
        assert the_change(created.plan(), created) == (Action.UPDATE, moved, {ChangedBy.PLATFORM})
    created.apply()
    live = created.live()
    for path in moved:
        assert_holds(created, live, known[path], value_at(created.life.spec, path))


@with_parts
def test_a_part_removed_on_the_platform_is_restored(created: LivingProject) -> None:
    removed = parts(created.life)
    for field in removed:
        created.sandbox.delete(f"{created.live().path}/{field.delete_segment}")
    action, paths, changed_by = the_change(created.apply().plan, created)
    assert (action, changed_by) == (Action.UPDATE, {ChangedBy.PLATFORM})
    assert {path.partition(".")[0] for path in paths} == {field.name for field in removed}
    live = created.live()
    for path, leaf in leaves(created.kind).items():
        assert_holds(created, live, leaf, value_at(created.life.spec, path))


@pytest.mark.parametrize(
    "life",
    [life for life in FIRST.values() if kinds.get(life.kind).unique and kinds.get(life.kind).keeps_owner],
    ids=str,
)
def test_an_existing_object_is_adopted_only_with_approval(project: LivingProject) -> None:
    project.declare(None)
    project.apply()
    project.declare(None)
    existing = project.create_by_hand(project.life.spec)
    project.declare(project.life.spec)
    project.sandbox.forget_log()
    assert [approval.flag for approval in project.plan().missing_approvals] == [f"--allow adopt:{project.kind.name}=1"]
    assert project.run("apply") == exit_codes.BLOCKED
    assert project.sandbox.calls() == []

    project.declare(project.life.spec, lifecycle={"adopt": True})
    assert {call.partition(" ")[0] for call in project.apply().calls} <= {"PATCH"}
    assert project.live().id == existing
    project.declare(project.life.spec)
    assert project.plan().is_empty


@pytest.mark.parametrize("life", [FIRST["EventSource"]], ids=str)
def test_a_source_of_an_owned_subscription_needs_no_approval(project: LivingProject) -> None:
    project.declare(None)
    project.apply()
    project.create_by_hand(project.life.spec)
    project.declare(project.life.spec)
    assert project.plan().is_empty


# --- deletions --------------------------------------------------------------------------------------------------------


@each_trait
def test_an_object_deleted_on_the_platform_is_created_again(created: LivingProject) -> None:
    old = created.live()
    created.sandbox.delete(old.path)
    (change,) = created.apply().plan.changes
    assert (change.address, change.action) == (created.subject, Action.CREATE)
    assert created.live().id != old.id or not created.kind.id_prefix
    assert created.plan().is_empty


@each_trait
def test_only_an_object_that_is_no_longer_declared_is_deleted(created: LivingProject) -> None:
    live, before = created.live(), account(created.sandbox)
    created.declare(None)
    assert created.apply().calls == [f"DELETE {live.path}"]
    after = account(created.sandbox)
    assert before.keys() - after.keys() == ({in_account(live.body)} if created.kind.parent is None else set())


@each_trait
def test_destroy_deletes_no_unmanaged_object(project: LivingProject) -> None:
    project.sandbox.post("/bot_users", {"name": "by hand"})
    project.sandbox.post("/ip_policies", {"description": "by hand", "metadata": "theirs"})
    project.sandbox.post("/reserved_domains", {"domain": "by-hand.example.com"})
    before = account(project.sandbox)
    project.declare(project.life.spec)
    project.apply()
    kinds_beside = {document["kind"] for document in project.life.beside}
    allowed = [word for kind in sorted(kinds_beside) for word in ("--allow", f"delete:{kind}=9")]
    assert project.run("destroy", *allowed) == 0
    assert account(project.sandbox) == before


# --- expectations -----------------------------------------------------------------------------------------------------


def the_change(plan: Plan, project: LivingProject) -> tuple[Action, set[str], set[ChangedBy]]:
    """The action of the only change, its fields, and what changed them."""
    assert plan.errors == ()
    (change,) = plan.changes
    assert change.address == project.subject
    paths = paths_of((field.path for field in change.fields), leaves(project.kind))
    return change.action, paths, {field.changed_by for field in change.fields}


def top_field(kind: Kind, path: str) -> str:
    """The field of the spec that a plan names: the top one, or the one with the id behind a name."""
    top = path.partition(".")[0]
    return kind.by_name[top].name_of or top


def order_of(kind: Kind, path: str) -> Order:
    """The order of a replacement: two objects with the same unique key cannot exist at once."""
    keeps_key = top_field(kind, path) not in kind.identity
    return Order.DELETE_FIRST if kind.unique and keeps_key else Order.CREATE_FIRST


def assert_holds(project: LivingProject, live: Found, leaf: Leaf, declared: Any) -> None:
    """The platform has the declared value, if a response shows the field."""
    if declared is not None and (leaf.field.read_as or not leaf.is_hidden):
        assert same(leaf, live.holds(leaf), project.resolve(declared)), leaf.path


def assert_cleared(project: LivingProject, cleared: list[tuple[Leaf, Any]]) -> None:
    """Each field whose declaration was removed is reset as its type requires. `cleared` has the values before."""
    applied, live = project.apply(), project.live()
    undone = [(leaf, before) for leaf, before in cleared if not may_stay(leaf, before)]
    if not undone:
        assert applied.plan.is_empty, [leaf.path for leaf, _ in cleared]
        return
    action, paths, _ = the_change(applied.plan, project)
    assert action is (Action.REPLACE if any(leaf.is_fixed for leaf, _ in undone) else Action.UPDATE)
    reported = {leaf.path: {path for path in paths if f"{path}.".startswith(f"{leaf.path}.")} for leaf, _ in undone}
    assert set().union(*reported.values()) == paths, (paths, reported)
    assert all(reported.values()), reported
    for leaf, before in undone:
        takes_delete = leaf.field is leaf.top and leaf.field.delete_segment is not None
        assert (f"DELETE {live.path}/{leaf.field.delete_segment}" in applied.calls) is takes_delete
        if leaf.is_given_back and not leaf.field.default:
            assert not same(leaf, live.holds(leaf), project.resolve(before)), leaf.path
        elif not leaf.is_hidden or leaf.field.read_as:
            assert same(leaf, live.holds(leaf), leaf.field.default), leaf.path


def may_stay(leaf: Leaf, before: Any) -> bool:
    """Whether a field that is no longer declared may have this value."""
    may_be_missing = leaf.field.shape is Shape.OBJECT and leaf.field.default is None
    is_default = before == {} or same(leaf, before, leaf.field.default)
    says_nothing = not may_be_missing and is_default
    stays = leaf.is_platforms and not leaf.is_given_back
    return stays or says_nothing or not leaf.has_effect or (leaf.is_fixed and leaf.is_hidden)


def fullest(project: LivingProject) -> Document:
    """The life's spec, with a value other than the default for each field that allows one."""
    spec = project.life.spec
    for path, leaf in leaves(project.kind).items():
        value = value_at(spec, path)
        if value is not None and path in project.life.others and same(leaf, value, leaf.field.default):
            spec = with_value(spec, path, project.life.others[path])
    return spec
