#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/guard.h"
#include "api/logged_target.h"
#include "tap.h"

static int host(const struct guard *g, const char *h)
{
	struct error e;
	return guard_host(g, h, &e);
}

static void hosts(void)
{
	char *names[] = { (char *)"box.example", (char *)"10.1.2.3", (char *)"fd00::1", NULL };
	char *any[] = { (char *)"0.0.0.0", NULL }, *all[] = { (char *)"*", NULL };
	struct guard g;
	struct error e = { 0 };
	OK(guard_init(&g, NULL, NULL, NULL, &e) == 0);
	OK(host(&g, "localhost") == 0 && host(&g, "LOCALHOST:8000") == 0);
	OK(host(&g, "127.0.0.1:8000") == 0 && host(&g, "127.9.9.9") == 0);
	OK(host(&g, "[::1]:8000") == 0 && host(&g, "[::1]") == 0);
	OK(host(&g, "evil.example") == -EPERM && host(&g, "localhost.evil.example") == -EPERM);
	OK(host(&g, "127.0.0.1.evil.example:8000") == -EPERM && host(&g, "10.1.2.3") == -EPERM);
	OK(host(&g, "") == -EPERM && host(&g, ":8000") == -EPERM && host(&g, "[::1") == -EPERM &&
		host(&g, "[]") == -EPERM);
	OK(host(&g, "127.0.0.1:8000.evil.example") == -EPERM && host(&g, "localhost:x") == -EPERM &&
		host(&g, "[::1].evil.example") == -EPERM);
	OK(host(&g, "0.0.0.0:8000") == -EPERM && host(&g, "[::]") == -EPERM &&
		host(&g, "x") == -EPERM);
	guard_host(&g, "x", &e);
	OK_STR(e.slug, "host_not_allowed");
	guard_finish(&g);
	OK(guard_init(&g, names, NULL, NULL, &e) == 0);
	OK(host(&g, "box.example:1") == 0 && host(&g, "BOX.example") == 0 &&
		host(&g, "10.1.2.3:8000") == 0);
	OK(host(&g, "[fd00::1]:8000") == 0);
	OK(host(&g, "10.1.2.4") == -EPERM && host(&g, "ox.example") == -EPERM);
	guard_finish(&g);
	OK(guard_init(&g, any, NULL, NULL, &e) == 0);
	OK(host(&g, "192.168.1.7:8000") == 0 && host(&g, "[fe80::1]") == 0 &&
		host(&g, "evil.example") == -EPERM);
	guard_finish(&g);
	OK(guard_init(&g, all, NULL, NULL, &e) == 0);
	OK(host(&g, "evil.example") == 0);
	guard_finish(&g);
}

static int origin(const struct guard *g, const char *o, const char *site)
{
	struct error e;
	bool foreign;
	return guard_origin(g, "127.0.0.1:8000", o, site, &e, &foreign);
}

static void origins(void)
{
	char *allowed[] = { (char *)"https://console.example", NULL };
	struct guard g;
	struct error e = { 0 };
	bool foreign = false;
	OK(guard_init(&g, NULL, NULL, NULL, &e) == 0);
	OK(origin(&g, NULL, NULL) == 0 && origin(&g, NULL, "none") == 0 &&
		origin(&g, NULL, "same-origin") == 0);
	OK(origin(&g, NULL, "cross-site") == -EPERM && origin(&g, NULL, "same-site") == -EPERM);
	OK(origin(&g, "http://127.0.0.1:8000", NULL) == 0 &&
		origin(&g, "http://127.0.0.1:8000", "same-origin") == 0);
	OK(origin(&g, "http://127.0.0.1:8000", "cross-site") == -EPERM);
	OK(origin(&g, "https://127.0.0.1:8000", NULL) == -EPERM &&
		origin(&g, "http://127.0.0.1", NULL) == -EPERM);
	OK(origin(&g, "http://localhost:8000", NULL) == -EPERM &&
		origin(&g, "null", NULL) == -EPERM);
	OK(origin(&g, "", NULL) == -EPERM &&
		origin(&g, "http://127.0.0.1:8000.evil", NULL) == -EPERM);
	guard_finish(&g);
	OK(guard_init(&g, NULL, allowed, NULL, &e) == 0);
	OK(guard_origin(&g, "127.0.0.1:8000", "https://console.example", "cross-site", &e,
		   &foreign) == 0 &&
		foreign);
	OK(origin(&g, "https://console.example.evil", NULL) == -EPERM);
	OK(guard_origin(&g, "127.0.0.1:8000", "http://127.0.0.1:8000", NULL, &e, &foreign) == 0 &&
		!foreign);
	guard_finish(&g);
}

static void tokens(void)
{
	char *two[] = { (char *)"token-a", (char *)"token-b", NULL };
	char *empty[] = { (char *)"", NULL }, *spaced[] = { (char *)"a b", NULL };
	struct guard g;
	struct error e = { 0 };
	uint64_t owner = 99;
	OK(guard_init(&g, NULL, NULL, NULL, &e) == 0);
	OK(guard_token(&g, NULL, &e, &owner) == 0 && owner == 0);
	OK(guard_token(&g, "Bearer whatever", &e, &owner) == 0 && owner == 0);
	guard_finish(&g);
	OK(guard_init(&g, NULL, NULL, two, &e) == 0);
	OK(guard_token(&g, "Bearer token-a", &e, &owner) == 0 && owner == 1);
	OK(guard_token(&g, "bearer  token-b", &e, &owner) == 0 && owner == 2);
	owner = 99;
	static const char *const wrong[] = { NULL, "", "Bearer", "Bearer ", "Basic token-a",
		"Bearer token-", "Bearer token-aa", "Bearertoken-a", "token-a", "Bearer token-a ",
		"Bearer TOKEN-A" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		OK(guard_token(&g, wrong[i], &e, &owner) == -EACCES && owner == 99);
	OK_STR(e.slug, "unauthorized");
	OK(!strstr(e.text, "token-a") && !strstr(e.remedy, "token-a"));
	guard_finish(&g);
	OK(guard_init(&g, NULL, NULL, empty, &e) == -EINVAL);
	guard_finish(&g);
	OK(guard_init(&g, NULL, NULL, spaced, &e) == -EINVAL);
	guard_finish(&g);
}

static void logged(void)
{
	char buf[LIMIT_LOGGED_TARGET_BYTES], longest[2 * LIMIT_LOGGED_TARGET_BYTES];
	OK_STR(logged_target("/a", buf), "/a");
	OK_STR(logged_target("/token=1?", buf), "/token=1?");
	OK_STR(logged_target("/a?token=s&b=1&token=t&key=u", buf), "/a?token=…&b=1&token=…&key=…");
	OK_STR(logged_target("/a?xtoken=1&token=s", buf), "/a?xtoken=1&token=…");
	OK_STR(logged_target("/a?tokens=1&glovebox_key=s&key", buf),
		"/a?tokens=1&glovebox_key=…&key");
	OK_STR(logged_target("/a?%74oken=s&k%65y=s&%zz=1", buf), "/a?%74oken=…&k%65y=…&%zz=1");
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "/?token=", 8);
	longest[sizeof(longest) - 1] = '\0';
	OK_STR(logged_target(longest, buf), "/?token=…");
	memcpy(longest, "/?taken=", 8);
	OK(strlen(logged_target(longest, buf)) == LIMIT_LOGGED_TARGET_BYTES - 1);
	OK(!memcmp(buf, longest, LIMIT_LOGGED_TARGET_BYTES - 4));
	OK_STR(buf + LIMIT_LOGGED_TARGET_BYTES - 4, "…");
}

int main(void)
{
	logged();
	hosts();
	origins();
	tokens();
	return tap_done();
}
