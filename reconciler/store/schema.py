"""The tables, for SQLite and PostgreSQL alike. Times are seconds since 1970, in UTC.

Rows on which plans depend have a digest of their content, the seal (`encoding`): SQLite detects a broken page, but not
a changed bit in a text.
"""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Integer, MetaData, PrimaryKeyConstraint, String, Table, Text

metadata = MetaData()

store = Table("store", metadata, Column("version", Integer, primary_key=True))

runs = Table(
    "runs",
    metadata,
    Column("id", String, primary_key=True),
    Column("stack", String, nullable=False, index=True),
    Column("command", String, nullable=False),
    Column("host", String, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("started", Float, nullable=False),
    Column("ended", Float),
    Column("outcome", String),
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("run", String, nullable=False, index=True),
    Column("place", Integer, nullable=False),  # order within the run
    Column("call", String, nullable=False),
    Column("address", String, nullable=False),
    Column("verb", String, nullable=False),
    Column("outcome", String, nullable=False),
    Column("object", String),
    Column("why", Text, nullable=False),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("run", "place"),
)

intents = Table(
    "intents",
    metadata,
    Column("id", String, primary_key=True),
    Column("stack", String, nullable=False, index=True),
    Column("address", String, nullable=False),
    Column("path", String, nullable=False),
    Column("before", Text, nullable=False),  # JSON list
    Column("identity", Text, nullable=False),  # JSON object
    Column("opened", Float, nullable=False),
    Column("concluded", Float),
    Column("object", String),
    Column("seal", String, nullable=False),  # over id, stack, address, path, before, identity, place
    Column("place", Text),  # JSON object, the target of a delivery
)

receipts = Table(
    "receipts",
    metadata,
    Column("intent", String, primary_key=True),
    Column("stack", String, nullable=False, index=True),
    Column("at", Float, nullable=False),
    Column("seal", String, nullable=False),
    Column("place", Integer, nullable=False),  # order within the stack
    Index("ix_receipts_stack_place", "stack", "place"),
)

bindings = Table(
    "bindings",
    metadata,
    Column("stack", String, nullable=False),
    Column("address", String, nullable=False),
    Column("object", String, nullable=False),
    Column("applied", Text, nullable=False),  # JSON object
    Column("protect", Integer, nullable=False),
    Column("replaces", String),
    Column("seal", String, nullable=False),
    Column("adopted", Integer, nullable=False),  # part of the seal if it is 1
    PrimaryKeyConstraint("stack", "address"),
)

# The key's own index finds keys with a common beginning in a file, but not on a server.
Index("ix_bindings_scope", bindings.c.stack, postgresql_ops={"stack": "varchar_pattern_ops"}).ddl_if(
    dialect="postgresql"
)

accounts = Table(
    "accounts",
    metadata,
    Column("stack", String, primary_key=True),
    Column("account", String, nullable=False),
    Column("witnesses", Text, nullable=False),  # JSON list
    Column("seal", String, nullable=False),
)

locks = Table(
    "locks",
    metadata,
    Column("stack", String, primary_key=True),
    Column("holder", String, nullable=False),  # random, new with every acquisition
    Column("host", String, nullable=False),
    Column("machine", String, nullable=False),  # distinguishes hosts and containers that have the same name
    Column("pid", Integer, nullable=False),
    Column("since", Float, nullable=False),
    Column("expires", Float, nullable=False),
)


# Drift checks, for reports and notifications only. No plan depends on them, and they contain no values.

drift_checks = Table(
    "looks",
    metadata,
    Column("id", String, primary_key=True),
    Column("stack", String, nullable=False, index=True),
    Column("at", Float, nullable=False),
    Column("declared", Integer, nullable=False),
    Column("commit", String, nullable=False),
    Column("complete", Integer, nullable=False),  # 1: every list of the account was read
    Column("judged", Integer),  # objects that have health; null: it was not judged
)

drifted_resources = Table(
    "drifts",
    metadata,
    Column("look", String, nullable=False, index=True),
    Column("address", String, nullable=False),
    Column("action", String, nullable=False),
    Column("reason", String, nullable=False),
    Column("mover", String, nullable=False),
    Column("fields", Text, nullable=False),  # JSON list of paths
)

openings = Table(
    "openings",
    metadata,
    Column("look", String, nullable=False, index=True),
    Column("entry_point", Text, nullable=False),
    Column("verdict", String, nullable=False),
    Column("before", Text, nullable=False),  # who got through, in words
    Column("after", Text, nullable=False),
    Column("certain", Integer, nullable=False),
)

health = Table(
    "health",
    metadata,
    Column("look", String, nullable=False, index=True),
    Column("address", String, nullable=False),  # empty: no manifest declares the object
    Column("object", String, nullable=False),
    Column("state", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("advice", Text, nullable=False),
    Column("actor", String, nullable=False),
    Column("due", Float),
    Column("retries_at", Float),
)


# The calls of a plan file that were applied, so that none is applied twice.

plan_calls = Table(
    "plan_calls",
    metadata,
    Column("plan", String, nullable=False),  # digest of the file
    Column("call", String, nullable=False),  # id of a call that succeeded; empty: the whole plan
    Column("intent", String, nullable=False),  # of a create, written before it is sent; empty: the call succeeded
    Column("at", Float, nullable=False),
    Column("seal", String, nullable=False),
    PrimaryKeyConstraint("plan", "call", "intent"),
)


# Where a run came from, for reports only. A run without a row was started by hand.

run_origins = Table(
    "run_origins",
    metadata,
    Column("run", String, primary_key=True),
    Column("commit", String, nullable=False),
    Column("actor", String, nullable=False),  # as the CI system names the person
)


# The runs of fleets.

fleet_runs = Table(
    "fleet_runs",
    metadata,
    Column("id", String, primary_key=True),
    Column("fleet", String, nullable=False, index=True),
    Column("verb", String, nullable=False),
    Column("source", String, nullable=False),
    Column("file", String, nullable=False),
    Column("commit", String, nullable=False),
    Column("created", Float, nullable=False),
    Column("state", String, nullable=False),
    Column("ended", Float),
    Column("reviewed", String, nullable=False),  # a run; empty: none
    Column("approved_shapes", Text, nullable=False),  # JSON list of digests
    Column("approved_waves", Text, nullable=False),  # JSON object: `approved`, names; `waves` of the run
    Column("actor", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("health", Integer, nullable=False),  # 1: a drift check that judges health
    Column("seal", String, nullable=False),  # over id, reviewed, approved_shapes, approved_waves
)

fleet_tasks = Table(
    "fleet_tasks",
    metadata,
    Column("run", String, nullable=False),
    Column("member", String, nullable=False),
    Column("project", String, nullable=False),
    Column("wave", Integer, nullable=False),
    Column("state", String, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("worker", String, nullable=False),
    Column("exit_code", Integer),
    Column("counts", Text, nullable=False),  # JSON object
    Column("changes", Text, nullable=False),  # JSON object
    Column("shape", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("requests", Integer, nullable=False),  # of all attempts
    Column("started", Float),
    Column("ended", Float),
    Column("health", Text),  # JSON object; null: it was not judged
    Column("alive", Float),  # last heartbeat of the last attempt
    Column("sent", Integer, nullable=False),  # requests of the last attempt, as of its last heartbeat
    Column("earlier_alive", Float),  # last heartbeat of the attempts before
    Column("earlier_sent", Integer, nullable=False),  # requests of the attempts before that may have been sent then
    Column("seal", String, nullable=False),  # over run, member, project, shape, changes
    PrimaryKeyConstraint("run", "member", "project"),
    Index("ix_fleet_tasks_member", "member"),
)

fleet_shapes = Table(
    "fleet_shapes",
    metadata,
    Column("fleet", String, nullable=False),
    Column("digest", String, nullable=False),
    Column("member", String, nullable=False),
    Column("project", String, nullable=False),
    Column("plan", Text, nullable=False),
    Column("seal", String, nullable=False),  # over all columns
    PrimaryKeyConstraint("fleet", "digest"),
)

fleet_pauses = Table(
    "fleet_pauses",
    metadata,
    Column("fleet", String, primary_key=True),
    Column("since", Float, nullable=False),
    Column("until", Float),
    Column("reason", Text, nullable=False),
    Column("actor", String, nullable=False),
)
