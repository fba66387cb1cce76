"""Programs on several Glovebox servers from Ray: `pool(["http://node1:8000", "http://node2:8000"]).map(…)`."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence

from ..client import Glovebox
from ..grading import grade

try:
    import ray  # type: ignore
    from ray.util import ActorPool  # type: ignore
except ImportError:
    ray = ActorPool = None


class GloveboxActor:
    """What each actor does; results are plain dicts, which Ray can send anywhere."""

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None) -> None:
        self._box = Glovebox(url, token) if url else Glovebox.local(token=token)

    def run(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """One item of POST /v1/batch."""
        (result,) = self._box.batch([item])
        return result.raw

    def batch(self, items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Many, in their order."""
        return [r.raw for r in sorted(self._box.batch(items), key=lambda r: r.index)]

    def grade(self, code: str, cases: Sequence[Any], **options: Any) -> float:
        return grade(self._box, code, cases, **options).score

    def close(self) -> None:
        self._box.close()


class GloveboxPool:
    """An actor for each address, and work given to whoever is free."""

    def __init__(self, urls: Iterable[Optional[str]], token: Optional[str] = None, **options: Any) -> None:
        if ray is None:
            raise ImportError('GloveboxPool needs ray: pip install ray')
        actor = ray.remote(**options)(GloveboxActor) if options else ray.remote(GloveboxActor)
        self.actors = [actor.remote(url, token) for url in urls]
        self._pool = ActorPool(self.actors)

    def map(self, items: Iterable[Mapping[str, Any]], *, chunk: int = 64) -> Iterator[dict[str, Any]]:
        """Results in the order of the items; `chunk` of them go to an actor at once."""
        listed = list(items)
        chunks = [listed[i : i + chunk] for i in range(0, len(listed), chunk)]
        for results in self._pool.map(lambda actor, part: actor.batch.remote(part), chunks):
            yield from results
