"""How alike two texts are: pure functions from two texts to a number from 0 to 1.

Each follows the library that the field quotes, number for number where the texts are ASCII, and
says where it goes on beyond that. The text that is graded comes first, the reference second.
"""


class TooLongError(ValueError):
    """The texts are too long to compare in a second; the message says so, without a full stop."""
