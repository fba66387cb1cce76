# Bash completion for glovebox: verbs, flags, and the ids and names of live sessions.

# The words behind `--` in a verb's own help, so that this file never falls behind the program.
_glovebox_flags() {
	"$1" "$2" --help 2>/dev/null | grep -oE '(^|[ ,])(--[a-z][a-z-]*|-[a-zA-Z])\b' | tr -d ' ,' | sort -u
}

_glovebox_verbs() {
	"$1" --help 2>/dev/null | sed -n 's/^  \([a-z]\{2,\}\) .*/\1/p'
}

# Ids and names of the server's sessions, from the --url and --token on the line; silent when no server answers.
_glovebox_sessions() {
	local i extra=()
	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-u | --url | --token) extra+=("${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}") ;;
		esac
	done
	"$1" ps --quiet "${extra[@]}" 2>/dev/null
}

_glovebox() {
	local program=${COMP_WORDS[0]} verb=${COMP_WORDS[1]} current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_glovebox_verbs "$program") help --help --version" -- "$current")
		return
	fi
	case $previous in
	--config | -c | --token-file | --state-dir | --stdin)
		[ "$verb$previous" = run-c ] || mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	--log-level)
		mapfile -t COMPREPLY < <(compgen -W "debug info warning error none" -- "$current")
		return
		;;
	--exec)
		mapfile -t COMPREPLY < <(compgen -W "system none any" -- "$current")
		return
		;;
	--network | --default-network)
		mapfile -t COMPREPLY < <(compgen -W "none loopback" -- "$current")
		return
		;;
	--stream | -s)
		mapfile -t COMPREPLY < <(compgen -W "all stdout stderr" -- "$current")
		return
		;;
	esac
	if [[ $current == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_glovebox_flags "$program" "$verb")" -- "$current")
		return
	fi
	case $verb in
	fleet) mapfile -t COMPREPLY < <(compgen -W "haproxy" -- "$current") ;;
	packages) mapfile -t COMPREPLY < <(compgen -W "list add warm remove check gc" -- "$current") ;;
	cp) mapfile -t COMPREPLY < <(compgen -f -W "$(_glovebox_sessions "$program" | sed 's/$/:/')" -- "$current") ;;
	run) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
	kill | pause | resume | exec | attach | open | ports | logs | checkpoint | rollback | fork | tree) mapfile -t COMPREPLY < <(compgen -W "$(_glovebox_sessions "$program")" -- "$current") ;;
	help) mapfile -t COMPREPLY < <(compgen -W "$(_glovebox_verbs "$program")" -- "$current") ;;
	esac
}

complete -o filenames -o bashdefault -F _glovebox glovebox
