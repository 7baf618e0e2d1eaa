"""Controllers of the resources that Mooring's plugins read: the status of PodGroups and ElasticQuotas, and events about
objects that cannot work as they are.

Schedulers work without them. They are ordinary clients of any API server: `mooring controllers` runs them, and
`mooring up` beside its cluster. `*_status` and `*_problems` modules compute, `*_controller` modules watch and write,
`runner` starts a controller once the server serves its kind.
"""

from mooring.controllers.runner import Controllers

__all__ = ["Controllers"]
