# Fish completion for glovebox: verbs, flags, and the ids and names of live sessions. Texts come from the program's own help.

function __glovebox_verbs
    glovebox --help 2>/dev/null | string replace -r -f '^  ([a-z]{2,}) +(.*)' '$1\t$2'
end

function __glovebox_verb
    set -l words (commandline -opc)
    test (count $words) -ge 2; and echo $words[2]
end

function __glovebox_flags
    set -l verb (__glovebox_verb)
    glovebox $verb --help 2>/dev/null | string replace -r -f '^  (?:-[a-zA-Z], |    )(--[a-z][a-z-]*)(?: [A-Z]\S*)? +(.*)' '$1\t$2'
end

function __glovebox_takes_session
    contains -- (__glovebox_verb) kill logs pause resume exec attach open ports checkpoint rollback fork tree
end

complete -c glovebox -f -n 'test -z (__glovebox_verb)' -a '(__glovebox_verbs)'
complete -c glovebox -f -n __glovebox_takes_session -a '(glovebox ps --quiet 2>/dev/null)'
complete -c glovebox -n 'test (__glovebox_verb) = cp' -a '(glovebox ps --quiet 2>/dev/null | string replace -r "\$" ":")'
complete -c glovebox -f -n 'test (__glovebox_verb) = packages' -a 'list add warm remove check gc'
complete -c glovebox -n 'test -n (__glovebox_verb); and string match -q -- "-*" (commandline -ct)' -a '(__glovebox_flags)'
