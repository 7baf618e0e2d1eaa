"""A conformance case, pruned and anonymized as a snapshot would be, and its decision with the names mapped back."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import msgspec

from mooring.engine import Form
from mooring.snapshots.anonymizing import Anonymizer
from mooring.snapshots.kinds import fields_of
from mooring.snapshots.pruning import Document, Pruning
from mooring_conformance.cases import Case
from mooring_conformance.our_decision import OurDecision, our_decision
from mooring_conformance.situation import Situation


@dataclass
class Anonymized:
    """The case with other names, and the original of each node's and pod's name."""

    case: Case
    nodes: dict[str, str]
    pods: dict[str, str]


def case_of(generated: Document) -> Case:
    return msgspec.json.decode(msgspec.json.encode(generated), type=Case)


def anonymized(generated: Document) -> Anonymized:
    """Labels that the configuration names stay, as with `--keep-label`."""
    keep_labels = re.findall(r'"(?:key|topologyKey)": "([^"]+)"', json.dumps(generated.get("config")))
    pod = {"apiVersion": "v1", "kind": "Pod"} | generated["pod"]
    originals = [*generated["objects"], pod]
    for each in originals:
        if each["kind"] == "Pod":
            each["metadata"].setdefault("namespace", "default")
    pruning, anonymizer = Pruning(), Anonymizer(keep_labels)
    pruned = [pruning.prune(each, fields_of(each["apiVersion"], each["kind"])) for each in originals]
    for each in pruned:
        anonymizer.collect(each)
    anonymizer.number()
    replaced = [anonymizer.replaced(each) for each in pruned]
    nodes, pods = {}, {}
    for before, after in zip(originals, replaced, strict=True):
        if before["kind"] == "Node":
            nodes[after["metadata"]["name"]] = before["metadata"]["name"]
        elif before["kind"] == "Pod":
            pods[_key(after)] = _key(before)
    *objects, pod = replaced
    return Anonymized(case_of(generated | {"objects": objects, "pod": pod}), nodes, pods)


def _key(document: Document) -> str:
    return f"{document['metadata']['namespace']}/{document['metadata']['name']}"


def decision(case: Case) -> OurDecision:
    return our_decision(Situation(case), Form.FASTER)


def comparable(decided: OurDecision, anonymized: Anonymized | None = None) -> dict[str, Any]:
    """What a decision consists of, without the words of messages, which may contain names."""
    node: Any = (lambda name: anonymized.nodes.get(name, name)) if anonymized else (lambda name: name)
    pod: Any = (lambda key: anonymized.pods.get(key, key)) if anonymized else (lambda key: key)
    post_filter = dict(decided.post_filter or {})
    post_filter.pop("message", None)
    if post_filter.get("nominatedNode"):
        post_filter["nominatedNode"] = node(post_filter["nominatedNode"])
    for field in ("victims", "deleted"):
        if field in post_filter:
            post_filter[field] = [pod(key) for key in post_filter[field]]
    if "deleted" in post_filter:
        post_filter["deleted"].sort()
    if "candidates" in post_filter:
        post_filter["candidates"] = {
            node(name): {**each, "victims": [pod(key) for key in each["victims"]]}
            for name, each in post_filter["candidates"].items()
        }
    return {
        "result": decided.result,
        "chosen": decided.chosen and node(decided.chosen),
        "preEnqueue": _verdict(decided.pre_enqueue),
        "preFilter": _verdict(decided.pre_filter),
        "skipped": decided.skipped,
        "nodes": {node(name): _verdict(verdict) for name, verdict in decided.nodes.items()},
        "scoreSkipped": decided.score_skipped,
        "scores": None if decided.scores is None else {node(name): each for name, each in decided.scores.items()},
        "postFilter": post_filter,
    }


def _verdict(verdict: dict[str, Any] | None) -> Any:
    return verdict and (verdict["plugin"], verdict["code"], len(verdict["reasons"]))
