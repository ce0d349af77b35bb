"""Child processes that leave nothing behind, however they or their parent end."""
