"""LibreChat's code interpreter, by the requests that @librechat/agents makes."""

import gb
import requests


def run(api, code, lang='py', **fields):
    answer = api.post('/v1/exec', json={'lang': lang, 'code': code, 'user_id': 'u', **fields}, headers={'X-API-Key': 'any'})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_exec(api):
    said = run(api, 'import sys\nprint(sys.argv[1:])\nprint("e", file=sys.stderr)', args=['a', 'b'])
    assert said['stdout'] == "['a', 'b']\n" and said['stderr'] == 'e\n' and said['files'] == [] and said['session_id']
    assert 'ZeroDivisionError' in run(api, '1/0')['stderr']
    assert run(api, 'echo hi', lang='bash')['stdout'] == 'hi\n'
    for lang in ('js', 'ts', None):
        assert api.post('/v1/exec', json={'lang': lang, 'code': '1'}).status_code == 400
    assert api.post('/v1/exec', json={'lang': 'py'}).status_code == 400


def test_files_are_kept_between_programs(api):
    made = run(api, 'import os\nos.makedirs("/mnt/data/d")\nopen("/mnt/data/d/out.csv", "w").write("1,2")\nprint(os.listdir("/mnt/data"))')
    assert made['stdout'] == "['d']\n"
    (file,) = made['files']
    assert file['name'] == 'd/out.csv'
    sid = made['session_id']
    assert [f['id'] for f in api.get(f'/v1/files/{sid}').json()] == [file['id']]
    assert api.get(f'/v1/download/{sid}/{file["id"]}?kind=x&id=y').content == b'1,2'
    ref = {**file, 'session_id': sid}
    said = run(api, 'print(open("/mnt/data/d/out.csv").read())', files=[ref, {'id': 'gone', 'name': 'x', 'session_id': 'gone'}])
    assert said['stdout'] == '1,2\n' and said['files'] == []
    changed = run(api, 'open("/mnt/data/d/out.csv", "a").write("!")', files=[ref])
    assert api.get(f'/v1/download/{changed["session_id"]}/{changed["files"][0]["id"]}').content == b'1,2!'
    assert api.get(f'/v1/download/{sid}/{file["id"]}').content == b'1,2', 'the one before is as it was'


def test_uploads(api):
    content = b'a,b\r\n--1,2\r\n\0'
    said = api.post('/v1/upload', files={'file': ('in put.csv', content)}, data={'kind': 'user', 'id': 'u'}).json()
    assert said['message'] == 'success' and said['files'][0]['filename'] == 'in put.csv'
    ref = {'id': said['files'][0]['fileId'], 'name': 'in put.csv', 'storage_session_id': said['storage_session_id']}
    assert run(api, 'print(open("/mnt/data/in put.csv", "rb").read())', files=[ref])['stdout'] == f'{content!r}\n'
    both = [('files', ('a.txt', b'1')), ('files', ('../b.txt', b'2'))]
    said = api.post('/v1/upload/batch', files=both).json()
    assert (said['succeeded'], said['failed']) == (1, 1) and [f['status'] for f in said['files']] == ['success', 'error']
    assert api.post('/v1/upload', data=b'x', headers={'Content-Type': 'multipart/form-data; boundary=q'}).status_code == 400
    assert api.post('/v1/upload', data=b'--q', headers={'Content-Type': 'multipart/form-data; boundary=q'}).status_code == 400
    assert api.get('/v1/files/none').json() == [] and api.get('/v1/download/none/x').status_code == 404


def test_files_belong_to_a_token():
    first, second = 'first-token-of-the-two', 'second-token-of-the-two'
    with gb.running_daemon('--token', first, '--token', second) as daemon:
        def ask(method, path, token, **kwargs):
            return requests.request(method, daemon.url + path, headers={'X-API-Key': token}, **kwargs)

        said = ask('POST', '/v1/upload', first, files={'file': ('a', b'1')}).json()
        path = f'/v1/download/{said["session_id"]}/{said["files"][0]["fileId"]}'
        assert ask('GET', path, first).content == b'1' and ask('GET', path, second).status_code == 404
        assert ask('GET', path, 'wrong').status_code == 401


def test_files_named_many_times_are_refused(api):
    said = api.post('/v1/upload', files={'file': ('big', b'x' * (2 << 20))}).json()
    ref = {'id': said['files'][0]['fileId'], 'session_id': said['session_id']}
    refs = [{**ref, 'name': f'f{i}'} for i in range(13)]
    assert 'f11' in run(api, 'import os\nprint(os.listdir())', files=refs[:12])['stdout']
    assert api.post('/v1/exec', json={'lang': 'py', 'code': '1', 'files': refs}).status_code == 413
