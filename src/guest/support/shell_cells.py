"""`%%shell`: a cell of bash that goes on where the last one ended: in its directory, with its variables, functions, aliases and options.

Each cell is a bash of its own. What is to go on is a script that bash writes when it exits and reads when it starts. The script is kept here, so a
rollback, a fork or a snapshot of the interpreter has the shell's state too."""

_shell_state = ''
_MAX_SHELL_STATE = 4 << 20  # bytes; a larger one is not kept

# Variables that bash sets itself, and those that came from the environment of the cell and were not changed, are left out.
_SHELL_RUNNER = r"""
declare -A __glovebox_env
while IFS= read -r -d '' __glovebox_pair; do
  __glovebox_env["${__glovebox_pair%%=*}"]=${__glovebox_pair#*=}
done < /proc/self/environ
__glovebox_save() {
  local status=$1 name IFS=$' \t\n'
  set +eu
  {
    for name in $(compgen -v); do
      case $name in
        BASH*|__glovebox*|_|COMP_*|DIRSTACK|EPOCH*|EUID|FUNCNAME|GROUPS|HISTCMD|HOSTNAME|HOSTTYPE|IFS|LINENO|MACHTYPE|OPT*|\
        OSTYPE|PIPESTATUS|PPID|PS4|PWD|OLDPWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|TERM|UID|status|name) continue ;;
      esac
      [[ ${__glovebox_env[$name]+set} && ${__glovebox_env[$name]} == "${!name}" ]] && continue
      declare -p "$name"
    done
    unset -f __glovebox_save
    declare -f
    alias -p
    shopt -p
    printf 'cd -- %q\n' "$PWD"
    printf '%s\n' "$__glovebox_options"
  } > "$__glovebox_out" 2> /dev/null
  exit "$status"
}
trap '__glovebox_status=$? __glovebox_options=$(set +o); __glovebox_save "$__glovebox_status"' EXIT
source "$__glovebox_in" 2> /dev/null
shopt -s expand_aliases
source "$__glovebox_code"
"""


def _shell_cell(line, body, space, above, filename):
    import os
    import subprocess
    import tempfile

    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix='.shell-') as folder:
        paths = {name: os.path.join(folder, name) for name in ('in', 'code', 'out')}
        for name, text in (('in', _shell_state), ('code', body)):
            with open(paths[name], 'w', encoding='utf-8', errors='surrogateescape') as file:
                file.write(text)
        names = ''.join(f"__glovebox_{name}='{path}'\n" for name, path in paths.items())
        code = subprocess.call(['/bin/bash', '--norc', '-c', names + _SHELL_RUNNER, 'bash'])
        _keep_shell_state(paths['out'])
    space['_exit_code'] = code
    if code:
        raise subprocess.CalledProcessError(code, 'bash')


def _keep_shell_state(path):
    """What bash left; nothing when it was killed, and then the state of before stays."""
    global _shell_state
    try:
        with open(path, encoding='utf-8', errors='surrogateescape') as file:
            text = file.read(_MAX_SHELL_STATE + 1)
    except OSError:
        return
    if len(text) > _MAX_SHELL_STATE:
        sys.stderr.write(f'The variables of the shell are larger than {_MAX_SHELL_STATE:,} bytes and are not kept.\n')
    else:
        _shell_state = text
