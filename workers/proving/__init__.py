"""The serving half of a final model's proof: what the server of chat answers makes of its weights.

The trainer's own proof loads the export with stock libraries in float32. Here the serving service
is asked for the log-probabilities of the same tokens, from the trained model and from its base.
"""
