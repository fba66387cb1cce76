#include "dialects/common/uuid.h"

#include <string.h>

#include "base/text.h"

void uuid_random(char out[37])
{
	static const char digits[] = "0123456789abcdef", letters[] = "abcdefghijklmnopqrstuvwxyz234567";
	char random[33];
	/* Five random bits a letter, of which four are used. */
	text_random_id(random, 32);
	for (int i = 0, n = 0; i < 36; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23)
			out[i] = '-';
		else
			out[i] = digits[(strchr(letters, random[n++]) - letters) & 15];
	}
	out[14] = '4';
	out[19] = "89ab"[(strchr(digits, out[19]) - digits) & 3];
	out[36] = '\0';
}
