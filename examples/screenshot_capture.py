"""A window of the session's own screen, and its picture while the code waits in its main loop.

    examples/screenshot_capture.py [picture.png]
"""

import sys

from glovebox import CodeAction, CodingEnv

CODE = """
import tkinter as tk
root = tk.Tk()
root.title('Hello')
root.geometry('320x160')
tk.Label(root, text='Hello from the jail', font=('Helvetica', 20), bg='#fff3b0').pack(expand=True, fill='both')
root.mainloop()
print('the loop returned')
"""


def main(path='screenshot.png'):
    with CodingEnv.from_local(executor_backend='python', display=True, timeout_s=30) as env:
        env.reset()
        result = env.step(CodeAction(code=CODE, capture_screenshot=True))
        picture = result.observation.screenshot
        picture.save(path)
        print(result.observation.stdout.strip())
        print(f'{picture.width}x{picture.height} {picture.format}, settled: {picture.settled}')


if __name__ == '__main__':
    main(*sys.argv[1:])
