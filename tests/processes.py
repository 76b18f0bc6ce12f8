"""Processes that a test has started, seen from outside."""

import psutil


def runs(process: psutil.Process) -> bool:
    """Whether it lives; it may end between two questions, and stay a zombie for a while."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
