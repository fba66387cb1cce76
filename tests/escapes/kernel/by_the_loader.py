"""Programs and libraries that code wrote, brought to life by what loads them: the system's loader, and dlopen."""

import glob
import shutil
import subprocess

shutil.copy('/usr/bin/env', 'own-program')
loader = (glob.glob('/lib64/ld-linux-*') + glob.glob('/lib/ld-linux-*'))[0]
if subprocess.run([loader, './own-program', 'true'], capture_output=True).returncode == 0:
    got('a program')
shutil.copy(glob.glob('/usr/lib/*/libz.so.1')[0], 'own-library.so')
tries('a library', ctypes.CDLL, './own-library.so')
