"""The display of a session: screenshots, windows, mouse and keyboard, recordings, the live view.

Both kinds of sessions inherit the calls from here; bodies, paths and answers are the same for both.
"""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, AsyncIterator, Iterable, Iterator, Mapping, Optional, Union

from . import _requests as requests
from ._net import Answer
from ._websocket import AsyncWebSocket, WebSocket
from .models import Screenshot, Window

if TYPE_CHECKING:
    from .aio import AsyncGlovebox
    from .client import Glovebox

ScreenshotOptions = Union[bool, Mapping[str, Any], None]


@dataclass
class InputResult:
    """The outcome of mouse and keyboard actions."""

    results: list[dict[str, Any]]  # one for each action; a picture that an action took is a Screenshot under `screenshot`
    acted_ms: float
    settled: bool
    after_ms: float
    screenshot: Optional[Screenshot] = None
    raw: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, raw: dict[str, Any]) -> 'InputResult':
        results = [{**r, 'screenshot': Screenshot(r['screenshot'])} if r.get('screenshot') else r for r in raw['results']]
        shot = Screenshot(raw['screenshot']) if raw.get('screenshot') else None
        return cls(results, raw.get('acted_ms') or 0.0, bool(raw.get('settled')), raw.get('after_ms') or 0.0, shot, raw)


@dataclass
class Recording:
    """A recording of the display, as the server describes it."""

    id: int
    state: str  # "recording", "finishing", "done"
    ended: Optional[str]  # why, once it has
    format: str
    width: int
    height: int
    frames: int
    bytes: int
    duration_ms: int
    started: str
    cells: list[dict[str, Any]]  # which cell was shown when
    raw: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, raw: dict[str, Any]) -> 'Recording':
        names = 'id', 'state', 'ended', 'format', 'width', 'height', 'frames', 'bytes', 'duration_ms', 'started', 'cells'
        return cls(**{name: raw.get(name) for name in names}, raw=raw)  # type: ignore[arg-type]


@dataclass
class LiveLink:
    """A link that opens a session's live view without a token."""

    url: str
    control: bool  # may it use mouse and keyboard?
    expires: str


@dataclass
class Frame:
    """A changed part of the screen, as a PNG; the first part is the whole screen."""

    x: int
    y: int
    width: int
    height: int
    screen_width: int
    screen_height: int
    png: bytes = field(repr=False)

    @classmethod
    def of(cls, message: bytes) -> 'Frame':
        x, y, width, height, screen_width, screen_height = struct.unpack_from('<6H', message)
        return cls(x, y, width, height, screen_width, screen_height, message[12:])


# ---- requests and answers -----------------------------------------------


def _input_body(
    action: Optional[str],
    actions: Optional[Iterable[Mapping[str, Any]]],
    screenshot: ScreenshotOptions,
    settle: Optional[bool],
    fields: Mapping[str, Any],
) -> dict[str, Any]:
    body = {
        'action': action,
        'actions': None if actions is None else [dict(a) for a in actions],
        'screenshot': dict(screenshot) if isinstance(screenshot, Mapping) else screenshot or None,
        'settle': settle,
        **fields,
    }
    return {k: v for k, v in body.items() if v is not None}


def _recording_body(action: str, recording: Any = None, **fields: Any) -> dict[str, Any]:
    body = {'action': action, 'id': requests.id_of(recording), **fields}
    return {k: v for k, v in body.items() if v is not None}


_SUFFIXES = {'.webm': 'webm', '.mp4': 'mp4', '.gif': 'gif', '.png': 'apng', '.apng': 'apng'}


def _film_format(target: Union[str, Path], format: Optional[str]) -> str:
    found = format or _SUFFIXES.get(Path(target).suffix.lower())
    if not found:
        raise ValueError(f'{str(target)!r} does not tell a format: let it end with {", ".join(_SUFFIXES)}, or give format=')
    return found


def _screenshot(answer: Answer) -> Screenshot:
    """From the picture itself, or from the object that an observation has."""
    kind = answer.headers.get('content-type', '')
    if kind.startswith('application/json'):
        return Screenshot(answer.json())
    data = answer.body
    width, height = int.from_bytes(data[16:20], 'big'), int.from_bytes(data[20:24], 'big')
    is_png = data[:8] == b'\x89PNG\r\n\x1a\n'
    return Screenshot(
        {
            'format': 'png' if is_png else kind.partition('/')[2],
            'width': width if is_png else 0,
            'height': height if is_png else 0,
            'data': base64.b64encode(data).decode(),
        }
    )


def _link_body(control: bool, ttl: Optional[float]) -> dict[str, Any]:
    return {'control': control} if ttl is None else {'control': control, 'ttl_s': ttl}


def _live_link(url: str, raw: Mapping[str, Any]) -> LiveLink:
    """With the server's address in front; over a Unix socket there is none that a browser could open."""
    return LiveLink((url if url.startswith('http') else '') + raw['url'], raw['control'], raw['expires'])


# ---- the calls -----------------------------------------------------------


class ScreenCalls:
    """The methods of a Session that was created with a display."""

    box: 'Glovebox'
    _path: str

    def screenshot(self, **query: Any) -> Screenshot:
        """The display as it is now, also while a cell runs: window, active_window, x, y, width, height, scale, format, quality; settle=True waits until it has settled."""
        return _screenshot(self.box.request('GET', requests.query(f'{self._path}/screenshot', **query)))

    def windows(self) -> list[Window]:
        """The visible windows, in stacking order, bottom window first."""
        return [Window.of(w) for w in self.box.request('GET', f'{self._path}/windows').json()['windows']]

    def send_input(
        self,
        action: Optional[str] = None,
        *,
        actions: Optional[Iterable[Mapping[str, Any]]] = None,
        screenshot: ScreenshotOptions = None,
        settle: Optional[bool] = None,
        **fields: Any,
    ) -> InputResult:
        """Mouse and keyboard: one action with its fields (`"left_click", coordinate=[10, 20]`), or several as `actions`. Answered when
        the screen has settled; with a picture of it when `screenshot` asks for one."""
        body = _input_body(action, actions, screenshot, settle, fields)
        return InputResult.of(self.box.request('POST', f'{self._path}/input', body).json())

    def start_recording(self, *, fps: Optional[int] = None, max_seconds: Optional[float] = None, format: Optional[str] = None) -> Recording:
        """Starts a recording of the display. `format` (apng, webm, mp4, gif) is the default format of the fetched file."""
        body = _recording_body('start', fps=fps, max_seconds=max_seconds, format=format)
        return Recording.of(self.box.request('POST', f'{self._path}/recording', body).json())

    def stop_recording(self, recording: Union[int, Recording, None] = None, *, format: Optional[str] = None) -> Recording:
        """Ends a recording; default: the newest running one. With a format, the file is returned at once."""
        body = _recording_body('stop', recording, format=format)
        return Recording.of(self.box.request('POST', f'{self._path}/recording', body).json())

    def recordings(self) -> list[Recording]:
        return [Recording.of(r) for r in self.box.request('GET', f'{self._path}/recording').json()['recordings']]

    def fetch_recording(self, recording: Union[int, Recording], format: Optional[str] = None) -> bytes:
        """The file of a finished recording."""
        path = f'{self._path}/recording/{requests.id_of(recording)}'
        return self.box.request('GET', requests.query(path, format=format)).body

    def download_recording(self, recording: Union[int, Recording], target: Union[str, Path], format: Optional[str] = None) -> None:
        """The same into a file, whose ending (.webm, .mp4, .gif, .png) chooses the format."""
        Path(target).write_bytes(self.fetch_recording(recording, _film_format(target, format)))

    def delete_recording(self, recording: Union[int, Recording]) -> None:
        """Ends and deletes a recording."""
        self.box.request('DELETE', f'{self._path}/recording/{requests.id_of(recording)}')

    def live_link(self, *, control: bool = False, ttl: Optional[float] = None) -> LiveLink:
        """A link for browsers that shows the display live, without a token, for `ttl` seconds (an hour). With
        `control` viewers can also use mouse and keyboard."""
        body = _link_body(control, ttl)
        return _live_link(self.box.url, self.box.request('POST', f'{self._path}/live', body).json())

    def live(self) -> Iterator[Frame]:
        """The changes of the display, frame by frame, until the session ends or the loop is left."""
        ws = WebSocket(self.box.address, f'{self._path}/live/ws')
        try:
            while True:
                ws.send({})
                message = ws.receive_bytes()
                if message is None:
                    return
                yield Frame.of(message)
        finally:
            ws.close()


class AsyncScreenCalls:
    """The same methods for an AsyncSession."""

    box: 'AsyncGlovebox'
    _path: str

    async def screenshot(self, **query: Any) -> Screenshot:
        return _screenshot(await self.box.request('GET', requests.query(f'{self._path}/screenshot', **query)))

    async def windows(self) -> list[Window]:
        return [Window.of(w) for w in (await self.box.request('GET', f'{self._path}/windows')).json()['windows']]

    async def send_input(
        self,
        action: Optional[str] = None,
        *,
        actions: Optional[Iterable[Mapping[str, Any]]] = None,
        screenshot: ScreenshotOptions = None,
        settle: Optional[bool] = None,
        **fields: Any,
    ) -> InputResult:
        body = _input_body(action, actions, screenshot, settle, fields)
        return InputResult.of((await self.box.request('POST', f'{self._path}/input', body)).json())

    async def start_recording(
        self, *, fps: Optional[int] = None, max_seconds: Optional[float] = None, format: Optional[str] = None
    ) -> Recording:
        body = _recording_body('start', fps=fps, max_seconds=max_seconds, format=format)
        return Recording.of((await self.box.request('POST', f'{self._path}/recording', body)).json())

    async def stop_recording(self, recording: Union[int, Recording, None] = None, *, format: Optional[str] = None) -> Recording:
        body = _recording_body('stop', recording, format=format)
        return Recording.of((await self.box.request('POST', f'{self._path}/recording', body)).json())

    async def recordings(self) -> list[Recording]:
        return [Recording.of(r) for r in (await self.box.request('GET', f'{self._path}/recording')).json()['recordings']]

    async def fetch_recording(self, recording: Union[int, Recording], format: Optional[str] = None) -> bytes:
        path = f'{self._path}/recording/{requests.id_of(recording)}'
        return (await self.box.request('GET', requests.query(path, format=format))).body

    async def download_recording(self, recording: Union[int, Recording], target: Union[str, Path], format: Optional[str] = None) -> None:
        Path(target).write_bytes(await self.fetch_recording(recording, _film_format(target, format)))

    async def delete_recording(self, recording: Union[int, Recording]) -> None:
        await self.box.request('DELETE', f'{self._path}/recording/{requests.id_of(recording)}')

    async def live_link(self, *, control: bool = False, ttl: Optional[float] = None) -> LiveLink:
        body = _link_body(control, ttl)
        return _live_link(self.box.url, (await self.box.request('POST', f'{self._path}/live', body)).json())

    async def live(self) -> AsyncIterator[Frame]:
        ws = await AsyncWebSocket.connect(self.box.address, f'{self._path}/live/ws')
        try:
            while True:
                await ws.send({})
                message = await ws.receive_bytes()
                if message is None:
                    return
                yield Frame.of(message)
        finally:
            await ws.close()
