"""What there is of a kind, as a watch tells it."""

from __future__ import annotations

from mooring.client import Known
from mooring.objects import Pod
from mooring.testing import a_pod


def a_watch() -> tuple[Known[Pod], list[str]]:
    heard: list[str] = []
    return Known(lambda pod: heard.append(pod.name)), heard


def test_each_object_is_announced_once():
    known, heard = a_watch()
    web = a_pod("web")
    known.changed(web)
    known.changed(web)
    known.listed([web, a_pod("db")])
    assert heard == ["web", "db"]


def test_what_a_new_list_lacks_is_gone():
    known, _ = a_watch()
    web, db = a_pod("web"), a_pod("db")
    known.listed([web, db])
    known.listed([db])
    assert list(known) == [db.uid]
    known.deleted(db)
    known.deleted(db)
    assert not known
