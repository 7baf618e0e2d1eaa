"""From watch events to the state, the queue and the plugins' object stores."""
