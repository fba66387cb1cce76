#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *e, int err, const char *fmt, ...)
{
	if (!e)
		return err;
	va_list ap;
	*e = (struct error){ .err = err };
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return err;
}

int error_set_errno(struct error *e, int err, const char *fmt, ...)
{
	if (!e)
		return err;
	va_list ap;
	*e = (struct error){ .err = err };
	va_start(ap, fmt);
	int n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(e->text))
		snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s",
			strerror(err < 0 ? -err : err));
	return err;
}

int error_slug(struct error *e, const char *slug)
{
	if (!e)
		return -EINVAL;
	snprintf(e->slug, sizeof(e->slug), "%s", slug);
	return e->err;
}

int error_remedy(struct error *e, const char *fmt, ...)
{
	if (!e)
		return -EINVAL;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(e->remedy, sizeof(e->remedy), fmt, ap);
	va_end(ap);
	return e->err;
}

int error_wrap(struct error *e, const char *fmt, ...)
{
	if (!e)
		return -EINVAL;
	char old[ERROR_TEXT_MAX];
	va_list ap;
	memcpy(old, e->text, sizeof(old));
	va_start(ap, fmt);
	int n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(e->text))
		snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", old);
	return e->err;
}
