"""`python -m tests.bench`: this transport, stock Celery and a plain loop, measured side by side."""
