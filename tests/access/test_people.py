"""Who a request is signed in as: the texts that name a provider, and those that do not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.access.account import Account
from reconciler.access.conditions import Person
from reconciler.access.people import PROVIDERS, SAML, find_unknown_issuer, list_providers, read_person
from reconciler.kinds.types.auth_modules import Providers
from reconciler.languages.traffic_catalog import actions
from reconciler.model.access_test import ATTRIBUTES
from tests.access import objects as o
from tests.access.live import read_resources

ISSUER = "https://login.example.com:8443"


@pytest.mark.parametrize(
    ("text", "person"),
    [
        ("google", Person("google")),
        ("google:ann@example.com", Person("google", "email", "ann@example.com")),
        ("github:team=ops", Person("github", "team", "ops")),
        ("SAML:group=staff", Person("SAML", "group", "staff")),
        ("SAML:group=urn:ops", Person("SAML", "group", "urn:ops")),
        (
            "SAML:group=https://idp.example.com/groups/a=b",
            Person("SAML", "group", "https://idp.example.com/groups/a=b"),
        ),
        ("github:team=a:b", Person("github", "team", "a:b")),
        ("google:team=a@b:c", Person("google", "team", "a@b:c")),
        (f"{ISSUER}:group=urn:a@b:8443", Person(ISSUER, "group", "urn:a@b:8443")),
        (ISSUER, Person(ISSUER)),
        (f"{ISSUER}:ann@example.com", Person(ISSUER, "email", "ann@example.com")),
        ("https://login.example.com/?realm=a", Person("https://login.example.com/?realm=a")),
    ],
)
def test_a_person_is_read_from_a_provider_with_an_email_or_another_attribute(text: str, person: Person) -> None:
    assert read_person(text) == person


@given(
    st.sampled_from([*PROVIDERS, ISSUER, "https://login.example.com", "http://a/realms/b?c=d"]),
    st.sampled_from(ATTRIBUTES),
    st.text(max_size=20) | st.text("aZ9:=@/. \n", max_size=20),
)
def test_an_attribute_may_have_any_value(provider: str, attribute: str, value: str) -> None:
    assert read_person(f"{provider}:{attribute}={value}") == Person(provider, attribute, value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("gogle:group=urn:a", "is no identity provider; did you mean google?"),
        ("google:ops", "is no identity provider; did you mean google?"),
        ("urn:ops", f"is no identity provider; use one of {', '.join(PROVIDERS)}, or the URL of an issuer"),
        ("SAML:gruop=urn:a", "has the unknown attribute gruop; did you mean group?"),
        (f"{ISSUER}:gruop=a", "has the unknown attribute gruop; did you mean group?"),
    ],
)
def test_a_mistake_in_a_person_is_explained(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        read_person(text)


def test_the_providers_are_those_of_the_module_and_of_the_action() -> None:
    assert {*PROVIDERS} == {*Providers.model_fields, SAML}
    assert {*PROVIDERS} == {*actions()["oauth"].settings["provider"].values, SAML}


def test_an_issuer_that_no_sign_in_has_is_unknown() -> None:
    sign_in = o.rule(o.action("openid-connect", issuer_url=ISSUER, client_id="a", client_secret="b"))
    answers = o.rule(o.action("custom-response", status_code=200, body="hello"))
    endpoint = o.cloud("https://shop.example.com", o.on_request(sign_in, answers))
    account = Account(read_resources({"CloudEndpoint": [endpoint]}))

    def find(provider: str) -> str:
        return find_unknown_issuer(provider, lambda: list_providers(account))

    assert find(ISSUER) == ""
    assert find("https://login.example.com:8444") == f"did you mean {ISSUER}?"
    assert find("https://elsewhere.org") == f"use one of {ISSUER}"
    assert find("google") == ""
