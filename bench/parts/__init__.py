"""One file per thing that is measured; each has a function that takes the effort and returns a Section."""

from parts.cell import cell
from parts.compute import compute
from parts.display import display
from parts.e2b import e2b
from parts.episodes import episodes
from parts.explain import explain
from parts.first_use import first_use
from parts.growth import growth
from parts.idle import idle
from parts.input_actions import input_actions
from parts.jail import jail
from parts.mcp import mcp
from parts.modes import modes
from parts.neighbours import neighbours
from parts.openenv import openenv
from parts.others import others
from parts.packages import packages
from parts.printing import printing
from parts.profiles import profiles
from parts.start import start
from parts.steps import steps
from parts.throughput import throughput
from parts.tools import tools
from parts.trainers import trainers
from parts.travel import travel

PARTS = {
    'start': start,
    'cell': cell,
    'compute': compute,
    'idle': idle,
    'printing': printing,
    'first_use': first_use,
    'steps': steps,
    'explain': explain,
    'others': others,
    'modes': modes,
    'growth': growth,
    'episodes': episodes,
    'throughput': throughput,
    'openenv': openenv,
    'mcp': mcp,
    'e2b': e2b,
    'packages': packages,
    'tools': tools,
    'trainers': trainers,
    'display': display,
    'input': input_actions,
    'profiles': profiles,
    'neighbours': neighbours,
    'jail': jail,
    'travel': travel,
}

# Those that need nothing but Glovebox and python3.
ALONE = 'compute', 'idle', 'printing', 'first_use', 'steps', 'explain', 'modes', 'growth', 'episodes', 'openenv', 'mcp', 'packages', 'tools', 'trainers', 'profiles'
