"""What a developer's shell needs to reach what `make run` started, as a file to be loaded."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from skincare.local.postgres import program_folder

HEADING = """\
# What reaches the shop that `make run` keeps up; load it into a shell with
#     . {file}
# Then celery -A skincare, python manage.py, psql "$DATABASE_URL" and aws sqs work against it. It is
# written at each start and removed at the end.
"""


def write_environment(file: Path, variables: Mapping[str, str]) -> None:
    """Write these variables, and where the programs are; readable by the owner alone."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())]
    # boto3's and the AWS command line's own name for it
    lines.append(f"export AWS_ENDPOINT_URL_SQS={shlex.quote(variables['SQS_ENDPOINT_URL'])}")
    programs = [Path(sys.executable).parent, program_folder()]
    lines.append(f'export PATH={":".join(shlex.quote(str(one)) for one in programs)}:"$PATH"')
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    file.write_text(HEADING.format(file=file) + "\n".join(lines) + "\n")
