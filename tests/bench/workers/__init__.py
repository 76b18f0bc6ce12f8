"""The worker processes that are measured; each module is started by its own command."""
