"""`glovebox run`: the files beside a script, a directory in and files out, a script from a pipe."""

import os

import gb
import pytest


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / 'project'
    (folder / 'package').mkdir(parents=True)
    (folder / 'package/__init__.py').write_text('y = 5')
    (folder / 'helper.py').write_text('def f(): return "helped"')
    (folder / 'data.csv').write_text('a,b')
    (folder / '.secret').write_text('s')
    (folder / 'script.py').write_text(
        'import helper, os, package\n'
        'print(helper.f(), package.y, open("data.csv").read(), sorted(os.listdir(".")))\n'
        'for name in ("/dir/data.csv", "package/new"):\n'
        '    try: open(name, "w")\n'
        '    except OSError as e: print(e.errno)\n'
        'os.makedirs("sub/deep"); open("sub/deep/x", "w").write("deep"); open("out.txt", "w").write("result")\n'
        'os.symlink("/etc/passwd", "link"); os.mkfifo("fifo")\n'
    )
    return folder


def test_files_beside_the_script_are_there_and_stay_as_they_are(project):
    done = gb.cli('run', project / 'script.py', cwd='/')
    assert done.stdout == "helped 5 a,b ['data.csv', 'helper.py', 'package', 'script.py']\n30\n30\n", done
    assert (project / 'data.csv').read_text() == 'a,b' and not (project / 'out.txt').exists()


def test_files_come_back(project, tmp_path):
    out = tmp_path / 'results'
    done = gb.cli('run', '--out', out, project / 'script.py')
    assert done.returncode == 0, done.stderr
    assert sorted(str(p.relative_to(out)) for p in out.rglob('*')) == ['out.txt', 'sub', 'sub/deep', 'sub/deep/x']
    assert (out / 'out.txt').read_text() == 'result' and (out / 'sub/deep/x').read_text() == 'deep'


def test_files_beside_the_script_can_be_overwritten(project, tmp_path):
    """The code works on copies; --out gives back those that it changed, and no others."""
    (project / 'change.py').write_text(
        'with open("data.csv", "a") as f: f.write("\\n1,2")\n'
        'import os; os.remove("helper.py"); open("script.py", "w").close()\n'
    )
    out = tmp_path / 'results'
    done = gb.cli('run', '--out', out, project / 'change.py')
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(out)) == ['data.csv', 'script.py'] and (out / 'data.csv').read_text() == 'a,b\n1,2'
    assert (project / 'data.csv').read_text() == 'a,b' and (project / 'helper.py').exists(), 'the files themselves did not change'
    again = gb.cli('run', '--out', project, project / 'change.py')
    assert again.returncode == 0 and (project / 'data.csv').read_text() == 'a,b\n1,2', again.stderr


def test_large_files_are_links(project):
    (project / 'large.bin').write_bytes(b'x' * (1 << 20) + b'y')
    code = 'import os; print(os.path.getsize("large.bin"), os.path.islink("large.bin"), os.path.islink("data.csv"))'
    assert gb.cli('run', '--dir', project, '-c', code).stdout == '1048577 True False\n'


def test_mounts(project, tmp_path):
    (tmp_path / 'other').mkdir()
    (tmp_path / 'other/weights').write_text('w')
    mounts = ('--mount', f'{project}:/data', '--mount', f'{tmp_path}/other:/mnt/models')
    code = 'import os\nprint(open("/data/data.csv").read(), open("/mnt/models/weights").read(), os.listdir("/mnt"))\nopen("/data/new", "w")'
    done = gb.cli('run', *mounts, '-c', code)
    assert done.stdout == "a,b w ['models']\n" and 'Read-only file system' in done.stderr, done
    for wrong in ('/srv', '/srv:data', '/srv:/usr', '/srv:/mnt/a/b', f'{project}/data.csv:/data', f'{project}/none:/data', '/srv:'):
        done = gb.cli('run', '--mount', wrong, '-c', '1')
        assert done.returncode == 2 and '--mount' in done.stderr, wrong


def test_no_link_of_ours_is_written_through(project, tmp_path):
    out = tmp_path / 'results'
    out.mkdir()
    (tmp_path / 'kept').write_text('kept')
    os.symlink(tmp_path / 'kept', out / 'out.txt')
    done = gb.cli('run', '--out', out, project / 'script.py')
    assert done.returncode == 1 and '--out: out.txt' in done.stderr
    assert (tmp_path / 'kept').read_text() == 'kept'


def test_hidden_files_stay_and_modes_are_new(project, tmp_path):
    """Code cannot write hooks and settings of other programs into a directory of the user."""
    out = tmp_path / 'results'
    out.mkdir()
    (out / 'out.txt').write_text('old')
    (out / 'out.txt').chmod(0o755)
    (project / 'hooks.py').write_text('import os\nos.makedirs(".git/hooks")\nopen(".git/hooks/pre-commit", "w").write("x")\nopen("out.txt", "w").write("new")\n')
    done = gb.cli('run', '--out', out, project / 'hooks.py')
    assert done.returncode == 0 and sorted(os.listdir(out)) == ['out.txt'], done
    assert (out / 'out.txt').read_text() == 'new' and not (out / 'out.txt').stat().st_mode & 0o111


def test_a_directory_by_name(project):
    assert gb.cli('run', '--dir', project, '-c', 'import helper; print(helper.f())', cwd='/').stdout == 'helped\n'
    done = gb.cli('run', '--dir', project / 'none', '-c', '1')
    assert done.returncode == 2 and '--dir' in done.stderr


def test_a_module_of_ones_own_is_no_package(project):
    done = gb.cli('run', '-c', 'import helper', cwd=project)
    assert 'helper.py is a file of yours' in done.stderr and '--dir .' in done.stderr and 'pip' not in done.stderr
    done = gb.cli('run', project / 'script.py', env=gb.clean_env(HOME=project))
    assert f'--dir {project}' in done.stderr and 'pip' not in done.stderr, 'a home directory is shown only when it is named'


def test_a_script_from_a_pipe():
    assert gb.cli('run', input='print(6 * 7)').stdout == '42\n'
    done = gb.cli('run')
    assert done.returncode == 2 and 'nothing to run' in done.stderr


def test_the_state_directory_of_the_environment(tmp_path):
    assert gb.cli('run', '-c', 'print(1)', env=gb.clean_env(GLOVEBOX_STATE_DIR=tmp_path / 'state')).stdout == '1\n'
    assert (tmp_path / 'state').is_dir()
