"""The shop without queue and worker: what happens after a checkout happens inside its request."""
