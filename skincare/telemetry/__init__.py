"""What the shop reports about itself: log lines, metrics, errors, and whether it is ready."""
