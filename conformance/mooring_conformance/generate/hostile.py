"""Hostile cases: a pod, or the pods around it, with very much of something that the API server lets through.

A case follows from a `Recipe`: how many nodes and running pods there are, and how much of each shape. A search for slow
pods changes the recipe, not the case, so that what it finds is already short to describe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mooring_conformance.generate.devices import GPU_DRIVER, a_device_class, a_resource_claim, a_slice, some_gpus
from mooring_conformance.generate.dice import GIB, Dice, Json
from mooring_conformance.generate.objects import HOSTNAME, ZONE, a_case, a_container, a_namespace, a_node, a_pod
from mooring_conformance.generate.spreading import a_service
from mooring_conformance.generate.storage import CSI_DRIVER, a_claim, a_csi_node, a_storage_class, a_volume, in_zones

OWN = "tenant"
"""The namespace of the hostile pod."""
ZONES = 8
RACKS = 16
"""Labels of that many racks, so that nodes have a few keys more than the usual ones."""
VALUES = 200
"""Values of an `In` list, where lists are long."""


@dataclass(frozen=True)
class Recipe:
    """What a hostile case is made of. Equal recipes make equal cases."""

    amounts: Mapping[str, int]
    """Shape → how much of it."""
    nodes: int = 200
    running: int = 400
    seed: str = "1"

    def __str__(self) -> str:
        shapes = ", ".join(f"{shape} {amount}" for shape, amount in sorted(self.amounts.items()))
        return f"{shapes} ({self.nodes} nodes, {self.running} pods, seed {self.seed})"


@dataclass
class Draft:
    """A case under construction."""

    dice: Dice
    pod: Json
    nodes: list[Json]
    running: list[Json]
    others: list[Json] = field(default_factory=list)

    @property
    def spec(self) -> Json:
        spec: Json = self.pod["spec"]
        return spec

    def pod_terms(self, pod: Json, kind: str, when: str) -> list[Json]:
        """A list of (anti-)affinity terms of a pod."""
        terms: list[Json] = pod["spec"].setdefault("affinity", {}).setdefault(kind, {}).setdefault(when, [])
        return terms


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _unknown_keys(_: Draft, amount: int) -> list[str]:
    return [f"tenant.example.com/key-{number}" for number in range(amount)]


def _keys_of_nodes(draft: Draft, amount: int) -> list[str]:
    """Keys that every node gets: few values, or one for each node."""
    keys = [f"infra.example.com/key-{number}" for number in range(amount)]
    for place, node in enumerate(draft.nodes):
        node["metadata"]["labels"] |= {
            key: f"v{place if number % 5 == 0 else place % (2 + number % 7)}" for number, key in enumerate(keys)
        }
    return keys


def _a_selector(number: int) -> Json:
    """Selectors that differ from one another; some select many pods, some few, some none."""
    match number % 5:
        case 0:
            return {"matchLabels": {"app": f"a{number % 7}"}}
        case 1:
            return {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [f"no-{number}"]}]}
        case 2:
            return {"matchExpressions": [{"key": f"none-{number}", "operator": "DoesNotExist"}]}
        case 3:
            return {"matchExpressions": [{"key": f"none-{number}", "operator": "Exists"}]}
        case _:
            return {"matchLabels": {"app": f"a{number % 7}", "index": f"i{number}"}}


def _spread(when: str, keys: Callable[[Draft, int], list[str]]) -> Callable[[Draft, int], None]:
    def shape(draft: Draft, amount: int) -> None:
        constraints = draft.spec.setdefault("topologySpreadConstraints", [])
        for number, key in enumerate(keys(draft, amount)):
            constraint = {
                "maxSkew": 1 + number % 3,
                "topologyKey": key,
                "whenUnsatisfiable": when,
                "labelSelector": _a_selector(number),
            }
            if number % 11 == 3:
                constraint["nodeTaintsPolicy"] = "Honor"
            if number % 13 == 5:
                constraint["nodeAffinityPolicy"] = "Ignore"
            constraints.append(constraint)

    return shape


def _terms(kind: str, when: str, *, of_others: bool = False) -> Callable[[Draft, int], None]:
    def shape(draft: Draft, amount: int) -> None:
        pod = draft.running[0] if of_others else draft.pod
        terms = draft.pod_terms(pod, kind, when)
        for number in range(amount):
            key = (HOSTNAME, ZONE, "rack", f"tenant.example.com/key-{number}")[number % 4]
            term: Json = {"labelSelector": _a_selector(number), "topologyKey": key}
            if number % 7 == 2:
                term["namespaces"] = [f"other-{number % 50}", OWN]
            if number % 17 == 4:
                term["namespaceSelector"] = {"matchLabels": {"team": f"t{number % 3}"}}
            if when == PREFERRED:
                term = {"weight": 1 + number % 100, "podAffinityTerm": term}
            terms.append(term)

    return shape


def _matched_affinity(draft: Draft, amount: int) -> None:
    """Required affinity whose terms the running pods of the namespace all match."""
    terms = draft.pod_terms(draft.pod, "podAffinity", REQUIRED)
    terms += [
        {
            "labelSelector": {"matchExpressions": [{"key": f"none-{number}", "operator": "DoesNotExist"}]},
            "topologyKey": (HOSTNAME, ZONE)[number % 2],
        }
        for number in range(amount)
    ]


def _carried_by_many(draft: Draft, amount: int) -> None:
    """So many running pods, each with an anti-affinity term of its own that selects no pod or every pod."""
    for number, pod in enumerate(draft.running[:amount]):
        draft.pod_terms(pod, "podAntiAffinity", REQUIRED).append(
            {
                "labelSelector": {"matchExpressions": [{"key": f"none-{number}", "operator": "Exists"}]},
                "topologyKey": HOSTNAME,
            }
        )
        draft.pod_terms(pod, "podAntiAffinity", PREFERRED).append(
            {
                "weight": 1 + number % 100,
                "podAffinityTerm": {
                    "labelSelector": {"matchExpressions": [{"key": f"none-{number}", "operator": "DoesNotExist"}]},
                    "topologyKey": ZONE,
                },
            }
        )


def _node_terms(draft: Draft, amount: int, *, preferred: bool) -> None:
    affinity = draft.spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    if preferred:
        terms: list[Json] = affinity.setdefault(PREFERRED, [])
    else:
        terms = affinity.setdefault(REQUIRED, {"nodeSelectorTerms": []})["nodeSelectorTerms"]
    for number in range(amount):
        term: Json = {"matchExpressions": [_an_expression(number + part) for part in range(1 + number % 3)]}
        if number % 19 == 7:
            operator = "NotIn" if number % 2 else "In"
            term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [f"node-{number:05d}"]}]
        terms.append({"weight": 1 + number % 100, "preference": term} if preferred else term)


def _an_expression(number: int) -> Json:
    key = (HOSTNAME, ZONE, "rack", "size", f"tenant.example.com/key-{number}")[number % 5]
    match number % 6:
        case 0 | 1:
            return {"key": key, "operator": "In", "values": [f"x-{number}", f"zone-{number % (2 * ZONES)}"]}
        case 2:
            return {"key": key, "operator": "NotIn", "values": [f"x-{number}", f"zone-{number % (2 * ZONES)}"]}
        case 3:
            return {"key": key, "operator": "Exists"}
        case 4:
            return {"key": key, "operator": "DoesNotExist"}
        case _:
            return {"key": "size", "operator": ("Gt", "Lt")[number % 2], "values": [str(number % 50)]}


def _required_node_terms(draft: Draft, amount: int) -> None:
    _node_terms(draft, amount, preferred=False)


def _preferred_node_terms(draft: Draft, amount: int) -> None:
    _node_terms(draft, amount, preferred=True)


def _long_value_lists(draft: Draft, amount: int) -> None:
    """Node selector terms whose `In` and `NotIn` lists are long."""
    affinity = draft.spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    terms: list[Json] = affinity.setdefault(REQUIRED, {"nodeSelectorTerms": []})["nodeSelectorTerms"]
    for number in range(amount):
        values = [f"v{number}-{value}" for value in range(VALUES)]
        racks = [f"rack-{rack}" for rack in range(RACKS)]
        if number % 2:
            terms.append({"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": values}]})
        else:
            terms.append({"matchExpressions": [{"key": "rack", "operator": "NotIn", "values": [*values, *racks]}]})


def _vain_node_terms(draft: Draft, amount: int) -> None:
    """Terms that match no node, although each of their expressions matches some, or all but one."""
    affinity = draft.spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    terms: list[Json] = affinity.setdefault(REQUIRED, {"nodeSelectorTerms": []})["nodeSelectorTerms"]
    for number in range(amount):
        expressions: list[Json] = [
            {"key": "size", "operator": "Gt", "values": [str(number % 40)]},
            {"key": HOSTNAME, "operator": "NotIn", "values": [f"node-{number:05d}"]},
            {"key": "size", "operator": "Lt", "values": [str(number % 40)]},
        ]
        terms.append({"matchExpressions": expressions})


def _node_names(draft: Draft, amount: int) -> None:
    """Terms that each name a node."""
    affinity = draft.spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    terms: list[Json] = affinity.setdefault(REQUIRED, {"nodeSelectorTerms": []})["nodeSelectorTerms"]
    terms += [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"node-{number:05d}"]}]}
        for number in range(amount)
    ]


def _node_selector(draft: Draft, amount: int) -> None:
    draft.spec["nodeSelector"] = dict.fromkeys(_unknown_keys(draft, amount), "x")


def _tolerations(draft: Draft, amount: int) -> None:
    operators = ("Exists", "Equal")
    for number in range(amount):
        toleration = {
            "key": f"t-{number}",
            "operator": operators[number % 2],
            "effect": ("NoSchedule", "PreferNoSchedule")[number % 3 == 1],
        }
        if number % 2:
            toleration["value"] = "x"
        draft.spec["tolerations"].append(toleration)
    for place, node in enumerate(draft.nodes):
        taints = [{"key": f"t-{amount + place % 7}", "value": "x", "effect": "PreferNoSchedule"}]
        taints += [{"key": f"s-{place}-{each}", "value": "x", "effect": "PreferNoSchedule"} for each in range(4)]
        if place % 3 == 0:
            taints.append({"key": f"t-{amount - 2 - place % 2}", "value": "x", "effect": "NoSchedule"})
        node["spec"]["taints"] = taints


def _containers(draft: Draft, amount: int) -> None:
    draft.spec["containers"] += [
        a_container(f"c{number}", f"img.example.com/app-{number}:v1", {"cpu": "1m", "memory": "1Mi"})
        for number in range(amount)
    ]
    for node in draft.nodes[::2]:
        node["status"]["images"] = [
            {"names": [f"img.example.com/app-{number}:v1"], "sizeBytes": 50_000_000 + number} for number in range(50)
        ]


def _init_containers(draft: Draft, amount: int) -> None:
    draft.spec.setdefault("initContainers", []).extend(
        a_container(f"i{number}", requests={"cpu": f"{number % 9}m"}, restart=("Always" if number % 2 else None))
        for number in range(amount)
    )


def _many_resources(draft: Draft, amount: int) -> None:
    """Extended resources that no node has."""
    names = {f"tenant.example.com/r{number}": "1" for number in range(amount)}
    draft.spec["containers"].append(a_container("many", requests=names, limits=names))


def _host_ports(draft: Draft, amount: int) -> None:
    draft.spec["containers"].append(a_container("ports", ports=[_a_port(1 + number) for number in range(amount)]))
    for place, pod in enumerate(draft.running):
        held = [_a_port(1 + (place * 50 + number) % 60_000) for number in range(50)]
        pod["spec"]["containers"][0]["ports"] = held


def _a_port(number: int) -> Json:
    port: Json = {"containerPort": number, "hostPort": number, "protocol": "TCP"}
    if number % 3 == 1:
        port["hostIP"] = f"127.0.0.{1 + number % 5}"
    return port


def _claims(draft: Draft, amount: int) -> None:
    """PersistentVolumeClaims: bound ones, and such as wait for a node."""
    draft.others += [
        a_storage_class("waits", CSI_DRIVER, "WaitForFirstConsumer"),
        *(a_csi_node(node["metadata"]["name"], [(CSI_DRIVER, 5_000)]) for node in draft.nodes),
    ]
    for number in range(amount):
        name = f"claim-{number}"
        if number % 2:
            claim = a_claim(name, "1Gi", "waits", ns=OWN)
        else:
            claim = a_claim(name, "1Gi", "bound", ns=OWN, volume=f"pv-{number}")
            zones = [f"zone-{zone}" for zone in range(ZONES)]
            draft.others.append(a_volume(f"pv-{number}", "1Gi", "bound", claim=claim, affinity=in_zones(zones)))
        draft.others.append(claim)
        _volumes(draft).append({"name": f"v-{number}", "persistentVolumeClaim": {"claimName": name}})


def _disks(draft: Draft, amount: int) -> None:
    """Volumes in the pod itself, of which a node can have each once; running pods have some of them."""

    def disk(number: int) -> Json:
        kinds: list[Json] = [
            {"gcePersistentDisk": {"pdName": f"disk-{number}"}},
            {"iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": f"iqn.2001-04.com.example:d{number}", "lun": 0}},
            {"rbd": {"monitors": ["10.0.0.2:6789"], "image": f"disk-{number}", "pool": "rbd"}},
        ]
        return kinds[number % 3]

    _volumes(draft).extend({"name": f"d-{number}", **disk(number)} for number in range(amount))
    for place, pod in enumerate(draft.running):
        pod["spec"].setdefault("volumes", []).extend(
            {"name": f"d-{number}", **disk(amount + place * 20 + number)} for number in range(20)
        )


def _volumes(draft: Draft) -> list[Json]:
    volumes: list[Json] = draft.spec.setdefault("volumes", [])
    return volumes


def _labels(draft: Draft, amount: int) -> None:
    """A large label map, and Services that select by parts of it."""
    labels = {f"label-{number}": f"v{number}" for number in range(amount)}
    draft.pod["metadata"]["labels"] |= labels
    for number in range(0, amount, 10):
        draft.others.append(a_service(f"svc-{number}", OWN, {f"label-{number}": f"v{number}", "app": "a1"}))


def _others_labels(draft: Draft, amount: int) -> None:
    """Running pods whose label maps are large, each its own."""
    for place, pod in enumerate(draft.running[:20]):
        pod["metadata"]["labels"] |= {f"label-{place}-{number}": f"v{number}" for number in range(amount)}


def _resource_claims(draft: Draft, amount: int) -> None:
    """Claims of devices; one node has enough of them."""
    draft.others.append(a_device_class("gpu", [f'device.driver == "{GPU_DRIVER}"']))
    for node in draft.nodes[:20]:
        devices = some_gpus(draft.dice, 8)
        name = node["metadata"]["name"]
        draft.others.append(a_slice(f"{name}-gpus", GPU_DRIVER, devices, {"nodeName": name}, pool=name))
    references = draft.spec.setdefault("resourceClaims", [])
    request = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    for number in range(amount):
        name = f"devices-{number}"
        draft.others.append(a_resource_claim(name, OWN, [{"name": "r", "exactly": request}]))
        references.append({"name": f"ref-{number}", "resourceClaimName": name})


def _victims(draft: Draft, amount: int) -> None:
    """The pod fits only where others are evicted, of which there are many on each node."""
    draft.pod["spec"]["priority"] = 1_000
    draft.spec["containers"].append(a_container("large", requests={"cpu": "7000m"}))
    for number in range(amount):
        node = draft.nodes[number % len(draft.nodes)]["metadata"]["name"]
        container = a_container("c", requests={"cpu": "100m"})
        labels = {"app": f"a{number % 7}", "index": f"i{number}"}
        draft.running.append(a_pod(f"victim-{number}", OWN, labels, [container], node=node, priority=-(number % 5)))


def _unlike_labels(draft: Draft, amount: int) -> None:
    """Running pods of which no two have the same labels."""
    for number in range(amount):
        node = draft.nodes[number % len(draft.nodes)]["metadata"]["name"]
        labels = {"app": f"a{number % 7}", "index": f"i{number}", f"own-{number}": "x"}
        draft.running.append(a_pod(f"unlike-{number}", OWN, labels, node=node))


def _gates(draft: Draft, amount: int) -> None:
    draft.spec["schedulingGates"] = [{"name": f"example.com/gate-{number}"} for number in range(amount)]


@dataclass(frozen=True)
class Shape:
    """Something of which a pod may have much."""

    most: int
    """About as much as fits into an object of 1.5 MB, or as there is sense in."""
    apply: Callable[[Draft, int], None]


SHAPES: Mapping[str, Shape] = {
    "hard-spread-unknown-keys": Shape(3000, _spread("DoNotSchedule", _unknown_keys)),
    "soft-spread-unknown-keys": Shape(3000, _spread("ScheduleAnyway", _unknown_keys)),
    "hard-spread": Shape(500, _spread("DoNotSchedule", _keys_of_nodes)),
    "soft-spread": Shape(500, _spread("ScheduleAnyway", _keys_of_nodes)),
    "required-affinity": Shape(3000, _terms("podAffinity", REQUIRED)),
    "matched-affinity": Shape(3000, _matched_affinity),
    "required-anti-affinity": Shape(3000, _terms("podAntiAffinity", REQUIRED)),
    "preferred-affinity": Shape(3000, _terms("podAffinity", PREFERRED)),
    "preferred-anti-affinity": Shape(3000, _terms("podAntiAffinity", PREFERRED)),
    "anti-affinity-of-a-running-pod": Shape(3000, _terms("podAntiAffinity", REQUIRED, of_others=True)),
    "preferences-of-a-running-pod": Shape(3000, _terms("podAffinity", PREFERRED, of_others=True)),
    "anti-affinity-of-running-pods": Shape(3000, _carried_by_many),
    "node-terms": Shape(5000, _required_node_terms),
    "preferred-node-terms": Shape(5000, _preferred_node_terms),
    "long-value-lists": Shape(300, _long_value_lists),
    "vain-node-terms": Shape(4000, _vain_node_terms),
    "node-names": Shape(5000, _node_names),
    "node-selector": Shape(5000, _node_selector),
    "tolerations": Shape(8000, _tolerations),
    "containers": Shape(3000, _containers),
    "init-containers": Shape(3000, _init_containers),
    "extended-resources": Shape(5000, _many_resources),
    "host-ports": Shape(8000, _host_ports),
    "claims": Shape(1500, _claims),
    "disks": Shape(3000, _disks),
    "labels": Shape(10_000, _labels),
    "labels-of-running-pods": Shape(2000, _others_labels),
    "resource-claims": Shape(256, _resource_claims),
    "victims": Shape(2000, _victims),
    "unlike-running-pods": Shape(5000, _unlike_labels),
    "gates": Shape(5000, _gates),
}


def hostile_case(recipe: Recipe) -> Json:
    """The case of a recipe."""
    dice = Dice(f"hostile:{recipe.seed}")
    names = [f"node-{number:05d}" for number in range(recipe.nodes)]
    nodes = [
        a_node(
            dice,
            name,
            cpu=8000,
            mem=32 * GIB,
            odd=0,
            zone=f"zone-{place % ZONES}",
            labels={"rack": f"rack-{place % RACKS}", "size": str(place % 40)},
        )
        for place, name in enumerate(names)
    ]
    running = [
        a_pod(
            f"running-{number}",
            OWN if number % 4 else "other-1",
            {"app": f"a{number % 7}"},
            node=names[number % len(names)],
        )
        for number in range(recipe.running)
    ]
    container = a_container("c", requests={"cpu": "100m", "memory": "64Mi"})
    draft = Draft(dice, a_pod("hostile", OWN, {"app": "a1"}, [container]), nodes, running)
    for shape, amount in sorted(recipe.amounts.items()):
        if amount:
            SHAPES[shape].apply(draft, amount)
    namespaces = [a_namespace("default"), a_namespace(OWN, {"team": "t1"})]
    namespaces += [a_namespace(f"other-{number}", {"team": f"t{number % 3}"}) for number in range(50)]
    return a_case(str(recipe), [*namespaces, *draft.nodes, *draft.running, *draft.others], draft.pod)
