"""Source packages whose code runs while they are built must not reach another token's packages."""

import gb
import package_index
import pytest

ALICE, MALLORY = 'alice-token-0123456789', 'mallory-token-0123456789'
TARGET = 'gbpure==1.0'


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setattr(gb.Api.request, '__defaults__', (240,))


# Makes the tree of the set equal to the honest one, file by file, but for the compiled file, which has the attacker's code.
PLANT = '''
import importlib.util, marshal, os, shutil, sys
TREE = '/workspace/tree'
def plant():
    source = open(TREE + '/gbpure/__init__.py').read()
    code = compile('poisoned = True\\n' + source, '/packages/gbpure/__init__.py', 'exec')
    data = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, 'little') + importlib.util.source_hash(source.encode()) + marshal.dumps(code)
    target = importlib.util.cache_from_source(TREE + '/gbpure/__init__.py')
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target + '.new', 'wb') as f:
        f.write(data)
    os.replace(target + '.new', target)
    for name in os.listdir(TREE):
        if 'evil' in name:
            path = TREE + '/' + name
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
'''

# Modules that the installer's own code imports from its working directory.
SHADOW = '''
for name in ('compileall', 'py_compile'):
    with open(f'/workspace/{name}.py', 'w') as f:
        f.write("""import sys\\nsys.path = [p for p in sys.path if p.startswith('/usr')]\\n""" + PLANT + """
class PycInvalidationMode: UNCHECKED_HASH = None
def compile_dir(*args, **options): plant()
""")
'''

# A process that outlives the build and waits for the tree.
DAEMON = '''
import os, time
if os.fork() == 0:
    os.setsid()
    for fd in range(3):
        os.close(fd)
    while True:
        try:
            if os.path.exists('/workspace/tree/gbpure/__init__.py'):
                exec(PLANT + 'plant()')
        except OSError:
            pass
        time.sleep(0.001)
'''

# A wheel that is changed after it was fetched by its hash, and lines in the name of the installer's own code.
LIAR = '''
import glob, hashlib, json, os, time
def lie():
    packages = [{'name': 'gbpure', 'version': '1.0', 'sha256': HASH, 'source': False, 'requested': True, 'replaces': None}]
    line = json.dumps({'installed': {'packages': packages, 'modules': ['gbpure'], 'dists': {}}})
    for name in ('resolved', 'fetched', 'installed'):
        line += '\\n' + json.dumps({name: {'by': 'pip', 'packages': packages, 'modules': ['gbpure'], 'dists': {}}})
    for path in glob.glob('/proc/[0-9]*/fd/1'):
        try:
            with open(path, 'w') as f:
                f.write('\\n' + line + '\\n')
        except OSError:
            pass
if os.fork() == 0:
    os.setsid()
    for fd in range(3):
        os.close(fd)
    while True:
        lie()
        try:
            if os.path.exists('/workspace/tree/gbpure/__init__.py'):
                exec(PLANT + 'plant()')
        except OSError:
            pass
        time.sleep(0.01)
'''
WAYS = {'shadow': SHADOW, 'daemon': DAEMON, 'liar': LIAR}


def evil(way, digest):
    setup = f'PLANT = {PLANT!r}\nHASH = {digest!r}\n{WAYS[way]}\nfrom setuptools import setup\nsetup(name="gbevil", version="1.0", py_modules=["gbevil"])\n'
    return package_index.sdist('gbevil', '1.0', {'setup.py': setup, 'gbevil.py': ''})


def poisoned(api, *packages):
    code = 'import gbpure; [gbpure.version, hasattr(gbpure, "poisoned")]'
    return api.run(code, packages=list(packages)).ok().text != "['1.0', False]"


@pytest.mark.parametrize('way', WAYS)
def test_a_build_cannot_poison_another_tokens_packages(way):
    import hashlib

    files = dict(package_index.standard())
    digest = hashlib.sha256(files['gbpure-1.0-py3-none-any.whl']).hexdigest()
    with package_index.Index({**files, **dict([evil(way, digest)])}) as index:
        flags = ['--packages-index', index.url, '--packages-build', '--no-packages-isolate', '--preload', 'none', '--token', f'{ALICE},{MALLORY}']
        with gb.running_daemon(*flags, token=ALICE) as daemon:
            with gb.Api(daemon.url, token=MALLORY) as mallory, daemon.api() as alice:
                mallory.post('/v1/run', json={'code': '1', 'packages': ['gbevil', TARGET]})  # may fail: the attack may break its own installation
                assert not poisoned(alice, TARGET)
                assert not poisoned(alice, TARGET, 'gbold')
                assert not poisoned(mallory, TARGET)


def test_built_sets_belong_to_one_token_and_others_to_all():
    with package_index.Index() as index:
        flags = ['--packages-index', index.url, '--packages-build', '--no-packages-isolate', '--preload', 'none', '--token', f'{ALICE},{MALLORY}']
        with gb.running_daemon(*flags, token=ALICE) as daemon, gb.Api(daemon.url, token=MALLORY) as mallory, daemon.api() as alice:
            ask = lambda api, name: api.session(packages=[name]).info['packages']
            wheel = [ask(mallory, TARGET), ask(alice, TARGET)]
            assert wheel[0]['set'] == wheel[1]['set'] and wheel[1]['cached']
            built = [ask(mallory, 'gbext'), ask(alice, 'gbext'), ask(mallory, 'gbext'), ask(alice, 'gbext')]
            assert [one['cached'] for one in built] == [False, False, True, True]
            assert built[0]['set'] == built[2]['set'] != built[1]['set'] == built[3]['set']
        added = gb.cli('packages', 'add', '--state-dir', daemon.dir / 'state', '--index', index.url, 'gbext', env=gb.clean_env(GLOVEBOX_PACKAGES_ISOLATE='no'))
        assert 'installed: gbext 1.0' in added.stdout  # not what a client had built


def test_a_wheels_own_compiled_files_are_not_used():
    import importlib.util
    import marshal

    code = marshal.dumps(compile('version = "other than its source"', 'gbshipped.py', 'exec'))
    data = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, 'little') + b'0' * 8 + code
    files = {'gbshipped.py': 'version = "1.0"\n', importlib.util.cache_from_source('gbshipped.py'): data}
    with package_index.Index([package_index.wheel('gbshipped', '1.0', files)]) as index:
        with gb.running_daemon('--packages-index', index.url, '--preload', 'none') as daemon, daemon.api() as api:
            assert api.run('import gbshipped; gbshipped.version', packages=['gbshipped']).ok().text == "'1.0'"
