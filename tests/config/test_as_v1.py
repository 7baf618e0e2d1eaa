"""A configuration as a v1 document: complete, readable again, and without keys where people read it."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.base.documents import written
from mooring.config import Configuration, load_configuration
from mooring.config.as_v1 import as_v1
from mooring.plugins.catalogue import catalogue

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
REGISTRY = catalogue()


def loaded(text: str) -> Configuration:
    return load_configuration(text, source="a test", registry=REGISTRY).configuration


FILES = {
    "the defaults": "",
    "client limits": "clientConnection: {kubeconfig: k, qps: 7.5, burst: 9}\n",
    "an election of our own": "leaderElection: {leaderElect: true, leaseDuration: 1m30s, resourceName: mine}\n",
    "every node or some": "percentageOfNodesToScore: 0\n",
    "a late cache": "delayCacheUntilActive: true\n",
    "plugins that come and go": """
profiles:
- schedulerName: mine
  percentageOfNodesToScore: 30
  plugins:
    multiPoint: {enabled: [{name: ImageLocality, weight: 9}], disabled: [{name: NodeAffinity}]}
    score: {enabled: [{name: NodeResourcesFit, weight: 7}], disabled: [{name: "*"}]}
    preScore: {enabled: [{name: NodeResourcesFit}], disabled: [{name: "*"}]}
""",
    "arguments": """
profiles:
- pluginConfig:
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 0, ignorePreferredTermsOfExistingPods: true}}
  - {name: DynamicResources, args: {filterTimeout: 1m5s}}
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: ["", b]}]}]
""",
    "extenders": """
extenders:
- {urlPrefix: "http://127.0.0.1:1/a", filterVerb: filter, prioritizeVerb: rank, weight: 2, httpTimeout: 7s}
- {urlPrefix: "http://127.0.0.1:1/b", bindVerb: bind, managedResources: [{name: x.io/y, ignoredByScheduler: true}]}
""",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_what_is_written_is_the_same_when_it_is_read_again(text):
    document = as_v1(loaded(HEAD + text))
    assert as_v1(loaded(written(document))) == document


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "parallelism": st.integers(1, 64),
            "percentageOfNodesToScore": st.integers(0, 100),
            "podInitialBackoffSeconds": st.integers(1, 9),
            "enableProfiling": st.booleans(),
            "enableContentionProfiling": st.booleans(),
        },
    )
)
def test_what_a_file_sets_is_in_the_document(fields):
    document = as_v1(loaded(HEAD + written(fields) if fields else HEAD))
    assert {name: document[name] for name in fields} == fields


def test_keys_are_written_only_on_request():
    certificate, key = (base64.b64encode(text).decode() for text in (b"certificate", b"key"))
    text = f"""
extenders:
- urlPrefix: https://127.0.0.1:1/a
  filterVerb: filter
  enableHTTPS: true
  tlsConfig: {{insecure: true, certData: {certificate}, keyData: {key}}}
"""
    configuration = loaded(HEAD + text)
    assert as_v1(configuration)["extenders"][0]["tlsConfig"] == {"insecure": True, "certData": certificate}
    assert as_v1(configuration, with_credentials=True)["extenders"][0]["tlsConfig"]["keyData"] == key
