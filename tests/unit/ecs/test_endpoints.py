"""Each host of AWS that a document, a template or a setting names is one that there is."""

import re
from pathlib import Path

import pytest
from django.conf import settings

from ecs.template import FOLDER

ROOT = Path(settings.BASE_DIR)
#: Where SES takes SMTP; Jakarta has its API alone.
# https://docs.aws.amazon.com/ses/latest/dg/ses_example_ses_Scenario_GenerateSmtpCredentials_section.html
SMTP_REGIONS = {
    *("us-east-1", "us-east-2", "us-west-2", "ca-central-1", "sa-east-1"),
    *("ap-south-1", "ap-northeast-1", "ap-northeast-2", "ap-southeast-1", "ap-southeast-2"),
    *("eu-central-1", "eu-west-1", "eu-west-2", "eu-south-1", "eu-north-1"),
}
TEXTS = [
    *FOLDER.glob("*"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "docker").glob("*"),
    *ROOT.glob("*.md"),
    *ROOT.glob(".env*"),
]


@pytest.mark.parametrize("path", [p for p in TEXTS if p.is_file()], ids=lambda p: p.name)
def test_ses_is_asked_for_smtp_where_it_speaks_it(path: Path) -> None:
    regions = re.findall(r"email-smtp\.([a-z0-9-]+)\.amazonaws", path.read_text())

    assert set(regions) <= SMTP_REGIONS


def test_bounces_come_back_to_the_region_that_sends() -> None:
    # https://docs.aws.amazon.com/ses/latest/dg/mail-from.html
    readme = (FOLDER / "README.md").read_text()
    (back,) = set(re.findall(r"`10 feedback-smtp\.([a-z0-9-]+)\.amazonses\.com`", readme))
    (asked,) = set(re.findall(r"aws sesv2 --region ([a-z0-9-]+)", readme))

    assert {back, asked} == set(re.findall(r"email-smtp\.([a-z0-9-]+)\.amazonaws", readme))


def test_the_connection_to_the_database_is_nowhere_described_as_weaker_than_it_is() -> None:
    # Production verifies the server whatever the URL says; who copies `require` believes otherwise.
    for path in TEXTS:
        if path.is_file() and path.suffix in (".yaml", ".example", ".md"):
            assert "sslmode=require" not in path.read_text(), path.name


def test_no_command_of_the_readme_leaves_another_region_behind() -> None:
    # The next deploy.sh would deploy there.
    exported = re.findall(
        r"export [^\n]*AWS_(?:DEFAULT_)?REGION=(\S+)", (FOLDER / "README.md").read_text()
    )

    assert set(exported) == {"ap-southeast-3"}
