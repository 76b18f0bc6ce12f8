"""Simulates the scaling policy of scaling.yaml on three days of a shop: `make scaling`."""
