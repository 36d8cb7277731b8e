"""Tables that several writers write to and drop, and what has to become of their requests."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Optional

from oracle import Fate, Request


@dataclass
class Drop:
    """A drop that was sent, and the requests that were answered before."""

    began: int
    before: list[Request]
    # Those of them that were there then: they go together or stay together.
    there: list[Request]
    ended: Optional[int] = None


class DroppedTable:
    """One order of all that is sent to a table and answered, whoever sent it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests: list[Request] = []
        self.drops: list[Drop] = []
        self.began: dict[int, int] = {}
        self.ended: dict[int, int] = {}
        self.now = 0
        self.lock = threading.Lock()

    def _tick(self) -> int:
        self.now += 1
        return self.now

    def begin(self, request: Request) -> None:
        with self.lock:
            self.requests.append(request)
            self.began[request.points.request] = self._tick()

    def end(self, request: Request) -> None:
        """After it was answered, and judged by its answer: a drop at the same time may have come after it."""
        with self.lock:
            self.ended[request.points.request] = self._tick()
            began = self.began[request.points.request]
            if request.fate is Fate.STORED and any(drop.ended is None or drop.ended > began for drop in self.drops):
                request.fate = Fate.OPEN
                request.what += ", beside a drop"

    def begin_drop(self) -> Drop:
        with self.lock:
            before = [
                request
                for request in self.requests
                if request.points.request in self.ended and request.fate is not Fate.ABSENT
            ]
            drop = Drop(self._tick(), before, [request for request in before if request.fate is Fate.STORED])
            self.drops.append(drop)
            for request in before:
                request.fate = Fate.OPEN
                request.what += ", drop sent"
            return drop

    def end_drop(self, drop: Drop, is_done: bool) -> None:
        """After it was answered; one that was refused did nothing."""
        with self.lock:
            drop.ended = self._tick()
            if is_done:
                for request in drop.before:
                    request.fate = Fate.ABSENT
                    request.what += ", dropped"
                return
            self.drops.remove(drop)
            others = [other for other in self.drops if other.ended is None]
            for request in drop.there:
                if request.fate is Fate.OPEN and not any(request in other.before for other in others):
                    request.fate = Fate.STORED
                    request.what += ", drop refused"

    def settle(self, case: str) -> list[str]:
        """Between two processes, when all requests are known to be there or not: returns drops that were done in half."""
        wrong = []
        for drop in self.drops:
            fates = {request.fate for request in drop.there}
            if len(fates) > 1:
                left = [request for request in drop.there if request.fate is Fate.STORED]
                wrong.append(
                    f"{case}: half a drop of {self.name}: {len(left)} of {len(drop.there)} requests are left: {left[:3]}"
                )
        self.drops.clear()
        self.requests = [request for request in self.requests if request.fate is Fate.STORED]
        self.ended = {request.points.request: self.now for request in self.requests}
        self.began = dict(self.ended)
        return wrong
