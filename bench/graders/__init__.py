"""How fast graders are. Every figure stands beside its floor, measured in the same run."""
