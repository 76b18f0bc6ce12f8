"""Moving the whole dead-letter queue back with SQS's own tool, message by message as they are.

It keeps what the outbox cannot send: messages in which no event can be read. It knows no filter
and no state; repeats are harmless, because the claim knows what is done.
"""

import time
from typing import Final

import structlog

from skincare.events import audit
from skincare.events.queue_client import open_dead_letter_queue
from skincare.operations.dead_letter_actions import Progress
from skincare.sqs.dead_letters import Move

log = structlog.get_logger(__name__)

_ASK_EVERY_SECONDS: Final = 1.0


def redrive_native(*, actor: str, progress: Progress | None = None) -> Move:
    """Move all messages back to the queue with StartMessageMoveTask; return how the move ended.

    Waits for the end. Whoever stops waiting does not stop the move. Raises
    `skincare.sqs.dead_letters.Unreachable`, also where a move is under way already.
    """
    queue = open_dead_letter_queue()
    total = queue.depth().visible
    # Before the start: a move without its entry would be worse than an entry without a move.
    audit.record(actor=actor, action="moved back natively", subject=queue.name, messages=total)
    queue.start_move()
    log.info("dead_letters_move_started", queue=queue.name, messages=total)
    move = queue.move()
    while not move.is_over:
        if progress is not None:
            progress(move.moved, max(total, move.moved))
        time.sleep(_ASK_EVERY_SECONDS)
        move = queue.move()
    log.info("dead_letters_moved", queue=queue.name, status=move.status, moved=move.moved)
    return move
