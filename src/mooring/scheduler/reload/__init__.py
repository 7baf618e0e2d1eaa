"""Another configuration, and other plugins, without a restart: no pod is lost, and an invalid one changes nothing.

`versions` is how one version takes over from another, `restart_required` what none may change, `watched_files` what is
looked at and `reloader` when, and how it is reported. docs/reload.md is the operator's side of it.
"""
