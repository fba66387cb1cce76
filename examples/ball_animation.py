"""A dataclass that bounces: the code keeps its world from cell to cell, moves it, draws it, and we take a picture of each frame.

    examples/ball_animation.py [directory]
"""

import sys
from pathlib import Path

from glovebox import Glovebox

WORLD = """
import tkinter as tk
from dataclasses import dataclass

WIDTH, HEIGHT = 300, 200

@dataclass
class Ball:
    x: float
    y: float
    dx: float
    dy: float
    radius: int = 15

    def move(self):
        self.x += self.dx
        self.y += self.dy
        if not self.radius <= self.x <= WIDTH - self.radius:
            self.dx = -self.dx
        if not self.radius <= self.y <= HEIGHT - self.radius:
            self.dy = -self.dy

root = tk.Tk()
root.title('Ball')
canvas = tk.Canvas(root, width=WIDTH, height=HEIGHT, bg='white', highlightthickness=0)
canvas.pack()
ball = Ball(40, 40, 35, 25)
"""

FRAME = """
for _ in range(3):
    ball.move()
canvas.delete('all')
canvas.create_oval(ball.x - ball.radius, ball.y - ball.radius, ball.x + ball.radius, ball.y + ball.radius, fill='red')
root.update()
ball
"""


def main(directory='.'):
    with Glovebox.local() as box, box.session(display={'width': 400, 'height': 300}, timeout=30) as session:
        session.run(WORLD, check=True)
        for n in range(1, 5):
            observation = session.run(FRAME, screenshot=True, check=True)
            observation.screenshot.save(Path(directory) / f'ball-{n}.png')
            print(n, observation.text)


if __name__ == '__main__':
    main(*sys.argv[1:])
