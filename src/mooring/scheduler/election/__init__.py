"""Leader election: which of several replicas schedules."""
