"""When each alert of deploy/alerts fires and when it does not: what was scraped, minute by minute.

`1x10` is ten more minutes with the same value, `0+2x10` one that grows by two in each, `stale` a target that is gone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """Series → its values; the labels of the one alert that fires by then, or None."""

    alert: str
    series: dict[str, str]
    after: str
    fires: dict[str, str] | None = None


ONE, TWO = 'job="mooring", instance="one"', 'job="mooring", instance="two"'
BY_ONE = {"job": "mooring", "instance": "one"}
LEADS_ONE = f'leader_election_master_status{{{ONE}, name="mooring"}}'
LEADS_TWO = f'leader_election_master_status{{{TWO}, name="mooring"}}'
ACTIVE = f'scheduler_pending_pods{{{ONE}, queue="active"}}'
SCHEDULED = f'scheduler_schedule_attempts_total{{{ONE}, profile="p", result="scheduled"}}'
FAILED = f'scheduler_schedule_attempts_total{{{ONE}, profile="p", result="error"}}'
RELOADED = f"mooring_config_last_reload_successful{{{ONE}}}"
REFUSED = f'scheduler_unschedulable_pods{{{ONE}, profile="p", plugin="Headroom"}}'
PLUGIN_ERRORS = f'mooring_plugin_errors_total{{{ONE}, plugin="Headroom", extension_point="Filter"}}'
PLUGIN_SLOW = f'mooring_plugin_slow_attempts_total{{{ONE}, plugin="Headroom", extension_point="Filter", profile="p"}}'
FOREIGN_BINDINGS = f'mooring_bound_by_others_total{{{ONE}, profile="p"}}'
MEMORY = f"process_resident_memory_bytes{{{ONE}}}"
BY_PLUGIN = {"job": "mooring", "plugin": "Headroom", "extension_point": "Filter"}


def requests(code: str) -> str:
    return f'rest_client_requests_total{{{ONE}, code="{code}", method="GET", host="server"}}'


def decisions(le: str) -> str:
    return f'scheduler_scheduling_algorithm_duration_seconds_bucket{{{ONE}, le="{le}"}}'


CASES = {
    "no instance responds": Case("MooringDown", {f"up{{{ONE}}}": "0x10", f"up{{{TWO}}}": "0x10"}, "5m", {}),
    "nothing is scraped at all": Case("MooringDown", {}, "5m", {}),
    "one of two responds": Case("MooringDown", {f"up{{{ONE}}}": "1x10", f"up{{{TWO}}}": "0x10"}, "5m"),
    "one of two is gone for long": Case(
        "MooringReplicaDown",
        {f"up{{{ONE}}}": "0x20", f"up{{{TWO}}}": "1x20"},
        "15m",
        BY_ONE,
    ),
    "one of two is started again": Case("MooringReplicaDown", {f"up{{{ONE}}}": "1 0 0 1x20"}, "5m"),
    "all stand by": Case(
        "MooringNoLeader", {LEADS_ONE: "0x10", LEADS_TWO: "0x10"}, "3m", {"job": "mooring", "name": "mooring"}
    ),
    "the leader is gone and the other does not take over": Case(
        "MooringNoLeader", {LEADS_ONE: "1 1 stale", LEADS_TWO: "0x10"}, "5m", {"job": "mooring", "name": "mooring"}
    ),
    "one leads": Case("MooringNoLeader", {LEADS_ONE: "0x10", LEADS_TWO: "1x10"}, "5m"),
    "leader election is off": Case("MooringNoLeader", {f"up{{{ONE}}}": "1x10"}, "5m"),
    "the lease goes to and fro": Case(
        "MooringLeaderChanges",
        {LEADS_ONE: "1 0 1 0 1 0 1", LEADS_TWO: "0 1 0 1 0 1 0"},
        "6m",
        {"job": "mooring", "name": "mooring"},
    ),
    "an upgrade hands the lease on": Case("MooringLeaderChanges", {LEADS_ONE: "1 1 0x8", LEADS_TWO: "0 0 1x8"}, "8m"),
    "a changed configuration is broken": Case("MooringReloadRefused", {RELOADED: "1 0x9"}, "5m", BY_ONE),
    "a broken configuration is put right": Case("MooringReloadRefused", {RELOADED: "1 0 1x9"}, "5m"),
    "the leader tries none of its pods": Case(
        "MooringStalled",
        {ACTIVE: "3x30", SCHEDULED: "7x30", LEADS_ONE: "1x30", LEADS_TWO: "0x30"},
        "15m",
        BY_ONE,
    ),
    "the only instance has never tried a pod": Case("MooringStalled", {ACTIVE: "3x30"}, "15m", BY_ONE),
    "pods come faster than they are tried": Case("MooringStalled", {ACTIVE: "3+9x30", SCHEDULED: "0+60x30"}, "15m"),
    "pods wait at an instance that stands by": Case("MooringStalled", {ACTIVE: "3x30", LEADS_ONE: "0x30"}, "15m"),
    "there is nothing to do": Case("MooringStalled", {ACTIVE: "0x30", SCHEDULED: "7x30", LEADS_ONE: "1x30"}, "15m"),
    "every tenth attempt fails": Case(
        "MooringErrors", {SCHEDULED: "0+9x40", FAILED: "0+1x40"}, "30m", {"job": "mooring", "profile": "p"}
    ),
    "every hundredth attempt fails": Case("MooringErrors", {SCHEDULED: "0+99x40", FAILED: "0+1x40"}, "30m"),
    "nothing is tried, and nothing fails": Case("MooringErrors", {SCHEDULED: "9x40", FAILED: "1x40"}, "30m"),
    "decisions take seconds": Case(
        "MooringSlow",
        {decisions("1.024"): "0x40", decisions("2.048"): "0+5x40", decisions("+Inf"): "0+5x40"},
        "30m",
        {"job": "mooring"},
    ),
    "decisions take milliseconds": Case(
        "MooringSlow", {decisions("0.004"): "0+5x40", decisions("2.048"): "0+5x40", decisions("+Inf"): "0+5x40"}, "30m"
    ),
    "pods wait for more than an hour": Case(
        "MooringPodsUnschedulable",
        {REFUSED: "2x90"},
        "80m",
        {"job": "mooring", "profile": "p", "plugin": "Headroom"},
    ),
    "pods wait for a new node": Case("MooringPodsUnschedulable", {REFUSED: "2x10 0x80"}, "80m"),
    "a plugin fails again and again": Case("MooringPluginFails", {PLUGIN_ERRORS: "0+2x20"}, "15m", BY_PLUGIN),
    "a plugin has failed once": Case("MooringPluginFails", {PLUGIN_ERRORS: "0 0 1x20"}, "10m"),
    "a plugin makes attempts slow": Case("MooringPluginSlow", {PLUGIN_SLOW: "0+2x20"}, "15m", BY_PLUGIN),
    "a plugin was slow once": Case("MooringPluginSlow", {PLUGIN_SLOW: "0 0 1x20"}, "10m"),
    "another scheduler binds": Case(
        "MooringForeignBindings", {FOREIGN_BINDINGS: "1+1x20"}, "10m", {"job": "mooring", "profile": "p"}
    ),
    "another scheduler has stopped binding": Case("MooringForeignBindings", {FOREIGN_BINDINGS: "7x40"}, "30m"),
    "a right was taken away": Case(
        "MooringForbidden", {requests("403"): "1+1x20"}, "10m", {"job": "mooring", "method": "GET"}
    ),
    "all rights are there": Case("MooringForbidden", {requests("200"): "0+9x20", requests("409"): "0+1x20"}, "10m"),
    "the API server is overloaded": Case(
        "MooringApiErrors", {requests("200"): "0+1x30", requests("503"): "0+1x30"}, "20m", BY_ONE
    ),
    "the API server cannot be reached": Case(
        "MooringApiErrors", {requests("200"): "9x30", requests("<error>"): "0+1x30"}, "20m", BY_ONE
    ),
    "a request fails now and then": Case(
        "MooringApiErrors", {requests("200"): "0+99x30", requests("500"): "0+1x30"}, "20m"
    ),
    "three gigabytes are held": Case("MooringMemory", {MEMORY: "3e9x30"}, "20m", BY_ONE),
    "a hundred megabytes are held": Case("MooringMemory", {MEMORY: "1e8x30"}, "20m"),
}
