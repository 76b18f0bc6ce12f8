"""The fields of the transport's lines are seen without any logging of the application's own."""

import io
import logging

from skincare.sqs.logs import show_fields


def test_our_lines_show_their_fields_and_others_stay_as_they_are() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logger = logging.Logger("root")  # noqa: LOG001  one that no other test sees
    logger.addHandler(handler)
    show_fields(logger=logger)
    show_fields(logger=logger)
    fields = {"retry_in": 10.0, "reason": "warehouse is closed"}

    for name in ("skincare.sqs.consumer", "elsewhere"):
        record = logger.makeRecord(
            name, logging.INFO, "file", 1, "message_released", (), None, extra=fields
        )
        logger.handle(record)

    assert stream.getvalue().splitlines() == [
        "INFO: message_released retry_in=10.0 reason='warehouse is closed'",
        "INFO: message_released",
    ]
