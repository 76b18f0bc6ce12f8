"""A study: the policies of ecs/scaling.yaml on three days of a shop, simulated. `make scaling`."""
