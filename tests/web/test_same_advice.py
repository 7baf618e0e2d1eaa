"""The page and `mooring explain` give the same advice about the same pod, in every state that is documented."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.pages import Page, mirrored, served
from tests.why.cases import CASES, Case

from mooring.explain import in_full
from mooring.scheduler.introspection.explain_client import QueryResult
from mooring.web import api
from mooring.why.pending import causes_of, pending_groups
from mooring.why.pod_document import explained, known, recorded, served_by, with_summary

OF_THE_PAGE = {"uid", "manifest", "funnel", "scores", "attempts", "isFile"}


def by_command(case: Case) -> dict[str, Any]:
    """The document of `mooring explain`."""
    responses = [case.response] if case.response else []
    found = known(case.pod) | recorded(responses, [], case.pod).document()
    with mirrored(case.nodes, [*case.pods, case.pod], objects=case.objects) as mirror:
        return with_summary(explained(mirror.recomputation, case.pod, found, 20))


async def of_page(page: Page, case: Case, path: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """With the scheduler of the case."""
    monkeypatch.setattr(page.api.mirror, "connection", _Here())
    monkeypatch.setattr(api, "query", lambda *_: QueryResult([case.response] if case.response else [], []))
    return await page.get(path)


class _Here:
    server = "https://cluster.invalid"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_the_page_has_the_document_of_the_command(case: Case, monkeypatch: pytest.MonkeyPatch):
    with mirrored(case.nodes, [*case.pods, case.pod], objects=case.objects) as mirror:
        async with served(mirror) as page:
            shown = await of_page(page, case, f"pods/{case.pod.key}", monkeypatch)
    expected = by_command(case)
    assert {key: value for key, value in shown.items() if key not in OF_THE_PAGE} == expected
    assert in_full(expected).splitlines()[0] == f"Pod {case.pod.key} {case.first_line}"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_the_queue_has_the_groups_of_the_command(case: Case, monkeypatch: pytest.MonkeyPatch):
    pods = [*case.pods, case.pod]
    with mirrored(case.nodes, pods, objects=case.objects) as mirror:
        async with served(mirror) as page:
            shown = await of_page(page, case, "queue", monkeypatch)
    with mirrored(case.nodes, pods, objects=case.objects) as mirror:
        waiting = [pod for pod in pods if not pod.spec.node_name]
        causes = causes_of(mirror.recomputation, waiting, served_by([case.response] if case.response else []))
        groups = pending_groups((pod, causes[pod.key]) for pod in waiting)
    assert shown["groups"] == groups
    assert [group["reason"] for group in groups] == ([case.cause] if case.cause else [])


async def test_a_what_if_does_not_place_a_pod_that_no_scheduler_serves():
    case = CASES["served by no scheduler"]
    with mirrored(case.nodes, [case.pod]) as mirror:
        async with served(mirror) as page:
            one = await page.post("what-if", {"pod": case.pod.key})
            all_of_them = await page.post("what-if", {"reschedule": True})
    for found in (one, all_of_them):
        [placement] = found["placements"]
        assert placement["node"] is None
        assert placement["message"] == 'no profile serves its schedulerName "absent"'
