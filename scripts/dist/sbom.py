"""The software bill of materials, as CycloneDX 1.5 JSON: the program, the libraries beside it, and what is compiled into it."""

import hashlib
import json
import re
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _digest(path):
    return [{'alg': 'SHA-256', 'content': hashlib.sha256(path.read_bytes()).hexdigest()}]


def _library(item, arch):
    component = {'type': 'library', 'bom-ref': f'lib/{item["name"]}', 'name': item['package'], 'hashes': _digest(item['path'])}
    if item['version']:
        component['version'] = item['version']
        component['purl'] = f'pkg:deb/debian/{item["package"]}@{item["version"].replace("+", "%2B").replace(":", "%3A")}?arch={arch}'
    component['properties'] = [{'name': 'file', 'value': f'lib/glovebox/{item["name"]}'}, {'name': 'source', 'value': item['source']}]
    return component


def _console():
    """What is compiled into the console's script: the packages that are no development dependencies."""
    lock = json.loads((ROOT / 'console/package-lock.json').read_text())
    for path, package in sorted(lock['packages'].items()):
        if not path.startswith('node_modules/') or package.get('dev') or package.get('optional'):
            continue
        name = path.split('node_modules/')[-1]
        component = {'type': 'library', 'bom-ref': f'npm/{name}', 'name': name, 'version': package['version']}
        component['purl'] = f'pkg:npm/{name.replace("@", "%40")}@{package["version"]}'
        if 'license' in package:
            component['licenses'] = [{'expression': package['license']}]
        yield component


def _compiled_in(packages, arch):
    """Libraries without a shared one: their packages' objects are part of the program."""
    for package, version in packages:
        yield {
            'type': 'library', 'bom-ref': f'static/{package}', 'name': package, 'version': version,
            'purl': f'pkg:deb/debian/{package}@{version.replace("~", "%7E")}?arch={arch}',
            'properties': [{'name': 'linkage', 'value': 'static'}],
        }  # fmt: skip


def write(path, version, epoch, libraries, static, programs, arch):
    components = [_library(item, arch) for item in libraries] + list(_compiled_in(static, arch)) + list(_console())
    seed = json.dumps([version, arch, components], sort_keys=True)
    top = {
        'type': 'application', 'bom-ref': 'glovebox', 'name': 'glovebox', 'version': version,
        'licenses': [{'license': {'id': 'Apache-2.0'}}],
        'components': [{'type': 'file', 'bom-ref': f'file/{p.name}', 'name': p.name, 'hashes': _digest(p)} for p in programs],
    }  # fmt: skip
    document = {
        'bomFormat': 'CycloneDX',
        'specVersion': '1.5',
        'serialNumber': f'urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, seed)}',
        'version': 1,
        'metadata': {'timestamp': epoch.strftime('%Y-%m-%dT%H:%M:%SZ'), 'component': top},
        'components': components,
        'dependencies': [{'ref': 'glovebox', 'dependsOn': [c['bom-ref'] for c in components]}],
    }
    refs = [c['bom-ref'] for c in components]
    assert len(refs) == len(set(refs)) and re.fullmatch(r'\d+\.\d+\.\d+\S*', version)
    path.write_text(json.dumps(document, indent=1) + '\n')
