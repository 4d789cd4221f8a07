"""Messages about tracked objects, subscriptions to watch them by, and the events that a Tracker tells of them."""

from datetime import UTC, datetime

import contrada as ct

START = 1_700_000_000_000
ON = ["enter", "exit", {"dwell": "30s"}]
FENCES = {
    "a": "S_INTERSECTS(place, BBOX(0, 0, 4, 4))",
    "b": "S_WITHIN(place, BBOX(2, 2, 9, 9)) AND speed > 0",
    "c": "speed > 3",
}


def fixes(number):
    """A batch of messages: (id, object, seconds, x, y, speed); objects as text and numbers, some late or bad."""
    rows = [
        (
            f"{number}-{k}",
            ["bus", 7, "7", "cab", None][k % 5],
            60 * number + 7 * k % 50,
            (k * 3 + number) % 10,
            k % 7,
            k % 3,
        )
        for k in range(20)
    ]
    rows.append((f"{number}-still", f"still {number}", 60 * number + 1, 5, 5, 1))  # its dwell is due without a fix
    return [
        {"id": id, "who": who, "at": datetime.fromtimestamp(START / 1000 + second, UTC).isoformat(),
         "place": {"type": "Point", "coordinates": [x, y]}, "speed": speed}
        for id, who, second, x, y, speed in rows
    ]  # fmt: skip


def event_of(row):
    """An event as a tuple; times in milliseconds."""
    return (row["message_id"], row["event"], row["subscriber"], row["key"], row["object"], row["before"], row["after"],
            int(row["time"].timestamp() * 1000), row["reason"])  # fmt: skip


class Right:
    """A Tracker that is fed the same batches."""

    def __init__(self, **options):
        self.watermark, self.newest, self.events, self.rejected = 0, 0, [], 0
        self.tracker = ct.Tracker(track="who", time="at", clock=lambda: self.watermark, **options)
        for key in "ab":
            self.tracker.subscribe(key, FENCES[key], ON, subscriber="ops")

    def told(self, events, messages=None):
        for one in events:
            id = None if messages is None or one.row is None else messages[one.row]["id"]
            relations = [None if one is None else str(one) for one in (one.before, one.after)]
            who = self.tracker.table.subscribers_of(self.tracker.table.rows_of([one.key]), "subscription")[0]
            self.events.append((id, one.kind, who, one.key, str(one.object), *relations, one.time, one.reason))

    def take(self, messages):
        self.watermark = self.newest
        ordered = sorted(messages, key=lambda message: (message["at"], message["id"]))
        told = self.tracker.publish(ordered, now=0)
        self.told(told, ordered)
        self.rejected += len(told.rejected)
        self.told(self.tracker.advance(self.watermark))
        self.newest = max(self.newest, self.tracker.newest or 0)

    def finish(self):
        """Time passes after the last message, in a batch without messages."""
        self.watermark = self.newest
        self.told(self.tracker.advance(self.watermark))
