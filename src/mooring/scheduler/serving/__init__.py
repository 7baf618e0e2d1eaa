"""What the scheduler serves over HTTPS: health, metrics and configuration.

Runs on a thread of its own, so that a long computation never delays a health probe.
"""
