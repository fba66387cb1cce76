"""The official MCP clients, unmodified: SDK 1.x, client 2.x, the tasks extension and the inspector's command line."""

import json
import shutil
import subprocess

import gb
import node
import pytest

SOURCES = gb.ROOT / 'tests/mcp'
INSPECTOR = 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js'

HTTP = ['lists_tools', 'uses_every_tool', 'sees_plots', 'sees_errors', 'hears_progress', 'cancels', 'times_out_and_goes_on', 'reads_resources', 'calls_in_parallel']
SSE = ['has_the_python_tool', 'sees_errors', 'hears_progress', 'cancels']
CONNECTIONS = {
    'v1 http legacy': HTTP,
    'v2 http legacy': HTTP,
    'v2 http modern': HTTP,
    'v1 stdio legacy': HTTP,
    'v2 stdio legacy': HTTP,
    'v2 stdio modern': HTTP,
    'v1 sse legacy': SSE,
    'v2 sse legacy': SSE,
}


@pytest.fixture(scope='module')
def clients():
    program, folder = node.packages('mcp')
    for source in SOURCES.glob('*.mjs'):
        shutil.copy(source, folder)
    return program, folder


@pytest.fixture(scope='module')
def server(clients):
    with gb.running_daemon() as d:
        yield d


@pytest.fixture(scope='module')
def run(clients, server, tmp_path_factory):
    """Runs all scenarios of a connection in one process of Node; they are kept for the tests of the other scenarios."""
    known = {}
    program, folder = clients

    def outcomes(connection):
        if connection not in known:
            env = gb.clean_env(TEST_URL=server.url, TEST_PROGRAM=gb.PROGRAM, HOME=tmp_path_factory.mktemp('home'))
            done = subprocess.run([program, 'run.mjs', *connection.split()], cwd=folder, env=env, capture_output=True, text=True, timeout=300)
            told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]
            known[connection] = {t['name']: t['error'] for t in told}, done.stderr
        return known[connection]

    return outcomes


@pytest.mark.parametrize('connection,scenario', [(c, s) for c, names in CONNECTIONS.items() for s in names])
def test_a_client(run, connection, scenario):
    outcomes, stderr = run(connection)
    assert scenario in outcomes, stderr
    assert outcomes[scenario] is None, outcomes[scenario]


# ---- the inspector's command line -----------------------------------------------------------


@pytest.fixture(scope='module')
def inspect(clients, server, tmp_path_factory):
    program, folder = clients
    home = tmp_path_factory.mktemp('inspector')

    def run(*args, code=0):
        env = {**gb.clean_env(HOME=home), 'NO_COLOR': '1'}
        done = subprocess.run([program, folder / INSPECTOR, '--cli', *map(str, args)], env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout) if done.stdout.startswith('{') else done.stdout

    return run


def targets(server):
    return {'http': [f'{server.url}/mcp'], 'stdio': [gb.PROGRAM, 'mcp', '--url', server.url]}


@pytest.mark.parametrize('era', ['legacy', 'auto', 'modern'])
@pytest.mark.parametrize('transport', ['http', 'stdio'])
def test_the_inspector_calls_a_tool(server, inspect, transport, era):
    result = inspect(*targets(server)[transport], '--protocol-era', era, '--method', 'tools/call', '--tool-name', 'run_python', '--tool-arg', 'code=6 * 7')
    assert result['structuredContent']['result'] == '42' and result['isError'] is False


def test_the_inspector_finds_no_error_in_the_schemas(server, inspect):
    tools = inspect(f'{server.url}/mcp', '--method', 'tools/list', '--strict')['tools']
    assert len(tools) == 10
    assert len(inspect(f'{server.url}/sse', '--method', 'tools/list', '--strict')['tools']) == 1


def test_the_inspector_reads_resources(server, inspect):
    made = inspect(f'{server.url}/mcp', '--method', 'tools/call', '--tool-name', 'write_file', '--tool-args-json', '{"path": "i.txt", "content": "seen"}')
    uri = f'glovebox://{made["structuredContent"]["session_id"]}/i.txt'
    assert uri in {r['uri'] for r in inspect(f'{server.url}/mcp', '--method', 'resources/list')['resources']}
    assert inspect(f'{server.url}/mcp', '--method', 'resources/read', '--uri', uri)['contents'][0]['text'] == 'seen'
    assert inspect(f'{server.url}/mcp', '--method', 'resources/templates/list')['resourceTemplates']


@pytest.mark.parametrize('transport', ['http', 'stdio'])
def test_the_inspector_waits_for_a_task(server, inspect, transport):
    arguments = {'code': 'import time\ntime.sleep(1)\n"done"', 'detach': True}
    result = inspect(*targets(server)[transport], '--protocol-era', 'modern', '--method', 'tools/call', '--tool-name', 'run_python', '--tool-args-json', json.dumps(arguments))
    assert result['structuredContent']['result'] == "'done'"


def test_the_inspector_puts_load_on_a_tool(server, inspect):
    told = inspect(f'{server.url}/mcp', '--method', 'tools/call', '--tool-name', 'run_python', '--tool-args-json', '{"code": "1"}', '--load', '--load-requests', 100, '--load-concurrency', 10)
    assert (told['ok'], told['toolErrors'], told['errors']) == (100, 0, 0)
