"""Answers that would be larger than a log takes come in pieces (contract section 5)."""

from __future__ import annotations

import json

from tidelog.core.replay import Replay
from tidelog_events.bounds import MAX_REPLY_BYTES


def test_a_heartbeat_of_very_many_leases_is_answered_in_pieces_in_the_order_of_its_rows() -> None:
    rows = [{"job_id": f"default/{number}", "attempt": 1} for number in range(30_000)]
    command = {"type": "heartbeat", "worker_id": "w", "leases": rows, "command_id": "beat"}
    lines = list(Replay().run([json.dumps({"at": 0, "command": command}).encode()]))
    replies = [json.loads(line)["reply"] for line in lines]
    assert max(map(len, lines)) <= MAX_REPLY_BYTES + len('{"reply":}')
    assert [reply.get("more") for reply in replies] == [True] * (len(replies) - 1) + [None]
    assert {reply["command_id"] for reply in replies} == {"beat"}
    answered = [row["job_id"] for reply in replies for row in reply["leases"]]
    assert answered == [row["job_id"] for row in rows]
