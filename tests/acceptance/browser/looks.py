"""What a page must be to be used: no wider than the screen, and without what axe-core finds."""

import subprocess
import sys
from pathlib import Path

from selenium import webdriver

TOOLS = Path(__file__).parent / "tools"
INSTALLED = Path(sys.prefix) / "browser-tools"
DESKTOP, PHONE = 1280, 390  # pixels


def install_tools() -> Path:
    """Install axe-core and the checker of emails, pinned, once; returns the folder."""
    INSTALLED.mkdir(parents=True, exist_ok=True)
    stamp = INSTALLED / ".ready"
    wanted = (TOOLS / "package-lock.json").read_text()
    for file in TOOLS.iterdir():
        (INSTALLED / file.name).write_bytes(file.read_bytes())
    if not stamp.exists() or stamp.read_text() != wanted:
        done = subprocess.run(
            ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
            cwd=INSTALLED,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        stamp.write_text(wanted)
    return INSTALLED


def resize(browser: webdriver.Chrome, width: int, height: int = 900) -> None:
    """Make the page's own window so wide: a real one may be no narrower than 500 pixels."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
    )


def prefer_dark(browser: webdriver.Chrome, is_dark: bool) -> None:
    value = "dark" if is_dark else "light"
    features = [{"name": "prefers-color-scheme", "value": value}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def overflow(browser: webdriver.Chrome) -> int:
    """By how many pixels the page is wider than the screen."""
    script = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    return int(browser.execute_script(script))


def faults(browser: webdriver.Chrome, tools: Path) -> list[str]:
    """What axe-core calls serious or critical: the rule, and where."""
    browser.execute_script((tools / "node_modules" / "axe-core" / "axe.min.js").read_text())
    found = browser.execute_async_script(
        "const done = arguments[0];"
        "axe.run(document, {resultTypes: ['violations']}).then(r => done(r.violations))"
    )
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:160]} {node['failureSummary'][:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]
