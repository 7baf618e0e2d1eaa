"""How a configuration gets into a cluster: the rights its plugins need, and the manifests that grant them and run it.

`rights_of` lists the requests that the scheduler will make; `manifests` writes the objects. Nothing here connects to
a cluster.
"""

from mooring.deploy.manifests import Deployed, Mode, manifests
from mooring.deploy.rights import Right, rights_of
from mooring.deploy.rules import Rule, rules_of

__all__ = ["Deployed", "Mode", "Right", "Rule", "manifests", "rights_of", "rules_of"]
