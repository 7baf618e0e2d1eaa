"""Whether Mooring decides as the real kube-scheduler does, case by case.

A case is a cluster and a pod; beside it stands what the unmodified kube-scheduler decided (`expect`). `cases` reads
them, `situation` makes state and profile of one, `our_decision` puts our decision into the recorder's form, `comparing`
names the differences, `running` does it for many.

A distribution of its own, `mooring-conformance`: it has the version of the Mooring that it compares.
"""

__version__ = "0.1.0"
