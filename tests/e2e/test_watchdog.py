"""A helper process that lives and does not answer: it is replaced, /readyz says so meanwhile, and sessions that run do not notice."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import gb
import pytest


def the_one(daemon, name):
    """A guest that is being forked is called as its zygote for a moment."""
    return gb.wait_until(lambda: len(found := daemon.children(name)) == 1 and found[0], f'there is one {name}')


@pytest.fixture
def own():
    with gb.running_daemon('--preload', 'json', '--ready', '1', '--no-heap-placement') as daemon:
        yield daemon


@pytest.mark.parametrize('name', ['glovebox-jailer', 'glovebox-zygote'])
def test_a_helper_that_hangs_is_replaced(own, name):
    with own.api() as api, own.api() as other, ThreadPoolExecutor(1) as pool:
        session = api.session()
        session.execute('x = 41').ok()
        pid = the_one(own, name)
        os.kill(pid, signal.SIGSTOP)
        made = [pool.submit(lambda: [other.session().execute('"made"').ok().text for _ in range(3)])]  # more than there are in stock: they need it
        gb.wait_until(lambda: api.get('/readyz').status_code == 503, 'it is noticed')
        assert 'is being started' in api.get('/readyz').json()['detail']
        assert session.execute('x + 1').ok().text == '42'
        gb.wait_until(lambda: api.get('/readyz').status_code == 200, 'another one serves')
        assert the_one(own, name) != pid
        assert made[0].result() == ["'made'"] * 3
        assert api.run('6 * 7').ok().text == '42'
    assert 'it is killed and a new one is started' in own.log()


def test_the_zygote_is_renewed():
    """Sessions of another zygote have another hash seed and address layout; running ones go on, and the server stays ready."""
    said = 'hash("glovebox"), id(object)'
    with gb.running_daemon('--preload', 'json', '--ready', '2', '--renew', '1', '--no-heap-placement') as daemon, daemon.api() as api:
        session = api.session()
        first = session.execute(said).ok().text
        zygote = the_one(daemon, 'glovebox-zygote')
        for _ in range(4):  # it is used, and the stock is made anew
            assert api.run('6 * 7').ok().text == '42'

        def renewed():
            assert api.get('/readyz').status_code == 200
            return 'the zygote was renewed' in daemon.log() and the_one(daemon, 'glovebox-zygote') != zygote

        gb.wait_until(renewed, 'another zygote serves')
        gb.wait_until(lambda: api.run(said).ok().text != first, 'sessions come from it')
        assert session.execute(said).ok().text == first
        fork = api.post(f'{session.path}/fork', json={})
        assert fork.status_code == 201 and api.adopt(fork.json()['sessions'][0]).execute(said).ok().text == first
        assert 'it is killed' not in daemon.log() and 'the zygote ended' not in daemon.log()


def test_an_init_that_hangs_costs_its_own_session(own):
    """A cell that ends its interpreter has what is left in the jail killed by the init, which does not answer here."""
    with own.api() as api:
        session, other = api.session(), api.session()
        session.execute('import os').ok()
        space = os.readlink(f'/proc/{session.get()["pid"]}/ns/pid')
        init = next(p for p in own.children('glovebox-init') if os.readlink(f'/proc/{p}/ns/pid') == space)
        os.kill(init, signal.SIGSTOP)
        session.execute('os.kill(os.getpid(), 9)', timeout_s=5, transaction=False)
        assert other.execute('6 * 7').ok().text == '42'
        gb.wait_until(lambda: "the jail's init did not answer in time" in own.log(), 'it is noticed')
        assert api.run('6 * 7').ok().text == '42'
        session.delete()
