"""Per kind: defaulting, admission and validation. `built_in_strategies` is the table that names them."""

from __future__ import annotations

from mooring.apiserver.custom.definitions import DefinitionStrategy
from mooring.apiserver.strategies import config_maps, devices, networking, rbac, resource_limits, volumes, workloads
from mooring.apiserver.strategies.autoscalers import AutoscalerStrategy
from mooring.apiserver.strategies.base import CreateOnUpdateStrategy, Strategy, StrategyContext
from mooring.apiserver.strategies.batch import CronJobStrategy, JobStrategy
from mooring.apiserver.strategies.daemon_sets import DaemonSetStrategy
from mooring.apiserver.strategies.disruption_budgets import DisruptionBudgetStrategy
from mooring.apiserver.strategies.events import EventStrategy
from mooring.apiserver.strategies.namespace import NamespaceStrategy
from mooring.apiserver.strategies.node import NodeStrategy
from mooring.apiserver.strategies.pod import PodStrategy
from mooring.apiserver.strategies.pod_groups import PodGroupStrategy, PodGroupWorkloadStrategy
from mooring.apiserver.strategies.priority_classes import PriorityClassStrategy
from mooring.apiserver.strategies.services import ServiceStrategy
from mooring.apiserver.strategies.stateful_sets import StatefulSetStrategy

__all__ = ["Strategy", "StrategyContext", "built_in_strategies"]


def built_in_strategies() -> dict[str, Strategy]:
    """By storage key; other kinds have the generic strategy. One set per server: some strategies have state."""
    role, binding = rbac.RoleStrategy(), rbac.RoleBindingStrategy()
    return {
        "pods": PodStrategy(),
        "nodes": NodeStrategy(),
        "namespaces": NamespaceStrategy(),
        "services": ServiceStrategy(),
        "events": EventStrategy(),
        "configmaps": config_maps.ConfigMapStrategy(),
        "secrets": config_maps.SecretStrategy(),
        "podtemplates": workloads.PodTemplateStrategy(),
        "resourcequotas": resource_limits.ResourceQuotaStrategy(),
        "limitranges": resource_limits.LimitRangeStrategy(),
        "endpoints": networking.EndpointsStrategy(),
        "endpointslices.discovery.k8s.io": networking.EndpointSliceStrategy(),
        "networkpolicies.networking.k8s.io": networking.NetworkPolicyStrategy(),
        "ingresses.networking.k8s.io": networking.IngressStrategy(),
        "ingressclasses.networking.k8s.io": networking.IngressClassStrategy(),
        "persistentvolumes": volumes.VolumeStrategy(),
        "persistentvolumeclaims": volumes.ClaimStrategy(),
        "replicationcontrollers": workloads.ReplicationControllerStrategy(),
        "deployments.apps": workloads.DeploymentStrategy(),
        "replicasets.apps": workloads.ReplicaSetStrategy(),
        "statefulsets.apps": StatefulSetStrategy(),
        "daemonsets.apps": DaemonSetStrategy(),
        "jobs.batch": JobStrategy(),
        "cronjobs.batch": CronJobStrategy(),
        "poddisruptionbudgets.policy": DisruptionBudgetStrategy(),
        "horizontalpodautoscalers.autoscaling": AutoscalerStrategy(),
        "priorityclasses.scheduling.k8s.io": PriorityClassStrategy(),
        "podgroups.scheduling.k8s.io": PodGroupStrategy(),
        "workloads.scheduling.k8s.io": PodGroupWorkloadStrategy(),
        "storageclasses.storage.k8s.io": volumes.StorageClassStrategy(),
        "csinodes.storage.k8s.io": volumes.CSINodeStrategy(),
        "csidrivers.storage.k8s.io": volumes.DriverStrategy(),
        "volumeattachments.storage.k8s.io": volumes.AttachmentStrategy(),
        "resourceclaims.resource.k8s.io": devices.ResourceClaimStrategy(),
        "resourceclaimtemplates.resource.k8s.io": devices.ResourceClaimTemplateStrategy(),
        "resourceslices.resource.k8s.io": devices.ResourceSliceStrategy(),
        "deviceclasses.resource.k8s.io": devices.DeviceClassStrategy(),
        "customresourcedefinitions.apiextensions.k8s.io": DefinitionStrategy(),
        "leases.coordination.k8s.io": CreateOnUpdateStrategy(),
        "roles.rbac.authorization.k8s.io": role,
        "clusterroles.rbac.authorization.k8s.io": role,
        "rolebindings.rbac.authorization.k8s.io": binding,
        "clusterrolebindings.rbac.authorization.k8s.io": binding,
    }
