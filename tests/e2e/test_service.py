"""/health, /readyz, /version, /metrics, /openapi.json, /docs."""

import re
import subprocess
from html.parser import HTMLParser

import gb


def test_health(api):
    answer = api.get('/health')
    assert answer.json() == {'status': 'healthy'} and answer.headers['Content-Type'] == 'application/json'


def test_ready_names_what_was_not_preloaded():
    with gb.running_daemon(
        '--preload', 'json,no_such_module_a,no_such_module_b', '--ready', '0'
    ) as daemon, daemon.api() as api:
        ready = api.get('/readyz').json()
        assert ready['status'] == 'ready'
        assert [line.split(':')[0] for line in ready['not_preloaded']] == ['no_such_module_a', 'no_such_module_b']
        gb.wait_until(lambda: 'no_such_module_a' in daemon.log(), 'the log names it too')
        assert api.run('import sys; "json" in sys.modules').ok().text == 'True'


def test_not_ready_while_warming_up(tmp_path):
    (tmp_path / 'slow_to_import.py').write_text('import time; time.sleep(3)')
    with gb.running_daemon(
        '--preload', 'json,test.support,unittest,xmlrpc.client,turtledemo', '--ready', '0', wait=False
    ) as daemon, daemon.api() as api:
        answer = api.get('/readyz')
        if answer.status_code != 200:
            gb.assert_problem(answer, 503, 'starting')
            assert 'Retry-After' in answer.headers
        assert api.get('/health').status_code == 200, 'alive is not ready'
        assert api.run('1 + 1').ok().text == '2', 'work given meanwhile waits and is done'


def test_version(api):
    version = api.get('/version').json()
    assert version['name'] == 'glovebox' and re.fullmatch(r'\d+\.\d+\.\d+\S*', version['version'])
    assert version['version'] in gb.cli('version').stdout


def parse_metrics(text):
    """{name: (type, [(labels, value)])}, by the rules of the Prometheus text format."""
    found, current = {}, None
    for line in text.splitlines():
        if line.startswith('# HELP '):
            current = line.split()[2]
            assert current not in found and re.fullmatch(r'[a-zA-Z_:][a-zA-Z0-9_:]*', current)
        elif line.startswith('# TYPE '):
            _, _, name, kind = line.split()
            assert name == current and kind in ('counter', 'gauge', 'histogram', 'summary')
            found[name] = (kind, [])
        else:
            match = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)', line)
            assert match, line
            name, labels, value = match.groups()
            base = re.sub(r'_(bucket|sum|count)$', '', name) if name not in found else name
            assert base == current, line
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)', labels or ''))
            found[base][1].append((name, labels, float(value)))
    assert text.endswith('\n')
    return found


def check_histogram(samples):
    buckets = [(float(labels['le']), value) for n, labels, value in samples if n.endswith('_bucket')]
    assert buckets[-1][0] == float('inf') and buckets == sorted(buckets)
    assert [v for _, v in buckets] == sorted(v for _, v in buckets), 'they accumulate'
    count = [v for n, _, v in samples if n.endswith('_count')][0]
    assert count == buckets[-1][1]


def test_metrics_are_prometheus_text(api):
    api.run('1').ok()
    answer = api.get('/metrics')
    assert answer.headers['Content-Type'].startswith('text/plain; version=0.0.4')
    found = parse_metrics(answer.text)
    for name in (
        'sessions', 'sessions_created_total', 'sessions_ended_total', 'cells_total', 'cell_seconds', 'output_bytes_total',
        'guests_forked_total', 'guests_ready', 'zygote_restarts_total', 'http_requests_total', 'http_request_seconds',
        'http_received_bytes_total', 'http_sent_bytes_total', 'process_resident_bytes', 'process_open_fds', 'session_create_seconds',
        'sessions_refused_total', 'screenshot_seconds', 'screenshots_settled_total', 'descriptors_left', 'descriptors_limit', 'processes_left',
        'processes_limit', 'memory_left_bytes', 'memory_limit_bytes', 'state_dir_left_bytes',
    ):  # fmt: skip
        assert f'glovebox_{name}' in found, name
    for name, (kind, samples) in found.items():
        if kind == 'histogram':
            for label in {labels.get('profile') for _, labels, _ in samples}:
                check_histogram([sample for sample in samples if sample[1].get('profile') == label])
        if kind == 'counter':
            assert name.endswith('_total')


def test_metrics_count(api, session):
    before = api.metrics()
    session.execute('print("12345678", end="")').ok()
    session.execute('1/0')
    session.execute('while True: pass', timeout_s=0.2)
    api.get('/nowhere')
    after = api.metrics()
    grown = {name: after[name] - before.get(name, 0) for name in after}
    assert grown['glovebox_cells_total{profile="python",dialect="native",template="default",status="ok"}'] == 1
    assert grown['glovebox_cells_total{profile="python",dialect="native",template="default",status="error"}'] == 1
    assert grown['glovebox_cells_total{profile="python",dialect="native",template="default",status="timeout"}'] == 1
    assert grown['glovebox_cell_seconds_count{profile="python"}'] == 3 and grown['glovebox_cell_seconds_sum{profile="python"}'] >= 0.2
    assert grown['glovebox_cell_seconds_count{profile="smolagents"}'] == 0
    assert grown['glovebox_output_bytes_total{stream="stdout"}'] == 8
    assert grown['glovebox_http_requests_total{method="POST",route="/v1/sessions/{id}/execute",status="200"}'] == 3
    assert grown['glovebox_http_requests_total{method="any",route="none",status="404"}'] == 1
    session.delete()
    assert api.metric('glovebox_sessions') == after['glovebox_sessions'] - 1


def test_cells_are_counted_by_dialect_and_template(api):
    def cells(**labels):
        wanted = [f'{name}="{value}"' for name, value in labels.items()]
        return sum(value for name, value in api.metrics().items() if name.startswith('glovebox_cells_total{') and all(w in name for w in wanted))

    before = [cells(dialect=name, status='ok') for name in ('openenv', 'dify', 'sandboxfusion', 'jupyter')]
    api.post('/step', json={'action': {'code': '1'}}, headers={'X-Session-Id': 'counted'}).raise_for_status()
    api.post('/v1/sandbox/run', json={'language': 'python3', 'code': '1'}).raise_for_status()
    api.post('/run_code', json={'language': 'python', 'code': 'print(1)'}).raise_for_status()
    after = [cells(dialect=name, status='ok') for name in ('openenv', 'dify', 'sandboxfusion', 'jupyter')]
    assert [b - a for a, b in zip(before, after)] == [1, 1, 1, 0]
    assert cells(template='default') == cells()


def test_what_is_left_of_the_machine(api):
    figures = api.metrics()
    for name in ('descriptors_left', 'processes_left', 'memory_left_bytes'):
        limit = name.replace('left', 'limit')
        assert 0 < figures[f'glovebox_{name}'] < figures[f'glovebox_{limit}'], name
    assert figures['glovebox_descriptors_left'] + figures['glovebox_process_open_fds'] == figures['glovebox_descriptors_limit']


def test_refused_sessions_are_counted_by_reason():
    with gb.running_daemon('--max-sessions', '1', '--network', 'none', '--processes', '50', '--max-processes', '50') as daemon, daemon.api() as api:
        def refused():
            prefix = 'glovebox_sessions_refused_total{reason="'
            return {name.removeprefix(prefix)[:-2]: value for name, value in api.metrics().items() if name.startswith(prefix) and value}

        assert api.post('/v1/sessions', json={'profile': 'nosuch'}).status_code == 400
        assert api.post('/v1/sessions', json={'limits': {'processes': 100}}).json()['code'] == 'limit_too_large'
        assert api.post('/v1/sessions', json={'network': 'loopback'}).json()['code'] == 'network_not_allowed'
        api.session()
        assert api.post('/v1/sessions', json={}).status_code in (429, 503)
        assert refused() == {'profile': 1, 'limit': 1, 'network': 1, 'server_full': 1}


def test_a_profile_of_a_file_has_its_own_figures(tmp_path):
    (tmp_path / 'profiles').mkdir()
    (tmp_path / 'profiles' / 'sci"ence.ini').write_text('base = smolagents\n')
    (tmp_path / 'glovebox.conf').write_text('')
    with gb.running_daemon('--config', str(tmp_path / 'glovebox.conf')) as daemon, daemon.api() as api:
        api.run('import os', profile='sci"ence')
        figures = api.metrics()
        assert figures['glovebox_policy_violations_total{profile="sci\\"ence",rule="import"}'] == 1
        assert figures['glovebox_policy_violations_total{profile="smolagents",rule="import"}'] == 0
        assert figures['glovebox_cells_total{profile="sci\\"ence",dialect="native",template="default",status="refused"}'] == 1


# ---- OpenAPI -----------------------------------------------------------------------------


def resolve(document, schema):
    while '$ref' in schema:
        node = document
        for part in schema['$ref'].removeprefix('#/').split('/'):
            node = node[part]
        schema = node
    return schema


def check(document, schema, value, where='$'):
    """A validator of the part of JSON Schema that the document uses; unknown keywords are a failure of the test."""
    schema = resolve(document, schema)
    known = {
        'type', 'properties', 'required', 'additionalProperties', 'items', 'description', 'enum', 'minimum', 'maximum', 'format',
        'default', 'examples', 'example', 'maxLength', 'minLength', 'maxItems', 'minItems', 'maxProperties', 'oneOf', 'anyOf',
        'pattern', 'title', 'propertyNames', 'contentEncoding', 'const',
    }  # fmt: skip
    assert set(schema) <= known, f'{where}: {set(schema) - known}'
    for choice in ('oneOf', 'anyOf'):
        if choice in schema:
            fits = 0
            for option in schema[choice]:
                try:
                    check(document, option, value, where)
                    fits += 1
                except AssertionError:
                    pass
            assert fits == 1 if choice == 'oneOf' else fits >= 1, f'{where}: {choice}'
    types = {
        'object': dict,
        'array': list,
        'string': str,
        'boolean': bool,
        'null': type(None),
        'number': (int, float),
        'integer': int,
    }
    if 'type' in schema:
        wanted = schema['type'] if isinstance(schema['type'], list) else [schema['type']]
        fits = any(isinstance(value, types[t]) and (t == 'boolean' or not isinstance(value, bool)) for t in wanted)
        assert fits, f'{where}: {value!r} is not {wanted}'
    if 'enum' in schema:
        assert value in schema['enum'], where
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        assert schema.get('minimum', value) <= value <= schema.get('maximum', value), where
    if isinstance(value, dict):
        for name in schema.get('required', []):
            assert name in value, f'{where}.{name} is missing'
        for name, inner in value.items():
            if name in schema.get('properties', {}):
                check(document, schema['properties'][name], inner, f'{where}.{name}')
            elif isinstance(schema.get('additionalProperties'), dict):
                check(document, schema['additionalProperties'], inner, f'{where}.{name}')
            else:
                assert schema.get('additionalProperties', True), f'{where}.{name} is not in the schema'
    if isinstance(value, list):
        for i, inner in enumerate(value):
            check(document, schema.get('items', {}), inner, f'{where}[{i}]')


def schema_of(document, path, method, status):
    operation = document['paths'][path][method]
    return resolve(document, operation['responses'][status])['content']['application/json']['schema']


def test_openapi_is_sound(api):
    document = api.get('/openapi.json').json()
    assert document['openapi'].startswith('3.1.') and document['info']['title'] and document['info']['version']
    ids = []
    for path, item in document['paths'].items():
        for method, operation in item.items():
            if method == 'parameters':
                continue
            assert method in ('get', 'put', 'post', 'patch', 'delete'), method
            ids.append(operation['operationId'])
            assert operation['summary'] and operation['responses']
            names = re.findall(r'{(\w+)}', path)
            given = [resolve(document, p) for p in operation.get('parameters', []) + item.get('parameters', [])]
            assert sorted(p['name'] for p in given if p['in'] == 'path') == sorted(names), path
            assert all(p['required'] for p in given if p['in'] == 'path')
            for status in operation['responses']:
                assert re.fullmatch(r'\d{3}|[45]XX|default', status)
    assert len(set(ids)) == len(ids)
    references = re.findall(r'"\$ref":\s*"#/([^"]+)"', api.get('/openapi.json').text)
    assert references
    for reference in references:
        resolve(document, {'$ref': '#/' + reference})


def test_openapi_has_every_route(api):
    paths = api.get('/openapi.json').json()['paths']
    expected = {
        '/v1/run': {'post'}, '/v1/sessions': {'get', 'post'}, '/v1/sessions/{id}': {'get', 'delete'},
        '/v1/sessions/{id}/execute': {'post'}, '/v1/sessions/{id}/interrupt': {'post'}, '/v1/sessions/{id}/reset': {'post'},
        '/v1/sessions/{id}/logs': {'get'}, '/v1/sessions/{id}/files': {'get'},
        '/v1/sessions/{id}/files/{path}': {'get', 'put', 'delete'}, '/v1/sessions/{id}/ws': {'get'}, '/health': {'get'},
        '/readyz': {'get'}, '/version': {'get'}, '/metrics': {'get'}, '/openapi.json': {'get'}, '/docs': {'get'},
    }  # fmt: skip
    for path, methods in expected.items():
        assert methods <= set(paths[path]), path


def test_answers_are_as_openapi_says(api, science):
    document = api.get('/openapi.json').json()
    observation = schema_of(document, '/v1/sessions/{id}/execute', 'post', '200')
    for code in ('1 + 1', 'import sys; print(1); print(2, file=sys.stderr); 1/0', 'open("f", "w").write("x")', 'sys.exit(3)',
                 'import pandas as pd; pd.DataFrame({"a": [1]})', 'import matplotlib.pyplot as p; p.plot([1, 2])', 'x = = 1'):  # fmt: skip
        check(document, observation, dict(science.execute(code)))
    check(document, observation, dict(science.execute('while True: pass', timeout_s=0.2)))
    check(document, observation, dict(science.execute('import os; os._exit(1)')))
    session = api.session(name='x', metadata={'a': [1, None]})
    check(document, schema_of(document, '/v1/sessions/{id}', 'get', '200'), session.get())
    check(document, schema_of(document, '/v1/sessions', 'get', '200'), api.get('/v1/sessions').json())
    session.execute('print(1)\nimport os; os.symlink("a", "b")').ok()
    check(document, schema_of(document, '/v1/sessions/{id}/logs', 'get', '200'), session.logs())
    check(
        document, schema_of(document, '/v1/sessions/{id}/files', 'get', '200'), api.get(f'{session.path}/files').json()
    )
    check(
        document,
        schema_of(document, '/v1/sessions/{id}/interrupt', 'post', '200'),
        {'interrupted': session.interrupt()},
    )
    check(document, schema_of(document, '/version', 'get', '200'), api.get('/version').json())


def test_requests_are_as_openapi_says(api):
    document = api.get('/openapi.json').json()

    def body(path):
        return document['paths'][path]['post']['requestBody']['content']['application/json']['schema']

    for value in ({'code': '1'}, {'code': '1', 'timeout_s': 5, 'stdin': 'x', 'detach': True}):
        check(document, body('/v1/sessions/{id}/execute'), value)
    check(document, body('/v1/sessions'), {'name': 'x', 'env': {'A': '1'}, 'limits': {'timeout_s': 1}, 'seed': 1})
    check(document, body('/v1/run'), {'code': '1', 'files': {'a': 'x', 'b': {'base64': 'AA=='}}})
    for path, value in (
        ('/v1/sessions/{id}/execute', {}),
        ('/v1/sessions/{id}/execute', {'code': 1}),
        ('/v1/run', {'code': '1', 'x': 1}),
    ):
        try:
            check(document, body(path), value)
        except AssertionError:
            continue
        raise AssertionError(f'the schema of {path} takes {value}, which the server refuses')


# ---- the page ----------------------------------------------------------------------------


class Page(HTMLParser):
    MAY_STAY_OPEN = ('p', 'li', 'td', 'th', 'tr', 'dt', 'dd', 'thead', 'tbody')  # by the rules of HTML

    def __init__(self):
        super().__init__()
        self.tags, self.links, self.open, self.text = [], [], [], ''

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name in ('src', 'href', 'action', 'srcset', 'data'):
                self.links.append((tag, value))
            assert not name.startswith('on'), f'{name} on {tag}'
        if tag not in ('meta', 'br', 'hr', 'img', 'input', 'link', *self.MAY_STAY_OPEN):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag in self.MAY_STAY_OPEN or self.open and self.open.pop() == tag, f'</{tag}>'

    def handle_data(self, data):
        self.text += data


def test_docs_page(api):
    answer = api.get('/docs')
    assert answer.headers['Content-Type'].startswith('text/html')
    page = Page()
    page.feed(answer.text)
    assert not page.open, 'every tag is closed'
    for tag, link in page.links:
        assert link.startswith(('#', '/')) and not link.startswith('//'), f'{tag} {link}: no external assets'
    assert '@import' not in answer.text and 'url(http' not in answer.text
    for path in api.get('/openapi.json').json()['paths']:
        assert path in page.text, path
    for field in ('timeout_s', 'stdin', 'idle_timeout_s', 'memory_bytes'):
        assert field in page.text
    assert '<code>Accept: text/event-stream</code>' in answer.text
    assert '`' not in page.text, 'backticks are shown as code'
    assert "default-src 'none'" in answer.headers['Content-Security-Policy']


def test_examples_of_the_page_work(api, daemon):
    """Each curl line, pasted into a shell."""
    page = Page()
    page.feed(api.get('/docs').text)
    lines = [line.strip() for line in page.text.splitlines() if line.strip().startswith('curl ')]
    assert len(lines) >= 10
    session = api.session(display=True)
    travelling = api.session()  # one with a display cannot be copied
    session.put_file('data/input.csv', b'a,b\n')
    for line in sorted(lines, key=lambda text: ('/node/drain' in text, 'DELETE' in text)):  # no sessions while it drains
        if ' -o ' in line:
            line = 'cd $(mktemp -d) && ' + line
        if 'input.csv' in line and ('-T' in line or '@input.csv' in line):
            line = 'cd $(mktemp -d) && echo x > input.csv && ' + line
        if '-o film.' in line:
            assert api.post(f'/v1/sessions/{session.id}/recording', json={'action': 'stop'}).status_code == 200
        below = '/files/' in line or '/recording/' in line
        target = api.session() if 'DELETE' in line and '$ID' in line and not below else session
        if any(word in line for word in ('/checkpoints', '/rollback', '/fork')):
            target = travelling
        said = subprocess.run(
            ['bash', '-ec', f'URL={daemon.url} ID={target.id}; {line} -f -m 30'],
            capture_output=True,
            text=True,
            timeout=gb.PATIENCE,
        )
        assert said.returncode == 0, f'{line}\n{said.stdout}{said.stderr}'


def test_metrics_tell_where_the_time_goes(api):
    api.session().execute('x = 1').ok()
    text = api.get('/metrics').text
    counts = dict(re.findall(r'glovebox_step_seconds_count\{step="(\w+)"\} (\d+)', text))
    for step in 'clone', 'enter', 'filter', 'python', 'spawn', 'setup', 'compile', 'run', 'value', 'report', 'cell', 'encode':
        assert int(counts[step]) > 0, step


def test_lines_of_the_log_are_bounded():
    """A client without a token must not be able to fill the disk with what it asks for."""
    with gb.running_daemon('--preload', 'json', '--ready', '1', '--token', 's' * 20, token='s' * 20) as daemon:
        before = len(daemon.log())
        for path in ('x' * 7000, 'x?token=' + 'y' * 7000 + '&z=' + 'z' * 900, '%f0' * 2000):
            with gb.Api(daemon.url) as stranger:
                assert stranger.get(f'/{path}').status_code in (400, 401, 404)
        lines = [line for line in daemon.log()[before:].splitlines() if ' request ' in line]
        assert len(lines) >= 3 and max(map(len, lines)) < 512
        assert 'yyy' not in daemon.log()
