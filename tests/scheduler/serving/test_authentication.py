"""Which users certificates, front proxies and tokens name, and what happens where they contradict one another."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from tests.scheduler.serving.certificates import an_authority

from mooring.base.clock import SystemClock
from mooring.base.errors import OperatorMistake
from mooring.scheduler.serving.authentication import CREDENTIAL_ID, Authentication, RequestCredentials
from mooring.scheduler.serving.client_authorities import Authorities, AuthorityOptions, Bundle, FrontProxy
from mooring.scheduler.serving.users import ANONYMOUS, Unauthenticated, User

CLIENTS, FRONT, OTHERS = an_authority("clients"), an_authority("front"), an_authority("others")
BOB = CLIENTS.issue("bob", ["ops", "dev"])
PROXY, FOREIGNER = FRONT.issue("front-proxy"), FRONT.issue("foreigner")
MALLORY = OTHERS.issue("root", ["system:masters"])
EXPIRED = CLIENTS.issue("late", life=timedelta(minutes=-1))
NAMELESS = CLIENTS.issue("", ["ops"])

TRUSTED = Authorities(
    Bundle.read(CLIENTS.pem, "a test"), FrontProxy(Bundle.read(FRONT.pem, "a test"), allowed_names=("front-proxy",))
)
AS_ALICE = (
    ("X-Remote-User", "alice"),
    ("x-remote-group", "readers"),
    ("X-Remote-Group", "writers"),
    ("X-Remote-Extra-Acme.com%2fScope", "all"),
)


@dataclass
class Tokens:
    async def user_of(self, token: str) -> User | None:
        return User("carol") if token == "good" else None

    async def allows(self, user: User, verb: str, path: str) -> bool:
        raise AssertionError("not called here")


async def who(shown: RequestCredentials, authorities: Authorities = TRUSTED) -> User | None:
    """None: unauthenticated (401)."""
    try:
        return await Authentication(SystemClock(), tokens=Tokens(), authorities=authorities).user(shown)
    except Unauthenticated:
        return None


async def test_a_certificate_of_the_cluster_names_user_and_groups():
    user = await who(RequestCredentials(certificate=BOB.der))
    assert user is not None
    assert (user.name, user.groups) == ("bob", ("ops", "dev", "system:authenticated"))
    assert dict(user.extra)[CREDENTIAL_ID][0].startswith("X509SHA256=")


async def test_a_front_proxy_authenticates_others():
    user = await who(RequestCredentials(certificate=PROXY.der, headers=AS_ALICE))
    assert user == User("alice", ("readers", "writers", "system:authenticated"), extra=(("acme.com/scope", ("all",)),))


CASES = {
    "nothing is shown": (RequestCredentials(), ANONYMOUS.name),
    "headers alone authenticate no user": (RequestCredentials(headers=AS_ALICE), ANONYMOUS.name),
    "a certificate of the cluster's users may not authenticate users by request headers": (
        RequestCredentials(certificate=BOB.der, headers=AS_ALICE),
        "bob",
    ),
    "a front proxy that names no user is unauthenticated": (RequestCredentials(certificate=PROXY.der), None),
    "a front proxy's authority makes no front proxy": (
        RequestCredentials(certificate=FOREIGNER.der, headers=AS_ALICE),
        None,
    ),
    "a certificate of others": (RequestCredentials(certificate=MALLORY.der), None),
    "an expired certificate": (RequestCredentials(certificate=EXPIRED.der), None),
    "a certificate without a name is anonymous": (RequestCredentials(certificate=NAMELESS.der), ANONYMOUS.name),
    "what is no certificate": (RequestCredentials(certificate=b"hello"), None),
    "a certificate counts before a token": (RequestCredentials("good", BOB.der), "bob"),
    "a bad token beside a good certificate": (RequestCredentials("bad", BOB.der), "bob"),
    "a good token beside a bad certificate": (RequestCredentials("good", MALLORY.der), "carol"),
    "a bad token": (RequestCredentials("bad"), None),
    "a good token": (RequestCredentials("good"), "carol"),
}


@pytest.mark.parametrize(("shown", "name"), CASES.values(), ids=CASES.keys())
async def test_who_it_is(shown, name):
    user = await who(shown)
    assert (user.name if user is not None else None) == name


async def test_where_no_authority_is_known_a_certificate_authenticates_no_user():
    assert await who(RequestCredentials(certificate=MALLORY.der), Authorities()) == ANONYMOUS


async def test_one_authority_for_both_is_one_for_both():
    both = Authorities(Bundle.read(FRONT.pem, "a test"), FrontProxy(Bundle.read(FRONT.pem, "a test")))
    by_headers = await who(RequestCredentials(certificate=FOREIGNER.der, headers=AS_ALICE), both)
    itself = await who(RequestCredentials(certificate=FOREIGNER.der), both)
    assert [user.name for user in (by_headers, itself) if user is not None] == ["alice", "foreigner"]


class ConfigMaps:
    """An API client that knows one config map."""

    def __init__(self, data: dict[str, str]) -> None:
        self.data = data

    async def get(self, kind: object, name: str, namespace: str) -> dict[str, Any]:
        assert (name, namespace) == ("extension-apiserver-authentication", "kube-system")
        return {"data": self.data}


PUBLISHED = {
    "client-ca-file": CLIENTS.pem,
    "requestheader-client-ca-file": FRONT.pem,
    "requestheader-allowed-names": json.dumps(["front-proxy"]),
    "requestheader-username-headers": json.dumps(["X-Remote-User"]),
    "requestheader-uid-headers": json.dumps(["X-Remote-Uid"]),
    "requestheader-group-headers": json.dumps(["X-Remote-Group"]),
    "requestheader-extra-headers-prefix": json.dumps(["X-Remote-Extra-"]),
}


async def test_the_cluster_publishes_its_authorities():
    authorities = Authorities()
    await authorities.look_up(AuthorityOptions(), ConfigMaps(PUBLISHED))
    front = authorities.front_proxy
    assert front is not None
    assert (front.allowed_names, front.uid_headers) == (("front-proxy",), ("X-Remote-Uid",))
    user = await who(RequestCredentials(certificate=PROXY.der, headers=(*AS_ALICE, ("x-remote-uid", "7"))), authorities)
    assert user is not None
    assert (user.name, user.uid) == ("alice", "7")
    assert (await who(RequestCredentials(certificate=BOB.der), authorities)) is not None


async def test_what_flags_name_is_not_looked_up(tmp_path):
    (tmp_path / "ca.pem").write_text(OTHERS.pem)
    options = AuthorityOptions(client_ca_file=str(tmp_path / "ca.pem"))
    authorities = Authorities()
    authorities.read_files(options)
    await authorities.look_up(options, ConfigMaps(PUBLISHED))
    assert authorities.clients is not None
    assert authorities.clients.pem == OTHERS.pem
    assert authorities.front_proxy is not None


async def test_an_authority_that_is_replaced_is_no_longer_trusted():
    authorities = Authorities()
    await authorities.look_up(AuthorityOptions(), ConfigMaps(PUBLISHED))
    await authorities.look_up(AuthorityOptions(), ConfigMaps({"client-ca-file": OTHERS.pem}))
    assert await who(RequestCredentials(certificate=BOB.der), authorities) is None
    assert authorities.front_proxy is None


@pytest.mark.parametrize(
    ("changed", "logged"),
    [
        ({"client-ca-file": "hello"}, "client-ca-file\n.*holds no certificate in PEM"),
        ({"requestheader-allowed-names": "front"}, "requestheader-allowed-names\n.*must be a JSON list of strings"),
    ],
)
async def test_what_is_published_wrongly_is_named_and_changes_nothing(changed, logged):
    authorities = Authorities()
    with pytest.raises(OperatorMistake, match=logged):
        await authorities.look_up(AuthorityOptions(), ConfigMaps(PUBLISHED | changed))
    assert authorities == Authorities()
