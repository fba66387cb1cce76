"""Pictures of screens: decoding them and asking what is where."""

import base64
import io

from PIL import Image

# A red window at a known place.
RED_WINDOW = """
import time
import tkinter as tk
root = tk.Tk()
root.geometry('200x100+100+50')
frame = tk.Frame(root, bg='#ff0000')
frame.place(x=0, y=0, width=200, height=100)
root.update()
"""


def image(screenshot):
    """The picture of an observation, as RGB."""
    assert screenshot and screenshot['data'], screenshot
    return decode(base64.b64decode(screenshot['data'], validate=True))


def decode(data):
    return Image.open(io.BytesIO(data)).convert('RGB')


def colours(picture, box=None):
    """{colour: pixels}"""
    part = picture.crop(box) if box else picture
    return {colour: n for n, colour in part.getcolors(1 << 24)}


def box_of(window):
    return window['x'], window['y'], window['x'] + window['width'], window['y'] + window['height']


def only_window(screenshot):
    (window,) = screenshot['windows']
    return window
