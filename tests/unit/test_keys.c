/* Names of keys. */
#include <errno.h>
#include <string.h>
#include <xkbcommon/xkbcommon-keysyms.h>

#include "display/client/keys.h"
#include "tap.h"

static int parse(const char *text, uint32_t *keys, const char **bad, size_t *len)
{
	*bad = "";
	*len = 0;
	return keys_parse(text, keys, 3, bad, len);
}

int main(void)
{
	uint32_t k[3];
	const char *bad;
	size_t len;
	OK(parse("a", k, &bad, &len) == 1 && k[0] == 'a');
	OK(parse("A", k, &bad, &len) == 1 && k[0] == 'A');
	OK(parse("Return", k, &bad, &len) == 1 && k[0] == XKB_KEY_Return);
	OK(parse("page_down", k, &bad, &len) == 1 && k[0] == XKB_KEY_Page_Down);
	OK(parse("Ctrl+shift+t", k, &bad, &len) == 3 && k[0] == XKB_KEY_Control_L &&
		k[1] == XKB_KEY_Shift_L && k[2] == 't');
	OK(parse("ctrl++", k, &bad, &len) == 2 && k[1] == '+');
	OK(parse("+", k, &bad, &len) == 1 && k[0] == '+');
	OK(parse("ü", k, &bad, &len) == 1 && k[0] == XKB_KEY_udiaeresis);
	OK(parse("ctrl+Retrun", k, &bad, &len) == -EINVAL && len == 6 &&
		!strncmp(bad, "Retrun", len));
	OK(parse("ctrl+", k, &bad, &len) == -EINVAL && len == 0);
	OK(parse("", k, &bad, &len) == -EINVAL);
	OK(parse("++a", k, &bad, &len) == 2 && k[0] == '+' && k[1] == 'a');
	OK(parse("a+b+c+d", k, &bad, &len) == -E2BIG);
	OK(keys_of_character('\n') == XKB_KEY_Return && keys_of_character('\t') == XKB_KEY_Tab);
	OK(keys_of_character(7) == 0);
	OK(keys_of_character(0x1f600) == 0x0101f600);
	return tap_done();
}
