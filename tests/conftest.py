"""What holds for every test: how hypothesis looks for counter-examples.

Neither profile has a deadline: how long an example takes on a busy machine says nothing about the code.
"""

import os

from hypothesis import settings

settings.register_profile("local", deadline=None)
# CI judges a change by the same examples each time; looking for new ones is for everybody's own machine.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "local"))
