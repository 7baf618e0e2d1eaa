"""The contract plugins are found in their folder, as `--plugins` finds them, and keep the contract."""

from __future__ import annotations

from pathlib import Path

from mooring.framework.registry import Registry


def test_the_folder_is_loaded_by_path():
    added = Registry().add_path(str(Path(__file__).parent))
    assert {entry.name for entry in added} == {"Gang", "LoadAware", "TeamQuota"}
    assert {kind.KIND.plural for entry in added for kind in entry.object_types} == {"quotas"}
