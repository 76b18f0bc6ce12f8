"""The whole shop under load while everything around and inside it is broken (`make chaos`)."""
