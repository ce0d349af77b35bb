"""The page of all benchmarks, written from the JSON that they leave."""
