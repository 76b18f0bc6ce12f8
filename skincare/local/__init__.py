"""The local stack: real PostgreSQL, a real SQS server, and the shop on top.

For development, demonstration and tests; production code never imports it.
"""
