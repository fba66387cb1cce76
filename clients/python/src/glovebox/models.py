"""What the server answers, as objects. Each keeps the answer itself in `raw`."""

from __future__ import annotations

import base64
import html
import json
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from ._answers import printed_final_answer
from ._markers import from_json
from .errors import cell_error_of

VALUE_TYPE = 'application/vnd.glovebox.value+json'


@dataclass
class ErrorInfo:
    """The exception of a cell."""

    type: str
    message: str
    traceback: str = ''
    line: Optional[int] = None
    code: Optional[str] = None
    remediation: Optional[str] = None
    raw: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, raw: dict[str, Any]) -> 'ErrorInfo':
        known = {k: raw.get(k) for k in ('line', 'code', 'remediation')}
        return cls(raw.get('type') or '', raw.get('message') or '', raw.get('traceback') or '', raw=raw, **known)

    def __str__(self) -> str:
        return self.traceback or f'{self.type}: {self.message}'


@dataclass
class FileChange:
    """A file below /workspace that a cell created, modified or deleted."""

    path: str
    size: int
    change: str


@dataclass
class Window:
    """A window on a session's display."""

    id: int
    title: str
    class_name: str
    pid: int
    x: int
    y: int
    width: int
    height: int
    focused: bool
    dialog: bool
    raw: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, raw: dict[str, Any]) -> 'Window':
        known: dict[str, Any] = {name: raw.get(name) or 0 for name in ('id', 'pid', 'x', 'y', 'width', 'height')}
        known.update((name, bool(raw.get(name))) for name in ('focused', 'dialog'))
        return cls(title=raw.get('title') or '', class_name=raw.get('class') or '', raw=raw, **known)


class _Picture:
    """A file that came with an answer."""

    data: bytes

    def save(self, path: Any) -> None:
        with open(path, 'wb') as f:
            f.write(self.data)


class Film(_Picture):
    """The recording that came with a run, whose session is gone."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.format: str = raw.get('format') or 'apng'
        self.frames: int = raw.get('frames') or 0
        self.duration_ms: int = raw.get('duration_ms') or 0
        self.data: bytes = base64.b64decode(raw.get('data') or '')
        self.error: Optional[dict[str, Any]] = raw.get('error')  # why there is none

    def __repr__(self) -> str:
        return f'<Film {self.format}, {self.frames} frames, {len(self.data)} bytes>'


class Screenshot(str, _Picture):
    """A picture of a session's display. It is the file in base64, as text, so that base64.b64decode() takes it; the empty text when there is
    none, and `error` says why. What else is known of it are its attributes."""

    format: str  # type: ignore[assignment]  # of the file: this hides a method of str

    def __new__(cls, raw: Union[str, dict[str, Any]]) -> 'Screenshot':
        return super().__new__(cls, (raw if isinstance(raw, str) else raw.get('data')) or '')

    def __init__(self, raw: Union[str, dict[str, Any]]) -> None:
        if isinstance(raw, str):  # the picture alone
            raw = {'data': str(raw)}
        self.raw = raw
        self.format = raw.get('format') or 'png'
        self.width: int = raw.get('width') or 0
        self.height: int = raw.get('height') or 0
        self.settled: bool = bool(raw.get('settled'))
        self.after_ms: Optional[float] = raw.get('after_ms')
        self.since_paint_ms: Optional[float] = raw.get('since_paint_ms')
        self.windows: list[Window] = [Window.of(w) for w in raw.get('windows') or []]
        self.note: Optional[str] = raw.get('note')  # what there is to know of it
        self.error: Optional[dict[str, Any]] = raw.get('error')  # why there is none
        self.end: Optional[Screenshot] = Screenshot(raw['end']) if raw.get('end') else None
        self.data: bytes = base64.b64decode(str(self))

    @property
    def image(self) -> Any:
        """A PIL image; ImportError where PIL is not installed."""
        return _open_image(self.data)

    def _repr_png_(self) -> Optional[bytes]:
        return self.data if self.format == 'png' else None

    def _repr_jpeg_(self) -> Optional[bytes]:
        return self.data if self.format == 'jpeg' else None

    def __repr__(self) -> str:
        return f'<Screenshot {self.width}x{self.height} {self.format}, {len(self.data)} bytes>'


def _open_image(data: bytes) -> Any:
    import io

    from PIL import Image

    return Image.open(io.BytesIO(data))


class Observation:
    """The outcome of a cell."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.id: str = raw.get('id') or ''
        self.session: str = raw.get('session') or ''
        self.cell: int = raw.get('cell') or 0
        self.status: str = raw['status']
        self.exit_code: int = raw.get('exit_code') or 0
        self.stdout: str = raw.get('stdout') or ''
        self.stderr: str = raw.get('stderr') or ''
        self.result: Optional[dict[str, Any]] = raw.get('result')
        self.displays: list[dict[str, Any]] = raw.get('displays') or []
        self.error: Optional[ErrorInfo] = ErrorInfo.of(raw['error']) if raw.get('error') else None
        self.is_final_answer: bool = bool(raw.get('is_final_answer'))
        self.files = [FileChange(f['path'], f['size'], f['change']) for f in raw.get('files') or []]
        self.state_lost: bool = bool(raw.get('state_lost'))
        self.rolled_back: bool = bool(raw.get('rolled_back'))
        self.files_lost: bool = bool(raw.get('files_lost'))
        self.interpreter_died: Optional[dict[str, Any]] = raw.get('interpreter_died')
        self.replayed: int = raw.get('replayed') or 0
        self.may_differ: list[int] = raw.get('may_differ') or []
        self.checkpoints_evicted: list[str] = raw.get('checkpoints_evicted') or []
        self.truncated: dict[str, Any] = raw.get('truncated') or {}
        self.usage: dict[str, Any] = raw.get('usage') or {}
        self.screenshot: Optional[Screenshot] = Screenshot(raw['screenshot']) if raw.get('screenshot') else None
        self.recording: Optional[int] = raw.get('recording')
        self.film: Optional[Film] = Film(raw['film']) if raw.get('film') else None

    @property
    def ok(self) -> bool:
        return self.status == 'ok'

    @property
    def text(self) -> Optional[str]:
        """The last value as text, as the interactive interpreter shows it; None without one."""
        return self.result.get('text/plain') if self.result else None

    @property
    def value(self) -> Any:
        """The last value: plain data as it is, what travels typed as its type, and otherwise its text."""
        return _value_of(self.result)

    @property
    def final_answer(self) -> Any:
        """What final_answer() was given: of its own type where that travels, else as plain data or text."""
        encoded = self.raw.get('final_answer_encoded')
        if isinstance(encoded, str) and encoded.startswith('safe:'):
            return from_json(json.loads(encoded[5:]))
        return self.raw.get('final_answer')

    @property
    def images(self) -> list[bytes]:
        """All pictures the cell showed, as bytes of PNG or JPEG files."""
        shown = [*self.displays, *([self.result] if self.result else [])]
        found = (b.get('image/png') or b.get('image/jpeg') for b in shown)
        return [base64.b64decode(data) for data in found if isinstance(data, str)]

    @property
    def printed_final_answer(self) -> Optional[str]:
        """What was printed behind `final_answer:`, or behind `Answer:` at the beginning; None without either. final_answer() needs no such text."""
        return printed_final_answer(self.stdout)

    def raise_for_error(self) -> 'Observation':
        """Raises CellError unless the cell ended well; returns itself."""
        if not self.ok:
            raise cell_error_of(self)
        return self

    def __repr__(self) -> str:
        shown = self.text if self.ok else (f'{self.error.type}: {self.error.message}' if self.error else '')
        return f'<Observation {self.status}{": " + shown[:200] if shown else ""}>'

    # ---- notebooks ------------------------------------------------------

    def _repr_png_(self) -> Optional[bytes]:
        return self.screenshot._repr_png_() if self.screenshot else None

    def _repr_html_(self) -> str:
        parts = [_pre(self.stdout), _pre(self.stderr, 'color:#b30000')]
        parts += [_bundle_html(b) for b in self.displays]
        if self.result:
            parts.append(_bundle_html(self.result))
        if self.error:
            parts.append(_pre(str(self.error), 'color:#b30000'))
        if self.screenshot:
            data = base64.b64encode(self.screenshot.data).decode()
            parts.append(f'<img src="data:image/{self.screenshot.format};base64,{data}">')
        return ''.join(parts)


def _pre(text: str, style: str = '') -> str:
    return f'<pre style="{style}">{html.escape(text)}</pre>' if text else ''


def _bundle_html(bundle: dict[str, Any]) -> str:
    """Pictures as pictures; HTML of the guest is hostile, so it goes into a frame that can run nothing."""
    for mime in ('image/png', 'image/jpeg'):
        if mime in bundle:
            return f'<img src="data:{mime};base64,{html.escape(bundle[mime])}">'
    if 'text/html' in bundle:
        return f'<iframe sandbox style="border:0;width:100%" srcdoc="{html.escape(bundle["text/html"])}"></iframe>'
    return _pre(str(bundle.get('text/plain') or ''))


def _value_of(bundle: Optional[dict[str, Any]]) -> Any:
    if not bundle:
        return None
    if VALUE_TYPE in bundle:
        return from_json(bundle[VALUE_TYPE])
    if 'application/json' in bundle:
        return bundle['application/json']
    if 'image/png' in bundle:
        data = base64.b64decode(bundle['image/png'])
        try:
            return _open_image(data)
        except ImportError:
            return data
    return bundle.get('text/plain')
