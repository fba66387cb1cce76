"""The router of a fleet that finds its nodes by DNS, as in Kubernetes: pods come, go, and come back with another address."""

import shutil
import subprocess

import pytest
import yaml

import fleet as fleets
import gb


class Names:
    """dnsmasq with the addresses of the pods."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, fleets.free_port(), None
        self.program = shutil.which('dnsmasq', path=fleets.PATH)
        assert self.program, 'dnsmasq is not installed: scripts/install-deps --test'

    def set(self, addresses):
        self.stop()
        words = [f'--host-record={name}.pods.test,{address}' for name, address in addresses.items()]
        self.process = subprocess.Popen(
            [*gb.WITH_US, self.program, '--keep-in-foreground', '--conf-file=/dev/null', '--no-hosts', '--no-resolv', '--user=root', '--local=/pods.test/',
             '--listen-address=127.0.0.1', '--bind-interfaces', f'--port={self.port}', f'--pid-file={self.folder}/dnsmasq.pid', '--local-ttl=1', *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(self.folder / 'dnsmasq.log', 'ab'), env=gb.clean_env(PATH=fleets.PATH),
        )  # fmt: skip

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(gb.PATIENCE)


@pytest.fixture
def pods(tmp_path):
    fleet = fleets.Fleet(tmp_path, {f'glovebox-{i}': () for i in range(3)})
    yield fleet
    fleet.remove()


def test_pods(pods, tmp_path):
    names = Names(tmp_path)
    pods.router.stop()
    address = {name: node.address for name, node in pods.nodes.items()}
    try:
        names.set({n: address[n] for n in ('glovebox-0', 'glovebox-1')})
        pods.router = fleets.Router(
            tmp_path, '--dns', 'pods.test', '--count', '8', '--port', str(fleets.PORT), '--nameserver', f'127.0.0.1:{names.port}')  # fmt: skip
        gb.wait_until(lambda: pods.open_nodes() == {'glovebox-0', 'glovebox-1'}, 'the router finds the pods that there are')
        with pods.router.api() as api:
            session = api.adopt(api.post('/v1/sessions', json={}, headers={'Glovebox-Node': 'glovebox-1'}).json())
            session.value('x = 42')
            gb.assert_problem(api.get('/v1/node', headers={'Glovebox-Node': 'glovebox-2'}), 503, 'node_unreachable')

            names.set(address)  # scaled up
            gb.wait_until(lambda: pods.open_nodes() == set(address), 'the router finds the new pod')
            assert session.value('x') == '42'

            # The names of two pods lead to each other's addresses: ids are not found there, and nothing wrong is answered.
            names.set({**address, 'glovebox-0': address['glovebox-1'], 'glovebox-1': address['glovebox-0']})
            gb.wait_until(lambda: session.post_code('x').status_code == 404, 'another node does not have the session')
            names.set(address)
            gb.wait_until(lambda: session.post_code('x').status_code == 200, 'the session answers again')
            assert session.value('x') == '42'
    finally:
        names.stop()


def test_manifests():
    """They are YAML, name each other, and the router's configuration is what the program prints."""
    folder = gb.ROOT / 'deploy/kubernetes'
    assert (folder / 'haproxy.cfg').read_text() == fleets.configuration('--dns', 'glovebox.default.svc.cluster.local', '--count', '16')
    kustomization = yaml.safe_load((folder / 'kustomization.yaml').read_text())
    parts = [part for name in kustomization['resources'] for part in yaml.safe_load_all((folder / name).read_text())]
    by_kind = {kind: [p for p in parts if p['kind'] == kind] for kind in ('Service', 'StatefulSet', 'Deployment', 'PodDisruptionBudget')}
    assert [len(p) for p in by_kind.values()] == [2, 1, 1, 2]
    servers = by_kind['StatefulSet'][0]['spec']
    assert servers['serviceName'] == by_kind['Service'][0]['metadata']['name'] == 'glovebox'
    for owner in (servers, by_kind['Deployment'][0]['spec']):
        labels = owner['template']['metadata']['labels']
        assert owner['selector']['matchLabels'] == labels
        assert labels in [s['spec']['selector'] for s in by_kind['Service']]
        assert labels in [b['spec']['selector']['matchLabels'] for b in by_kind['PodDisruptionBudget']]

    # Its settings are settings of the server.
    settings = {one['name']: one.get('value') for one in servers['template']['spec']['containers'][0]['env']}
    known = gb.cli('serve', '--help').stdout
    for name in settings:
        assert '--' + name.removeprefix('GLOVEBOX_').lower().replace('_', '-') in known, name
