/* Profiles: choosing, changing, refusing, files. */
#include "profile/profiles.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "tap.h"

static bool has(const struct profile_choice *c, const char *rule)
{
	for (char **r = c->rules; r && *r; r++)
		if (text_eq(*r, rule))
			return true;
	return false;
}

static struct profile_choice choose(
	const struct profiles *p, const char *profile, char *const *more)
{
	struct error e = { 0 };
	struct profile_choice c = { 0 };
	OK(profiles_choose(p, profile, NULL, more, false, &e, &c) == 0);
	return c;
}

static void test_builtin(void)
{
	struct profile_choice c = choose(NULL, NULL, NULL);
	OK(text_eq(c.name, "python") && !c.rules);
	profile_choice_finish(&c);
	c = choose(NULL, "restrictedpython", NULL);
	OK(c.rules && text_eq(c.rules[0], "base=restrictedpython"));
	profile_choice_finish(&c);
	char *more[] = { (char *)"numpy.*", (char *)"math", NULL };
	c = choose(NULL, "smolagents", more);
	OK(has(&c, "import=numpy.*") && has(&c, "import=unicodedata"));
	unsigned n = 0;
	for (char **r = c.rules; *r; r++)
		n += text_eq(*r, "import=math");
	OK(n == 1);
	profile_choice_finish(&c);
}

/*
 * Each additional import allows what is below it; a profile of one's own comes down to a built-in
 * one.
 */
static void test_below(void)
{
	struct error e = { 0 };
	struct profile_choice c = { 0 };
	char *more[] = { (char *)"numpy", (char *)"pandas.*", (char *)"os.path", NULL };
	OK(profiles_choose(NULL, "smolagents", NULL, more, true, &e, &c) == 0);
	OK(has(&c, "import=numpy.*") && !has(&c, "import=numpy") && has(&c, "import=pandas.*") &&
		has(&c, "import=os.path.*"));
	OK(text_eq(profile_tables[c.table].name, "smolagents"));
	profile_choice_finish(&c);

	c = choose(NULL, "{\"base\":\"restrictedpython\",\"name\":\"mine\"}", NULL);
	OK(text_eq(profile_tables[c.table].name, "restrictedpython") &&
		profile_tables[c.table].permissive);
	profile_choice_finish(&c);
	OK(!profile_find("restricted")->permissive &&
		profile_find("RestrictedPython") == profile_find("restrictedpython"));
}

static void test_objects(void)
{
	struct profile_choice c = choose(NULL,
		"{\"base\":\"smolagents\",\"name\":\"mine\",\"imports\":[\"math\"],\"builtins\":[\"open\"],\"refuse\":[\"sum\"],\"max_operations\":5,"
		"\"final_answer_stops\":false}",
		NULL);
	OK(text_eq(c.name, "mine") && has(&c, "import=math") && !has(&c, "import=re"));
	OK(has(&c, "builtin=open") && has(&c, "refuse=sum") && has(&c, "max_operations=5") &&
		has(&c, "final_answer_stops=0"));
	profile_choice_finish(&c);
	c = choose(NULL, "{\"imports\":[\"math\"]}", NULL);
	OK(text_eq(c.name, "custom") && has(&c, "base=python"));
	profile_choice_finish(&c);
}

static void refused(const struct profiles *p, const char *profile, const char *text)
{
	struct error e = { 0 };
	struct profile_choice c = { 0 };
	OK(profiles_choose(p, profile, NULL, NULL, false, &e, &c) == -EINVAL &&
		strstr(e.text, text));
}

static void test_refusals(void)
{
	struct error e = { 0 };
	struct profile_choice c = { 0 };
	refused(NULL, "smolagent", "there is no profile 'smolagent'");
	OK(profiles_choose(NULL, "smolagent", NULL, NULL, false, &e, &c) < 0 &&
		strstr(e.remedy, "'smolagents'"));
	refused(NULL, "{\"base\":3}", "profile.base");
	refused(NULL, "{\"imports\":\"math\"}", "profile.imports: must be a list");
	refused(NULL, "{\"imports\":[\"a b\"]}", "profile.imports[0]");
	refused(NULL, "{\"import\":[]}", "profile.import: there is no such entry");
	refused(NULL, "{\"max_operations\":-1}", "profile.max_operations");
	refused(NULL, "{\"fresh_namespace\":1}", "profile.fresh_namespace");
	refused(NULL, "{\"base\":", "malformed JSON");
	char *bad[] = { (char *)"a=b", NULL };
	OK(profiles_choose(NULL, NULL, NULL, bad, false, &e, &c) == -EINVAL &&
		strstr(e.text, "additional_imports[0]"));
}

static void put(const char *directory, const char *name, const char *text)
{
	char path[300];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	FILE *f = fopen(path, "w");
	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

static void test_files(void)
{
	char directory[] = "/tmp/gb-profiles-XXXXXX";
	struct error e = { 0 };
	struct profiles *p = NULL;
	OK(mkdtemp(directory) != NULL);
	const char *const list[] = { "/nonexistent", directory, NULL };
	put(directory, "one.json", "{\"base\":\"restricted\",\"additional_imports\":[\"csv\"]}");
	put(directory, "two.ini",
		"# ours\n[profile]\nbase = one\nimports = math, re\nmax_operations = 7\nfinal_answer_stops = yes\n");
	put(directory, "notes.txt", "not a profile");
	OK(profiles_create(list, &e, &p) == 0);
	struct profile_choice c = choose(p, "one", NULL);
	OK(has(&c, "base=restricted") && has(&c, "import=csv"));
	profile_choice_finish(&c);
	c = choose(p, "two", NULL);
	OK(has(&c, "import=re") && !has(&c, "import=csv") && has(&c, "max_operations=7") &&
		has(&c, "final_answer_stops=1"));
	profile_choice_finish(&c);
	profiles_destroy(p);
	put(directory, "two.ini", "base = two\n");
	OK(profiles_create(list, &e, &p) < 0 && strstr(e.text, "built on itself"));
	put(directory, "two.ini", "no setting\n");
	OK(profiles_create(list, &e, &p) < 0 && strstr(e.text, "two.ini line 1"));
	static const char *const names[] = { "one.json", "two.ini", "notes.txt" };
	for (int i = 0; i < 3; i++) {
		char path[300];
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
	rmdir(directory);
}

int main(void)
{
	test_builtin();
	test_below();
	test_objects();
	test_refusals();
	test_files();
	return tap_done();
}
