"""What a task raises to say what shall become of its message.

Any other exception keeps the message too: it is visible again after the backoff of the policy.
"""


class RetryLater(Exception):
    """The message is kept and becomes visible again after `after` seconds.

    None means the policy's backoff for the message's receive count. Each try costs a receive.
    """

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason, after)  # both, so that it survives the way out of the process
        self.reason = reason
        self.after = after

    def __str__(self) -> str:
        return self.reason


class Terminal(Exception):
    """The message can never be processed: it is visible at once until it is in the DLQ."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
