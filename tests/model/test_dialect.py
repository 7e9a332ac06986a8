"""The dialects of the API: only names differ, and a response translates back to the request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler import kinds
from reconciler.model.dialect import DIALECTS, NGROK, SPECIFICATION

_NAMES = st.sampled_from(
    (
        *("target", "delivery", "stream", "logs", "metrics", "ingestion", "auth", "creds", "tags", "site", "service"),
        *("api_key", "cloud_access_key_id", "cloud_secret_access_key", "description", "id", "upstream_proto", "other"),
    )
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.text(max_size=5),
    lambda inner: st.dictionaries(_NAMES, inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=12,
)
_PATHS = st.sampled_from(["/event_destinations", "/event_destinations/ed_x", "/endpoints", "/edges/tls", "/endpoints_"])


@given(path=_PATHS, body=st.dictionaries(_NAMES, _VALUES, max_size=5))
def test_a_response_in_the_public_dialect_is_read_as_it_was_sent(path: str, body: dict[str, Any]) -> None:
    assert NGROK.translate_response(path, NGROK.translate_request(path, body)) == body
    assert NGROK.translate_response(path, NGROK.render_response(path, body)) == body


@given(path=_PATHS, body=st.dictionaries(_NAMES, _VALUES, max_size=5))
def test_the_dialect_of_the_specification_changes_nothing(path: str, body: dict[str, Any]) -> None:
    assert SPECIFICATION.translate_request(path, body) == SPECIFICATION.translate_response(path, body) == body


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (
            {"target": {"delivery": {"auth": {"creds": {"cloud_access_key_id": "a"}}, "delivery_stream_arn": "b"}}},
            {"target": {"firehose": {"auth": {"creds": {"aws_access_key_id": "a"}}, "delivery_stream_arn": "b"}}},
        ),
        ({"target": {"stream": {"stream_arn": "a"}}}, {"target": {"kinesis": {"stream_arn": "a"}}}),
        ({"target": {"logs": {"log_group_arn": "a"}}}, {"target": {"cloudwatch_logs": {"log_group_arn": "a"}}}),
        ({"target": {"metrics": {"tags": "a", "site": "b"}}}, {"target": {"datadog": {"ddtags": "a", "ddsite": "b"}}}),
        ({"target": {"ingestion": {"client_id": "a"}}}, {"target": {"azure_logs_ingestion": {"client_id": "a"}}}),
    ],
)
def test_a_target_is_sent_under_its_public_name(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert NGROK.translate_request("/event_destinations", ours) == theirs


def test_each_object_of_a_page_is_translated() -> None:
    page = {"endpoints": [{"id": "ep_1", "upstream_protocol": "http1"}], "next_page_uri": None}
    assert NGROK.translate_response("/endpoints", page)["endpoints"] == [{"id": "ep_1", "upstream_proto": "http1"}]


def test_every_dialect_names_existing_kinds_and_collections() -> None:
    collections = {kind.path for kind in kinds.every()}
    names = {kind.name for kind in kinds.every()}
    for profile in DIALECTS.values():
        assert {spelling.collection for spelling in profile.spellings} <= collections
        assert profile.retired <= names
