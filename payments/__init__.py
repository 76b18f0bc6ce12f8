"""Payments: what the gateways say, checked, kept, and applied to the orders once."""
