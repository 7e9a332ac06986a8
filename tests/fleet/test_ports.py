"""What a pool says of an error: where an unexpected one was raised, since its text may contain anything."""

from __future__ import annotations

import pytest

from reconciler.fleet.ports import describe_error
from reconciler.operations.errors import OperationError
from reconciler.store.errors import StoreError


def fail(depth: int) -> None:
    if depth:
        fail(depth - 1)
    raise LookupError("canary")


def test_an_unexpected_error_is_described_by_where_it_was_raised() -> None:
    line = fail.__code__.co_firstlineno
    for depth, place in ((0, 3), (1, 3), (4, 3)):
        with pytest.raises(LookupError) as caught:
            fail(depth)
        assert describe_error(caught.value) == f"LookupError in {__file__}:{line + place}"
    for known in (OperationError("no such member"), StoreError("it is away")):
        assert describe_error(known) == str(known)
