"""The inside of the `process` tier: the fork-server and what its children do.

Runs in an interpreter of its own, which need not have this project's packages: nothing here
imports anything but the standard library and itself, and of that only what it cannot do without
(hence `_socket`, and no dataclasses, typing or json). Every page of memory in the fork-server is
paid for again by each call.
"""
