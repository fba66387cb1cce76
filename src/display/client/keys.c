#include "display/client/keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <xkbcommon/xkbcommon.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/utf8.h"

enum { NAME_MAX_BYTES = 40 };

static const struct {
	const char *name;
	xkb_keysym_t symbol;
} aliases[] = {
	{ "ctrl", XKB_KEY_Control_L },
	{ "control", XKB_KEY_Control_L },
	{ "alt", XKB_KEY_Alt_L },
	{ "option", XKB_KEY_Alt_L },
	{ "shift", XKB_KEY_Shift_L },
	{ "super", XKB_KEY_Super_L },
	{ "meta", XKB_KEY_Super_L },
	{ "win", XKB_KEY_Super_L },
	{ "windows", XKB_KEY_Super_L },
	{ "cmd", XKB_KEY_Super_L },
	{ "command", XKB_KEY_Super_L },
	{ "altgr", XKB_KEY_ISO_Level3_Shift },
	{ "enter", XKB_KEY_Return },
	{ "esc", XKB_KEY_Escape },
	{ "del", XKB_KEY_Delete },
	{ "ins", XKB_KEY_Insert },
	{ "pageup", XKB_KEY_Page_Up },
	{ "pgup", XKB_KEY_Page_Up },
	{ "pagedown", XKB_KEY_Page_Down },
	{ "pgdn", XKB_KEY_Page_Down },
	{ "arrowup", XKB_KEY_Up },
	{ "arrowdown", XKB_KEY_Down },
	{ "arrowleft", XKB_KEY_Left },
	{ "arrowright", XKB_KEY_Right },
	{ "capslock", XKB_KEY_Caps_Lock },
	{ "spacebar", XKB_KEY_space },
	{ "plus", XKB_KEY_plus },
	{ "minus", XKB_KEY_minus },
};

static uint32_t decode(const unsigned char *s, size_t len)
{
	uint32_t u = len == 1 ? s[0] : s[0] & (0x7fU >> len);
	for (size_t i = 1; i < len; i++)
		u = u << 6 | (s[i] & 0x3f);
	return u;
}

uint32_t keys_of_character(uint32_t unicode)
{
	switch (unicode) {
	case '\n':
	case '\r':
		return XKB_KEY_Return;
	case '\t':
		return XKB_KEY_Tab;
	case '\b':
		return XKB_KEY_BackSpace;
	case 27:
		return XKB_KEY_Escape;
	default:
		return unicode < 32 || unicode == 127 ? 0 : xkb_utf32_to_keysym(unicode);
	}
}

static uint32_t parse_one(const char *name, size_t len)
{
	char text[NAME_MAX_BYTES];
	size_t first;

	if (len && utf8_step((const unsigned char *)name, len, &first) == UTF8_VALID &&
		first == len)
		return keys_of_character(decode((const unsigned char *)name, len));
	if (!len || len >= sizeof(text))
		return 0;
	memcpy(text, name, len);
	text[len] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
		if (!strcasecmp(aliases[i].name, text))
			return aliases[i].symbol;
	xkb_keysym_t exact = xkb_keysym_from_name(text, XKB_KEYSYM_NO_FLAGS);
	return exact ? exact : xkb_keysym_from_name(text, XKB_KEYSYM_CASE_INSENSITIVE);
}

int keys_parse(
	const char *text, uint32_t *ret, size_t max, const char **ret_bad, size_t *ret_bad_len)
{
	size_t n = 0;
	for (const char *at = text;;) {
		/*
		 * A '+' at the start of a name is that key; the one behind a name parts it from the
		 * next.
		 */
		size_t len = *at == '+' ? 1 : strcspn(at, "+");
		uint32_t symbol = parse_one(at, len);
		if (!symbol) {
			*ret_bad = at;
			*ret_bad_len = len;
			return -EINVAL;
		}
		if (n == max)
			return -E2BIG;
		ret[n++] = symbol;
		at += len;
		if (!*at)
			return (int)n;
		if (*at != '+') {
			*ret_bad = at;
			*ret_bad_len = strlen(at);
			return -EINVAL;
		}
		at++;
	}
}
