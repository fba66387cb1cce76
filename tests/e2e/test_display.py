"""A screen per session: pictures while code runs, windows, code that blocks."""

import pytest

import gb
from screens import box_of, colours, decode, image, only_window

TK = """
import tkinter as tk
root = tk.Tk()
root.title('Colours')
root.geometry('300x200')
tk.Frame(root, bg='#ff0000', width=300, height=100).place(x=0, y=0)
tk.Frame(root, bg='#0000ff', width=300, height=100).place(x=0, y=100)
"""


@pytest.fixture
def screen(api):
    return api.session(display=True)


def check_colours(screenshot):
    window = only_window(screenshot)
    assert window['title'] == 'Colours' and (window['width'], window['height']) == (300, 200)
    x0, y0, x1, y1 = box_of(window)
    picture = image(screenshot)
    assert picture.size == (1024, 768)
    assert colours(picture, (x0, y0, x1, y0 + 100)) == {(255, 0, 0): 30000}
    assert colours(picture, (x0, y0 + 100, x1, y1)) == {(0, 0, 255): 30000}
    return picture


def test_main_loop_gives_its_picture_and_ends(screen):
    seen = screen.execute(TK + "root.mainloop()\nprint('after the loop')", capture_screenshot=True).ok()
    assert seen.stdout == 'after the loop\n'
    assert seen.screenshot['settled'] and seen.screenshot['error'] is None
    assert 'asked to close' in seen.screenshot['note']
    check_colours(seen.screenshot)


def test_picture_of_code_that_does_not_block(screen):
    seen = screen.execute(TK + 'root.update()', capture_screenshot=True).ok()
    check_colours(seen.screenshot)
    again = screen.execute("root.title('later')\nroot.update()", capture_screenshot=True).ok()
    assert only_window(again.screenshot)['title'] == 'later'


def test_screenshot_and_windows_at_any_time(screen):
    cell = screen.in_background(TK + 'root.mainloop()', on_block='wait', timeout_s=60)
    windows = gb.wait_until(
        lambda: screen.api.get(f'{screen.path}/windows').json()['windows'], 'there is a window'
    )
    assert [w['title'] for w in windows] == ['Colours'] and windows[0]['focused']
    answer = screen.api.get(f'{screen.path}/screenshot', params={'settle': 'true'})
    assert answer.status_code == 200 and answer.headers['Content-Type'] == 'image/png'
    assert decode(answer.content).size == (1024, 768)
    check_colours(screen.api.get(f'{screen.path}/screenshot', headers={'Accept': 'application/json'}).json())
    screen.interrupt()
    assert cell.result().status == 'interrupted'


def test_session_without_display(session):
    answer = session.post_code('1', capture_screenshot=True)
    assert answer.status_code == 409 and answer.json()['code'] == 'no_display'
    assert 'display' in answer.json()['remediation']
    assert session.api.get(f'{session.path}/screenshot').status_code == 409
    assert session.value("__import__('os').environ.get('DISPLAY')") is None


def test_error_before_a_window(screen):
    seen = screen.execute('1 / 0', capture_screenshot=True)
    assert seen.status == 'error' and seen.error['type'] == 'ZeroDivisionError'
    assert seen.screenshot['windows'] == [] and 'No window' in seen.screenshot['note']
    assert colours(image(seen.screenshot)) == {(0, 0, 0): 1024 * 768}


def test_left_running_cells_run_inside_its_loop(screen):
    first = screen.execute(TK + "root.mainloop()\nprint('the loop returned')", capture_screenshot=True, on_block='leave')
    assert first.status == 'running' and first.error is None
    check_colours(first.screenshot)
    assert screen.get()['left_running'] == 1 and screen.get()['state'] == 'idle'
    seen = screen.execute("root.title('changed')\n6 * 7", capture_screenshot=True).ok()
    assert seen.text == '42' and only_window(seen.screenshot)['title'] == 'changed'
    printed = screen.execute('root.destroy()').ok().stdout
    gb.wait_until(lambda: screen.get()['left_running'] == 0, 'the first cell ended')
    assert printed + screen.execute('print("next")').ok().stdout == 'the loop returned\nnext\n'


def test_interrupt_ends_what_was_left_running(screen):
    assert screen.execute(TK + 'root.mainloop()', on_block='leave').status == 'running'
    assert screen.interrupt()
    gb.wait_until(lambda: screen.get()['left_running'] == 0, 'the first cell ended')
    assert screen.value('6 * 7') == '42'


def test_toolkit_that_is_not_installed(screen):
    error = screen.execute('import wx', capture_screenshot=True)['error']
    assert error['code'] == 'toolkit_missing' and 'apt-get install python3-wxgtk4.0' in error['remediation']
    error = screen.execute("raise ModuleNotFoundError(\"No module named 'PySide2.QtWidgets'\", name='PySide2.QtWidgets')")['error']
    assert error['code'] == 'toolkit_missing' and 'python3-pyside2.qtwidgets' in error['remediation']
    error = screen.execute('import no_such_module')['error']
    assert error['code'] == 'module_missing' and '%pip install no_such_module' in error['remediation']
    assert screen.execute('import os.nothing')['error']['code'] is None


def test_windows_without_a_screen(session):
    error = session.execute('import tkinter\ntkinter.Tk()')['error']
    assert error['code'] == 'no_display' and '"display": true' in error['remediation']


def test_program_that_wants_opengl_which_is_not_there(screen):
    error = screen.execute("raise ImportError('Library \"GL\" not found.')")['error']
    assert error['code'] == 'no_opengl' and 'libgl1-mesa-dri' in error['remediation']
