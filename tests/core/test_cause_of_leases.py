"""Which command a lease goes back to (contract section 4, common fields)."""

from __future__ import annotations

import json

from tidelog.core.replay import Replay


def test_a_lease_of_a_parked_claim_names_the_claim_and_not_the_command_that_woke_it() -> None:
    script = [
        {
            "at": 0,
            "command": {
                "type": "claim",
                "worker_id": "w",
                "queue": "default",
                "wait_seconds": 9,
                "command_id": "claim-1",
            },
        },
        {"at": 1, "command": {"type": "enqueue", "wire_name": "work", "command_id": "enqueue-1"}},
    ]
    lines = [json.loads(line) for line in Replay().run(json.dumps(entry).encode() for entry in script)]
    causes = {
        line["transition"]["type"]: line["transition"]["cause_command_id"]
        for line in lines
        if "transition" in line
    }
    assert causes == {"enqueued": "enqueue-1", "leased": "claim-1"}
