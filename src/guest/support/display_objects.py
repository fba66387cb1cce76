"""IPython.display for cells where IPython is not installed: the objects that notebooks and models show with it."""

_DISPLAY_MODULES = ('IPython', 'IPython.display')


class DisplayModulesLoader:
    """Makes `IPython` (with get_ipython(), which finds no shell) and `IPython.display`."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        if module.__name__ == 'IPython':
            import importlib

            module.get_ipython, module.__version__, module.version_info = lambda: None, '8.24.0', (8, 24, 0, '')
            module.display = importlib.import_module('IPython.display')
            return
        functions = {
            'display': display,
            'clear_output': clear_output,
            'publish_display_data': publish_display_data,
            'update_display': update_display,
            'set_matplotlib_formats': lambda *formats, **kwargs: None,
            'DisplayHandle': _Handle,
        }
        for name, value in functions.items():
            setattr(module, name, value)
        for kind in _display_classes():
            kind.__module__, kind.__qualname__ = module.__name__, kind.__name__
            setattr(module, kind.__name__, kind)
        for form in ('html', 'markdown', 'svg', 'png', 'jpeg', 'latex', 'json', 'javascript', 'pretty'):
            setattr(module, f'display_{form}', _display_as(getattr(module, form.upper(), None) or getattr(module, form.capitalize(), None)))


def publish_display_data(data, metadata=None, *, transient=None, update=False, **kwargs):
    """As IPython's: forms by their MIME types."""
    display(data, raw=True, display_id=(transient or {}).get('display_id'), transient={'update': update})


def update_display(obj, *, display_id=None, **kwargs):
    """As IPython's: in the place of what was shown under this id."""
    display(obj, display_id=display_id, transient={'update': True}, **kwargs)


def _display_as(kind):
    """display_html() and its kin: objects, or with raw=True the data of one."""

    def show(*objs, raw=False, **kwargs):
        display(*(kind(obj) if raw and kind else obj for obj in objs), **kwargs)

    return show


def _read_data(data, filename, url, mode):
    """The data itself, or that of a file; addresses are left to the client."""
    import os

    if isinstance(data, os.PathLike) or (filename is None and mode == 'rb' and isinstance(data, str) and os.path.exists(data)):
        data, filename = None, os.fspath(data)
    if data is None and filename is not None:
        with open(filename, mode) as file:
            data = file.read()
    if isinstance(data, str) and data.startswith(('http://', 'https://')) and '\n' not in data:
        data, url = None, data
    return data, filename, url


def _display_classes():
    """Made when they are asked for: few sessions are."""
    from html import escape

    class DisplayObject:
        _mode = 'r'

        def __init__(self, data=None, url=None, filename=None, metadata=None, **kwargs):
            self.data, self.filename, self.url = _read_data(data, filename, url, self._mode)
            self.metadata = metadata or {}

        def reload(self):
            self.data, self.filename, self.url = _read_data(None, self.filename, self.url, self._mode)

    class HTML(DisplayObject):
        def _repr_html_(self):
            return self.data if self.data is not None else f'<iframe src="{escape(self.url or "")}"></iframe>'

    class Markdown(DisplayObject):
        def _repr_markdown_(self):
            return self.data

    class Latex(DisplayObject):
        def _repr_latex_(self):
            return self.data

    class Math(Latex):
        def _repr_latex_(self):
            return f'$\\displaystyle {self.data.strip("$")}$'

    class SVG(DisplayObject):
        def _repr_svg_(self):
            return self.data.decode() if isinstance(self.data, bytes) else self.data

    class JSON(DisplayObject):
        def _repr_json_(self):
            return self.data

    class Javascript(DisplayObject):
        def _repr_javascript_(self):
            return self.data

    class Pretty(DisplayObject):
        def __repr__(self):
            return str(self.data)

    class Code(DisplayObject):
        def __init__(self, data=None, url=None, filename=None, language=None):
            super().__init__(data, url, filename)
            self.language = language

        def __repr__(self):
            return str(self.data)

        def _repr_html_(self):
            return f'<pre><code>{escape(str(self.data))}</code></pre>'

    return [DisplayObject, HTML, Markdown, Latex, Math, SVG, JSON, Javascript, Pretty, Code, *_media_classes(DisplayObject)]


def _media_classes(base):
    from html import escape

    class Image(base):
        _mode = 'rb'
        _magic = {b'\x89PNG': 'png', b'\xff\xd8': 'jpeg', b'GIF8': 'gif', b'RIFF': 'webp'}

        def __init__(self, data=None, url=None, filename=None, format=None, embed=None, width=None, height=None, **kwargs):
            super().__init__(data, url, filename)
            if isinstance(self.data, str):
                raise FileNotFoundError(f'No such file or directory: {self.data!r}')
            found = next((f for magic, f in self._magic.items() if (self.data or b'').startswith(magic)), 'png')
            self.format = {'jpg': 'jpeg'}.get(format, format) or found
            self.width, self.height = width, height

        def _repr_mimebundle_(self, include=None, exclude=None):
            if self.data is not None:
                return {f'image/{self.format}': bytes(self.data)}
            size = ''.join(f' {name}="{value}"' for name, value in (('width', self.width), ('height', self.height)) if value)
            return {'text/html': f'<img src="{escape(self.url or "")}"{size}/>'}

    class IFrame:
        def __init__(self, src, width='100%', height=400, **kwargs):
            self.src, self.width, self.height = src, width, height

        def _repr_html_(self):
            return f'<iframe width="{self.width}" height="{self.height}" src="{escape(str(self.src))}" frameborder="0" allowfullscreen></iframe>'

    class FileLink:
        def __init__(self, path, **kwargs):
            self.path = str(path)

        def __repr__(self):
            return self.path

        def _repr_html_(self):
            return f'<a href="{escape(self.path)}" target="_blank">{escape(self.path)}</a>'

    class _Player(base):
        _mode = 'rb'

        def _repr_html_(self):
            import base64

            kind = type(self).__name__.lower()
            source = self.url or f'data:{kind}/*;base64,{base64.b64encode(self.data or b"").decode()}'
            return f'<{kind} controls src="{escape(source)}"></{kind}>'

    class Audio(_Player):
        pass

    class Video(_Player):
        pass

    return [Image, IFrame, FileLink, Audio, Video]
