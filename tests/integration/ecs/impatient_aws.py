"""The AWS CLI in front of an emulator, which has done within a second what takes AWS minutes.

The CLI would ask for a stack's state every half minute. This asks ten times after a second at most,
then as rarely as the CLI. It runs on the Python of the CLI's own environment.
"""

import math
import sys
import time
from itertools import chain, repeat
from types import SimpleNamespace

import awscli.clidriver
import botocore.waiter

longest = chain(repeat(1.0, 10), repeat(math.inf))  # seconds
botocore.waiter.time = SimpleNamespace(
    sleep=lambda seconds: time.sleep(min(seconds, next(longest)))
)
sys.exit(awscli.clidriver.main())
