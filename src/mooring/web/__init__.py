"""The page: a cluster in a browser, and why its pods are where they are. `mooring web` serves it.

`mirror` has the cluster, from a file or by list and watch; `node_columns`, `queue_page`, `pod_page` and `node_page`
read it; `server` is HTTP, `api` the paths, `access` the rights of users. Nothing here runs in a scheduler's process.
"""
