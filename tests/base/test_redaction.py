"""What is shown of addresses and of fields that may hold a credential."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.base.redaction import (
    REDACTED,
    is_secret_name,
    redacted_document,
    redacted_url,
    scrubbed,
    shown_url,
)

SHOWN = {
    "http://host:80/path": ("http://host:80/path", "http://host:80/path"),
    "http://user:S3CR3T@host:80/ext?apikey=S3CR3T#S3CR3T": (
        "http://host:80/ext",
        "http://REDACTED@host:80/ext?REDACTED#REDACTED",
    ),
    "https://S3CR3T@host": ("https://host", "https://REDACTED@host"),
    "https://host?S3CR3T": ("https://host", "https://host?REDACTED"),
    "https://user:S3CR3T@[fe80::1%25eth0]:6443/": (
        "https://[fe80::1%25eth0]:6443/",
        "https://REDACTED@[fe80::1%25eth0]:6443/",
    ),
    "user:S3CR3T@proxy:3128": ("proxy:3128", "REDACTED@proxy:3128"),
    "proxy:3128": ("proxy:3128", "proxy:3128"),
    "http://user:S3CR/3T@host/": ("http://REDACTED", "http://REDACTED"),
    "http://user:S3CR?3T@host/": ("http://REDACTED", "http://REDACTED"),
    "http://user:S3CR#3T@host/": ("http://REDACTED", "http://REDACTED"),
    "http://user:12/S3CR3T@host/": ("http://REDACTED", "http://REDACTED"),
    "http://user:S@S3CR/3T@host/": ("http://REDACTED", "http://REDACTED"),
    "http://user#S3CR3T@host/": ("http://REDACTED", "http://REDACTED"),
    "http:/user:S3CR3T@host/": ("REDACTED", "REDACTED"),
    "no address, S3CR3T@x y": ("REDACTED", "REDACTED"),
    "http://bücher.example/x?S3CR3T": ("http://bücher.example/x", "http://bücher.example/x?REDACTED"),
}


@pytest.mark.parametrize(("url", "shown"), SHOWN.items())
def test_an_address_is_shown_as_scheme_host_port_and_path(url, shown):
    assert (shown_url(url), redacted_url(url)) == shown


TEXTS = {
    "Cannot connect to host 127.0.0.1:1": "Cannot connect to host 127.0.0.1:1",
    "407, message='Auth', url='http://u:S3CR3T@p:3128'": "407, message='Auth', url='http://p:3128'",
    "(see https://h/x?y=S3CR3T), or https://h:6443.": "(see https://h/x), or https://h:6443.",
    'Post "https://u:S3CR3T@h/f?timeout=5s": EOF': 'Post "https://h/f": EOF',
    "two: a://b:S3CR3T@c d://e#S3CR3T": "two: a://c d://e",
}


@pytest.mark.parametrize(("text", "clean"), TEXTS.items())
def test_addresses_in_a_text_are_shortened(text, clean):
    assert scrubbed(text) == clean


def test_parts_of_a_known_address_are_cut_wherever_they_stand():
    url = "http://user:S3CR3T@host/x?key=QU%2FERY&b=c"
    assert scrubbed("Port could not be cast to integer value as 'S3CR3T@host'", url) == (
        "Port could not be cast to integer value as 'REDACTED@host'"
    )
    assert scrubbed("decoded QU/ERY, encoded QU%2FERY", url) == "decoded REDACTED, encoded REDACTED"
    assert scrubbed("env S3CR3T", secrets=["S3CR3T"]) == "env REDACTED"


PART = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=8)


@given(PART, PART, PART, PART)
def test_no_part_that_may_be_a_credential_is_shown(user, password, query, fragment):
    """Whatever characters they have: ones that end a host too early cut more, and never less."""
    marked = [f"S3CR3T{part}S3CR3T" for part in (user, password, query, fragment)]
    url = "http://{}:{}@host.example:8080/path?{}#{}".format(*marked)
    for text in (shown_url(url), redacted_url(url), scrubbed(f"failed: {shown_url(url)}", url)):
        assert "S3CR3T" not in text


NAMES = {
    "password": True,
    "apiKey": True,
    "api_key": True,
    "api-key": True,
    "keyData": True,
    "clientSecret": True,
    "tokens": True,
    "Authorization": True,
    "bearerTokenFile": False,
    "secretName": False,
    "topologyKey": False,
    "key": False,
    "tokenTtlSeconds": False,
}


@pytest.mark.parametrize(("name", "is_secret"), NAMES.items())
def test_which_names_are_those_of_credentials(name, is_secret):
    assert is_secret_name(name) is is_secret


def test_a_document_keeps_its_form():
    document = {
        "address": "http://u:S3CR3T@h:9090/p?q=S3CR3T",
        "headers": {"Authorization": "Bearer S3CR3T", "Accept": "text/plain"},
        "passwords": ["S3CR3T", ""],
        "secret": {"any": {"thing": "S3CR3T"}, "count": 3},
        "tokenFile": "/var/run/token",
        "weights": [1, 2.5, None, True],
        "help": "see http://h/x?S3CR3T now",
    }
    assert redacted_document(document) == {
        "address": "http://REDACTED@h:9090/p?REDACTED",
        "headers": {"Authorization": REDACTED, "Accept": "text/plain"},
        "passwords": [REDACTED, ""],
        "secret": {"any": {"thing": REDACTED}, "count": 3},
        "tokenFile": "/var/run/token",
        "weights": [1, 2.5, None, True],
        "help": "see http://h/x now",
    }
