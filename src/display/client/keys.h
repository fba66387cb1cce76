/*
 * Names of keys, as people and agents write them. No X server is needed: the daemon reads them, the
 * screen gets numbers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Reads keys that are pressed together: "a", "Return", "ctrl+s", "ctrl+shift+Page_Down", "ctrl++".
 * Names are those of X (in whatever case) and the usual short ones (ctrl, alt, shift, super, cmd,
 * enter, esc, del, pageup …); one character stands for itself. Returns how many there are, in ret[0
 * … max-1]; -E2BIG, -EINVAL with *ret_bad the name that means nothing (inside text; may be empty).
 */
int keys_parse(
	const char *text, uint32_t *ret, size_t max, const char **ret_bad, size_t *ret_bad_len);

/*
 * The symbol of a character; the control characters that keys have (line feed, tab, backspace,
 * escape) are those keys. 0: it has none.
 */
uint32_t keys_of_character(uint32_t unicode);
