"""How names may look: what passes, and the sentence for what does not."""

from __future__ import annotations

import pytest

from mooring.objects.names import dns1035_label, dns_label, dns_subdomain, label_value, path_segment, qualified_name

GOOD = {
    dns_label: ["a", "my-name", "1-2", "x" * 63],
    dns_subdomain: ["a", "node-1.example.com", "x" * 253],
    dns1035_label: ["a", "my-name", "a1"],
    qualified_name: ["a", "A_b.c", "example.com/gpu", "kubernetes.io/arch", f"{'x' * 253}/{'y' * 63}"],
    label_value: ["", "a", "A_b.c-9", "x" * 63],
    path_segment: ["system:node", "a b", "..."],
}
BAD = {
    dns_label: ["", "A", "-a", "a-", "a.b", "a_b", "a\n", "x" * 64],
    dns_subdomain: ["", "A", "-a", "a..b", "a.", ".a", "a_b", "a-.b", "x" * 254],
    dns1035_label: ["", "1a", "-a", "A", "x" * 64],
    qualified_name: ["", "-a", "a b", "a/b/c", "/a", "a/", "A.com/b", "ü", "x" * 64, f"{'x' * 254}/y"],
    label_value: ["-a", "a-", "a b", "a/b", "a\n", "x" * 64],
    path_segment: [".", "..", "a/b", "50%"],
}


@pytest.mark.parametrize(("rule", "name"), [(rule, name) for rule, names in GOOD.items() for name in names])
def test_a_good_name_has_nothing_wrong(rule, name):
    assert rule(name) == []


@pytest.mark.parametrize(("rule", "name"), [(rule, name) for rule, names in BAD.items() for name in names])
def test_a_bad_name_is_rejected_with_the_reason(rule, name):
    assert rule(name)
    assert all(isinstance(sentence, str) and sentence for sentence in rule(name))
