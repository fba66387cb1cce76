"""What runs in the installer's jail: a look at what the interpreter has, and pip. Prints one JSON object per line.

An installation has three stages: resolve(), fetch() and arrange(). Each runs in an interpreter of its own, after every process of the
stage before was killed and every file but the named ones was removed. Code of packages runs in resolve() and fetch() only, and only when
source packages may be built. Nothing that such a stage prints or leaves behind is trusted outside.
"""

import sys

sys.path[:] = [p for p in sys.path if p.startswith('/usr/')]  # not the working directory: builds write there
import compileall
import fnmatch
import hashlib
import importlib.machinery
import importlib.metadata
import json
import os
import py_compile
import re
import shutil
import subprocess
import zipfile

WORK = '/workspace'
TREE, WHEELS, REPORT, CACHE, TEMPORARY = (f'{WORK}/{name}' for name in ('tree', 'wheels', 'report.json', 'cache', 'temporary'))
LOCK = 'uv.lock.txt'
OUTPUT_LINES, LOG_LINES, LINE_CHARS = 5000, 40, 400


def say(**fields):
    print(json.dumps(fields), flush=True)


def canonical(name):
    return re.sub(r'[-_.]+', '-', name).lower()


# ---- what is there -----------------------------------------------------


def survey(modules):
    """The standard library's names, installed distributions, and which of the modules can be imported from where."""
    dists = {canonical(d.metadata['Name']): d.version for d in importlib.metadata.distributions() if d.metadata['Name']}
    found = {}
    for module in modules:
        if module in sys.stdlib_module_names:
            continue
        try:
            spec = importlib.machinery.PathFinder.find_spec(module)
        except Exception:
            spec = None
        if spec is not None and (spec.origin or spec.submodule_search_locations):
            found[module] = None
    if found:
        owners = importlib.metadata.packages_distributions()
        for module in found:
            found[module] = canonical(owners[module][0]) if owners.get(module) else None
    say(survey={'stdlib': sorted(sys.stdlib_module_names), 'dists': dists, 'modules': found})


# ---- pip ---------------------------------------------------------------


def common_options(q):
    """Which index, and how; the same for every call."""
    options = ['--disable-pip-version-check', '--no-input', '--no-color', '--no-python-version-warning', '--retries', '2']
    options += ['--timeout', '15', '--cache-dir', CACHE]
    if q.get('offline'):
        options += ['--no-index']
    elif q.get('index'):
        options += ['--index-url', q['index']]
    for flag, key in (('--extra-index-url', 'extra_index'), ('--find-links', 'find_links'), ('--trusted-host', 'trusted_host')):
        for value in q.get(key) or ():
            options += [flag, value]
    if q.get('proxy'):
        options += ['--proxy', q['proxy']]
    return options


def environment(q):
    env = {k: v for k, v in os.environ.items() if not k.startswith(('PIP_', 'PYTHON'))}
    env.update(PIP_CONFIG_FILE='/dev/null', PYTHONUNBUFFERED='1', PYTHONDONTWRITEBYTECODE='1', HOME=WORK, TMPDIR=TEMPORARY)
    if q.get('constraints'):
        path = f'{WORK}/constraints.txt'
        with open(path, 'w') as f:
            f.write(q['constraints'])
        env['PIP_CONSTRAINT'] = path  # also inside isolated builds
    return env


_PHASES = (
    (re.compile(r'^\s*Collecting (\S+)'), 'resolving', 'looking for {}'),
    (re.compile(r'^\s*(?:Downloading|Using cached) (?:\S*/)?(\S+)'), 'downloading', '{}'),
    (re.compile(r'^\s*Processing (?:\S*/)?(\S+)'), 'downloading', '{}'),
    (re.compile(r'^\s*Building wheels? for (\S+) .*started'), 'building', '{}'),
    (re.compile(r'^\s*Preparing metadata .*: started()'), 'resolving', 'asking the source package what it needs'),
    (re.compile(r'^\s*Building (\S+==\S+)'), 'building', '{}'),
    (re.compile(r'^\s*Installing build dependencies: started()'), 'building', 'getting what the build needs'),
)


class Failed(Exception):
    def __init__(self, log):
        self.log = log


def run(command, env, fetching=0):
    """Runs pip or uv, tells what it is at (`fetching`: so many packages that are found already), and returns what it printed."""
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace', env=env, cwd=WORK
    )
    log, fetched = [], 0
    for line in child.stdout:
        line = line.rstrip()[:LINE_CHARS]
        if line.startswith('Defaulting to user installation'):
            continue  # nothing is installed there
        log.append(line)
        del log[:-OUTPUT_LINES]
        for pattern, phase, text in _PHASES:
            if not (match := pattern.match(line)) or (fetching and phase == 'resolving'):
                continue
            if fetching and phase == 'downloading':
                say(phase=phase, text=text.format(match[1]), done=min(fetched, fetching), total=fetching)
                fetched += 1
            else:
                say(phase=phase, text=text.format(match[1]))
    if child.wait():
        raise Failed(log[-LOG_LINES:])
    return log


def pip(q, *args, fetching=0):
    run([sys.executable, '-I', '-B', '-u', '-m', 'pip', *args[:1], *common_options(q), *args[1:]], environment(q), fetching)


def pip_resolve(q):
    """What pip would install, as its report says."""
    say(phase='resolving', text=', '.join(q['requirements']))
    options = ['--dry-run', '--report', REPORT]
    if q['externally_managed']:
        options += ['--break-system-packages']  # it installs nothing here; without this it does not even look
    if not q.get('build'):
        options += ['--only-binary', ':all:']
    if q.get('require_hashes'):
        options += ['--require-hashes']
    elif not q.get('isolate', True):
        options += ['--no-build-isolation']
    wanted = q['requirements']
    if any('--hash' in line for line in wanted):  # only a file can have them; else pip's own words name the packages
        path = f'{WORK}/requirements.txt'
        with open(path, 'w') as f:
            f.write(''.join(f'{line}\n' for line in wanted))
        wanted = ['-r', path]
    pip(q, 'install', *options, *wanted)
    with open(REPORT) as f:
        return [resolved_item(item) for item in json.load(f)['install']]


def resolved_item(item):
    """One package of pip's report, as fetch() needs it."""
    info = item['download_info']
    hashes = info.get('archive_info', {}).get('hashes') or {}
    old = info.get('archive_info', {}).get('hash', '')
    return {
        'name': canonical(item['metadata']['name']),
        'version': item['metadata']['version'],
        'url': info['url'],
        'sha256': hashes.get('sha256') or (old[7:] if old.startswith('sha256=') else ''),
        'source': not info['url'].split('#')[0].endswith('.whl'),
        'requested': bool(item.get('requested')),
    }


def pip_fetch(q, items):
    """Wheels of exactly what was resolved. Source packages are built here, where `build` says so; else no code of a package runs."""
    locked = f'{WORK}/locked.txt'
    with open(locked, 'w') as f:
        for item in items:
            mark = f'#sha256={item["sha256"]}' if item['sha256'] else ''
            f.write(f'{item["name"]} @ {item["url"]}{mark}\n')
    options = ['--no-deps', '--wheel-dir', WHEELS, '-r', locked]
    if not q.get('build'):
        options += ['--only-binary', ':all:']
    elif not q.get('isolate', True):
        options += ['--no-build-isolation']
    pip(q, 'wheel', *options, fetching=len(items))
    for name in os.listdir(WHEELS):  # the wheels' own hashes: what was resolved may be a source package, or have none
        package = canonical(name.split('-')[0])
        with open(f'{WHEELS}/{name}', 'rb') as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        for item in items:
            if item['name'] == package and not item['source']:
                item['sha256'] = digest


# ---- uv ----------------------------------------------------------------


def find_uv(q):
    """The program, or None. Hashes that were asked for are pip's matter: it alone says which one did not fit."""
    if q.get('uv') == 'no' or q.get('require_hashes') or any('--hash' in line for line in q['requirements']):
        return None
    return q.get('uv') or shutil.which('uv', path='/usr/local/bin:/usr/bin')


def uv_options(q):
    options = ['--python', sys.executable, '--cache-dir', CACHE, '--no-config', '--no-progress', '--color', 'never']
    if q.get('offline'):
        options += ['--no-index']
    elif q.get('index'):
        options += ['--index-url', q['index']]
    for flag, key in (('--extra-index-url', 'extra_index'), ('--find-links', 'find_links'), ('--allow-insecure-host', 'trusted_host')):
        for value in q.get(key) or ():
            options += [flag, value]
    options += ['--only-binary', ':all:']  # what must be built is left to pip, which says which packages these are
    if q.get('constraints'):
        options += ['--constraint', f'{WORK}/constraints.txt']
    return options


def uv(q, *args):
    env = environment(q)
    if q.get('proxy'):
        env.update(HTTP_PROXY=q['proxy'], HTTPS_PROXY=q['proxy'])
    return run([find_uv(q), 'pip', *args[:1], *uv_options(q), *args[1:]], env)


def uv_resolve(q):
    """What uv would install, as resolve() says it, with the hashes of all files of each version."""
    say(phase='resolving', text=', '.join(q['requirements']))
    options = ['--dry-run'] + (['--break-system-packages'] if q['externally_managed'] else [])
    pins = [m[1] for line in uv(q, 'install', *options, *q['requirements']) if (m := re.fullmatch(r' *\+ (\S+==\S+)', line))]
    if not pins:
        return []
    with open(f'{WORK}/pins.txt', 'w') as f:
        f.write(''.join(f'{pin}\n' for pin in pins))
    uv(q, 'compile', '--no-deps', '--generate-hashes', '--no-header', '--no-annotate', '-o', f'{WORK}/{LOCK}', f'{WORK}/pins.txt')
    items, asked = [], {canonical(re.match(r'[\w.-]+', line)[0]) for line in q['requirements']}
    with open(f'{WORK}/{LOCK}') as f:
        locked = f.read().replace('\\\n', ' ')
    for line in locked.splitlines():
        if match := re.match(r'(\S+)==(\S+)(.*)', line):
            name, hashes = canonical(match[1]), ' '.join(re.findall(r'--hash=sha256:(\w+)', match[3]))
            items.append({'name': name, 'version': match[2], 'sha256': hashes, 'source': False, 'requested': name in asked})
    return items


def uv_fetch(q, items):
    say(phase='downloading', text='all at once')
    with open(f'{WORK}/{LOCK}', 'w') as f:
        for item in items:
            f.write(' '.join([f'{item["name"]}=={item["version"]}', *(f'--hash=sha256:{h}' for h in item['sha256'].split())]) + '\n')
    uv(q, 'install', '--target', TREE, '--no-deps', '--require-hashes', '--link-mode', 'copy', '-r', f'{WORK}/{LOCK}')
    shutil.rmtree(f'{TREE}/bin', ignore_errors=True)  # as unpack() leaves scripts out
    if os.path.exists(f'{TREE}/.lock'):
        os.remove(f'{TREE}/.lock')


# ---- from wheels to files ----------------------------------------------


def unpack(path):
    """A wheel's files where `import` finds them. Its scripts and headers are left out: nothing could start them."""
    with zipfile.ZipFile(path) as wheel:
        for info in wheel.infolist():
            parts = info.filename.split('/')
            if info.is_dir() or '..' in parts or info.filename.startswith('/'):
                continue
            if parts[0].endswith('.data') and len(parts) > 2:
                if parts[1] not in ('purelib', 'platlib', 'data'):
                    continue
                parts = parts[2:]
            target = os.path.join(TREE, *parts)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with wheel.open(info) as source, open(target, 'wb') as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
    os.remove(path)


def drop_compiled():
    """Compiled files that came with a package, or that its build left, are not what its sources say."""
    for folder, folders, _ in os.walk(TREE):
        for name in [n for n in folders if n == '__pycache__']:
            shutil.rmtree(os.path.join(folder, name))
            folders.remove(name)


def compile_all():
    """Sessions cannot write beside the files, so what they import is compiled here, once."""
    drop_compiled()
    compileall.compile_dir(
        TREE, quiet=2, force=True, stripdir=TREE, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )


def top_modules():
    found = set()
    for entry in os.scandir(TREE):
        name = entry.name.partition('.')[0]
        if entry.is_dir() and entry.name.isidentifier() and entry.name != '__pycache__':
            found.add(entry.name)
        elif entry.is_file() and name.isidentifier() and entry.name.endswith(('.py', '.so')):
            found.add(name)
    return sorted(found)


def unpack_all():
    wheels = sorted(os.listdir(WHEELS)) if os.path.isdir(WHEELS) else []
    for n, name in enumerate(wheels):
        say(phase='storing', text=name, done=n, total=len(wheels) + 1)
        unpack(f'{WHEELS}/{name}')
    say(phase='storing', text='compiling', done=len(wheels), total=len(wheels) + 1)
    compile_all()


# ---- the stages --------------------------------------------------------


def begin(*folders):
    for path in (*folders, TEMPORARY):
        os.makedirs(path, exist_ok=True)


def allowed(q, name):
    """The lists hold for what packages bring along, too."""
    fits = lambda patterns: any(fnmatch.fnmatchcase(name, canonical(p)) for p in patterns)
    return not fits(q.get('deny') or ()) and (not q.get('allow') or fits(q['allow']))


def resolved_by(q):
    """(who resolved it, what is to be installed). Where uv fails pip is asked: it may know a way, and says better why there is none."""
    if find_uv(q):
        try:
            return 'uv', uv_resolve(q)
        except (Failed, OSError) as e:
            say(phase='resolving', text=f'by pip, since uv failed: {e.log[-1] if isinstance(e, Failed) and e.log else e}')
    return 'pip', pip_resolve(q)


def stage(work):
    """A stage that says why it failed."""

    def wrapped(q):
        try:
            work(q)
        except Failed as e:
            say(failed=e.log)
        except OSError as e:
            say(failed=[f'ERROR: {e}'])  # such as "No space left on device"

    return wrapped


@stage
def resolve(q):
    """Which packages the requirements need that the system does not have."""
    q['externally_managed'] = os.path.exists(f'{os.path.dirname(os.__file__)}/EXTERNALLY-MANAGED')
    begin(CACHE)
    by, items = resolved_by(q)
    refused = [i['name'] for i in items if not allowed(q, i['name'])]
    if refused:
        say(refused=refused)
        return
    say(resolved={'by': by, 'packages': items})


@stage
def fetch(q):
    """Files of exactly the packages of q['resolved'], which the outside was told and says again."""
    begin(TREE, WHEELS, CACHE)
    items = q['resolved']['packages']
    (uv_fetch if q['resolved']['by'] == 'uv' else pip_fetch)(q, items)
    say(fetched={'packages': items})


@stage
def arrange(q):
    """From wheels to files that can be imported. Nothing but this runs beside it."""
    begin(TREE)
    unpack_all()
    say(arranged={'modules': top_modules()})
