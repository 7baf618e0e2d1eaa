"""The plugins of kubernetes-sigs/scheduler-plugins: their configuration, custom resources, labels and annotations.

None is enabled unless a configuration names it. Where the original has a mistake that users run into, the plugin
has an argument `compatibility`: with `scheduler-plugins` the mistake is kept. docs/deviations.md lists them.
"""
