"""Trouble on purpose: a proxy that breaks SQS calls, and messages that no task can be made of."""
