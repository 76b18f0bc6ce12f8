"""How the admin writes times: to the second, for who compares them with log lines."""

from typing import Final

DATETIME_FORMAT: Final = "j M Y H:i:s"
DATE_FORMAT: Final = "j M Y"
