"""The settings of `make run`: the project's own, with a worker that stops at once.

A worker waits for its poll before it ends, because a message that a poll brings to nobody is not
seen again for the whole visibility timeout. A developer restarts it with each change of the code.
"""

from dataclasses import replace

from skincare.settings import *  # noqa: F403

SQS_POLICY = replace(SQS_POLICY, long_poll=1)  # noqa: F405
