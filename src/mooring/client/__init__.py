"""The API client: the only code that sends requests to an API server.

`kubeconfig` finds the server, `connection` and `credentials` authenticate, `transport` sends
bytes, `api` knows verbs and errors, `reflector` lists and watches, `recorder` writes events. `informer`, `work_queue`,
`core_event_recorder` and `rest_mapper` are for controllers.
"""

from mooring.client.api import ApiClient
from mooring.client.connection import Connection, ExecPlugin, Impersonation
from mooring.client.kubeconfig import find_connection, in_cluster_connection, load_kubeconfig
from mooring.client.object_cache import ObjectCache
from mooring.client.own_kubeconfig import load_own_kubeconfig
from mooring.client.recorder import ControllerEvents, EventRecorder
from mooring.client.reflector import Feed, Reflector

__all__ = [
    "ApiClient",
    "Connection",
    "ControllerEvents",
    "EventRecorder",
    "ExecPlugin",
    "Feed",
    "Impersonation",
    "ObjectCache",
    "Reflector",
    "find_connection",
    "in_cluster_connection",
    "load_kubeconfig",
    "load_own_kubeconfig",
]
