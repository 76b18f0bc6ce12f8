"""The shop and its order events."""
