"""When groups without spread are too many; apart, so that it can be read without torch."""

#: Share of groups without spread from which on training is refused.
REFUSE_SHARE = 0.95
#: Share of groups without spread from which on the user is warned.
WARN_SHARE = 0.6
#: Groups that must be seen before training is refused: with a spread in every fifth group, 32 in
#: a row come close to none (at most one with spread) less than once in a hundred jobs.
PROBE_GROUPS = 32
