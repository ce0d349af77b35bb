"""How fast the API is. Every figure stands beside its floor, measured in the same run."""
