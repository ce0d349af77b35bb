"""Schema changes, one file each, in the order that `down_revision` gives."""
