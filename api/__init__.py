"""The HTTP side of the service: OpenAI's fine-tuning API in front of `core`."""
