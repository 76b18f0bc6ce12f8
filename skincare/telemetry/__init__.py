"""What the shop tells of itself: log lines, metrics, errors, and whether it is ready."""
