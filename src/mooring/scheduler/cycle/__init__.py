"""What happens to one pod: the scheduling cycle, the binding cycle beside it, preemption, and what is reported.

Read `scheduling_cycle` first.
"""
