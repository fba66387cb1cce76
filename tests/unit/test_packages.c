/* Names, requirements, plans, what the installer may reach, and the store. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/text.h"
#include "packages/claims.h"
#include "packages/index_hosts.h"
#include "packages/names.h"
#include "packages/packages.h"
#include "packages/plan.h"
#include "packages/requirement.h"
#include "packages/set_store.h"
#include "tap.h"
#include "json/json_read.h"

/* ---- hashes --------------------------------------------------------------------- */

static void hashes(void)
{
	char hex[SHA256_HEX + 1];
	struct sha256 s;
	sha256_init(&s);
	sha256_end(&s, hex);
	OK_STR(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	sha256_init(&s);
	sha256_add(&s, "abc", 3);
	sha256_end(&s, hex);
	OK_STR(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	/* A million letters, in pieces that do not fit the blocks. */
	char piece[97];
	memset(piece, 'a', sizeof(piece));
	sha256_init(&s);
	for (size_t left = 1000000, n; left; left -= n) {
		n = left < sizeof(piece) ? left : sizeof(piece);
		sha256_add(&s, piece, n);
	}
	sha256_end(&s, hex);
	OK_STR(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* ---- names ------------------------------------------------------------------------- */

/* In place, with what stands behind the first dot; the rest of the list stays. */
static void corrections(void)
{
	char *list[] = { strdup("dataclass"), strdup("numpy"), strdup("httplib"), strdup("plt.*"),
		strdup("os.path"), strdup("*"), strdup(""), NULL };
	OK(names_correct_imports(list) == 0);
	OK_STR(list[0], "dataclasses");
	OK_STR(list[1], "numpy");
	OK_STR(list[2], "http.client");
	OK_STR(list[3], "matplotlib.*");
	OK_STR(list[4], "os.path");
	OK_STR(list[5], "*");
	OK(names_correct_imports(NULL) == 0);
	for (char **name = list; *name; name++)
		free(*name);
}

static void words(void)
{
	const char *stdlib[] = { "dataclasses", "statistics", "_thread", NULL };
	OK_STR(names_package_of("PIL"), "pillow");
	OK_STR(names_package_of("cv2"), "opencv-python");
	OK_STR(names_package_of("sklearn"), "scikit-learn");
	OK_STR(names_package_of("yaml"), "pyyaml");
	OK_STR(names_package_of("bs4"), "beautifulsoup4");
	OK(!names_package_of("numpy"));
	OK_STR(names_slip("dataclass"), "dataclasses");
	OK(!names_slip("dataclasses"));
	OK_STR(names_slip("httplib"), "http.client");
	OK(names_was_stdlib("distutils") && !names_was_stdlib("numpy"));
	OK(names_known("Scikit_Learn") && names_known("numpy") && !names_known("numpay"));
	OK_STR(names_suggest("numpay", NULL), "numpy");
	OK_STR(names_suggest("statistcs", stdlib), "statistics");
	OK(!names_suggest("my_own_package", stdlib));
	OK(!names_suggest("xyz", stdlib)); /* too short for a guess */
}

static void requirements(void)
{
	struct requirement q;
	struct error e = { 0 };
	OK(requirement_parse("Typing_Extensions", &q, &e) == 0 &&
		text_eq(q.name, "typing-extensions") && q.plain);
	OK(requirement_parse(" pandas >=2, <3 ", &q, &e) == 0 && text_eq(q.name, "pandas") &&
		!q.plain);
	OK(requirement_parse("uvicorn[standard, x]==0.30.1", &q, &e) == 0 &&
		text_eq(q.text, "uvicorn[standard, x]==0.30.1"));
	OK(requirement_parse("x; python_version < '3.12'", &q, &e) == 0);
	OK(requirement_parse("x==1 --hash=sha256:"
			     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		   &q, &e) == 0 &&
		q.hashed);
	static const char *const wrong[] = { "", " ", "-r file", "--pre", "./x", "/x", "~x",
		"x @ http://h/", "git+https://h/x", "http://h/x.whl", "x==", "x[", "x[]",
		"x ==1 --hash=md5:00", "x==1 --hash=sha256:12", "x\ny", "x==1 -r y", "x $(id)",
		"\xc3\xa4", "a/b" };
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		e = (struct error){ 0 };
		OK(requirement_parse(wrong[i], &q, &e) == -EINVAL &&
			text_eq(e.slug, "invalid_package") && *e.remedy);
	}
	OK(requirement_matches("gb*", "gbpure") &&
		requirement_matches("Typing_Extensions", "typing-extensions"));
	OK(!requirement_matches("gb", "gbpure") && requirement_matches("*", "x"));
}

/* ---- plans ---------------------------------------------------------------------------- */

static json_t *json(const char *text)
{
	json_t *tree = NULL;
	return json_read(text, strlen(text), NULL, &tree) == 0 ? tree : NULL;
}

static size_t count(const json_t *report, const char *list)
{
	return json_array_size(json_object_get(report, list));
}

static void plans(void)
{
	struct error e = { 0 };
	struct plan p;
	json_t *survey = json(
		"{\"stdlib\":[\"dataclasses\",\"json\",\"tkinter\"],\"dists\":{\"pillow\":\"9.4.0\",\"pandas\":\"1.5.3\"},"
		"\"modules\":{\"PIL\":\"pillow\"}}");
	json_t *settings = json("{\"allow\":[],\"deny\":[\"evil*\"]}"),
	       *strict = json("{\"require_hashes\":true}"), *none = json("[]");
	json_t *imports = json(
		       "[\"PIL.Image\",\"dataclass\",\"tkinter\",\"my_pkg.sub\",\"numpay\",\"*\"]"),
	       *packages = json("[\"pandas\",\"pandas>=2\",\"yaml\"]"),
	       *denied = json("[\"Evil_Twin\"]");
	json_t *modules = plan_modules(packages, imports);
	OK(json_array_size(modules) == 5 &&
		text_eq(json_string_value(json_array_get(modules, 1)), "dataclasses"));
	json_decref(modules);
	OK(plan_make(packages, imports, survey, settings, &e, &p) == 0);
	OK(count(p.report, "stdlib") == 2 && count(p.report, "present") == 2 &&
		count(p.report, "failed") == 1);
	OK(count(p.report, "corrected") == 2);    /* dataclass, yaml */
	OK(json_array_size(p.requirements) == 3); /* pandas>=2, pyyaml, my-pkg */
	OK_STR(json_string_value(json_object_get(json_array_get(p.requirements, 2), "text")),
		"my-pkg");
	OK(plan_fail(&p, "my-pkg", "it is not there") && !p.failed &&
		count(p.report, "failed") == 2);
	OK(!plan_fail(&p, "my-pkg", "again"));
	json_t *installed = json(
		"{\"packages\":[{\"name\":\"pandas\",\"version\":\"2.1\",\"requested\":true}],\"dists\":{\"pyyaml\":\"6.0\"}}");
	OK(plan_installed(&p, installed, settings, &e) == 0 && count(p.report, "installed") == 1 &&
		count(p.report, "present") == 3);
	OK(plan_fail(&p, "pandas", "no") && p.failed);
	json_t *smuggled = json("{\"packages\":[{\"name\":\"evil-twin\",\"version\":\"1\"}]}");
	OK(plan_installed(&p, smuggled, settings, &e) == -EPERM &&
		text_eq(e.slug, "package_refused"));
	plan_finish(&p);
	OK(plan_make(denied, none, survey, settings, &e, &p) == -EPERM &&
		text_eq(e.slug, "package_refused"));
	OK(plan_make(packages, none, survey, strict, &e, &p) == -EPERM &&
		strstr(e.remedy, "--hash"));
	json_t *all[] = { survey, settings, strict, none, imports, packages, denied, installed,
		smuggled };
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		json_decref(all[i]);
}

static bool reaches(const char *settings, const char *expected)
{
	json_t *tree = json(settings), *rules = NULL;
	char text[512] = "";
	struct error e = { 0 };
	bool same = reach_rules(tree, &e, &rules) == 0;
	for (size_t i = 0; same && i < json_array_size(rules); i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
			json_string_value(json_array_get(rules, i)));
	json_decref(tree);
	json_decref(rules);
	return same ? text_eq(text, expected) : !expected;
}

static void reach(void)
{
	OK(reaches("{}", "pypi.org:443 files.pythonhosted.org:443"));
	OK(reaches("{\"index\":\"http://127.0.0.1:8080/simple\"}", "127.0.0.1:8080"));
	OK(reaches(
		"{\"index\":\"https://me:word@index.example/simple\",\"extra_index\":[\"http://other\"]}",
		"index.example:443 other:80"));
	OK(reaches("{\"index\":\"http://[::1]:99/\",\"hosts\":[\"files.example\",\"f:81\"]}",
		"[::1]:99 files.example:443 f:81"));
	OK(reaches("{\"offline\":true,\"find_links\":[\"/wheels\"]}", ""));
	OK(reaches("{\"proxy\":\"http://proxy:3128\",\"index\":\"https://x/\"}", "proxy:3128"));
	OK(reaches("{\"index\":\"file:///etc\"}", NULL) &&
		reaches("{\"index\":\"http://\"}", NULL));
}

/* ---- the store --------------------------------------------------------------------------- */

static void put(int dir, const char *name, const char *text)
{
	_cleanup_fd_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || fd_write_full(fd, text, strlen(text)) < 0)
		perror(name);
}

/* A directory as an installation leaves it; the caller closes it. */
static int made_tree(const char *base, const char *name, const char *content)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s", base, name);
	mkdir(path, 0755);
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	mkdirat(dir, "pkg", 0755);
	put(dir, "pkg/__init__.py", content);
	put(dir, "pkg/shared.txt", "the same everywhere");
	return dir;
}

static int take_in(struct store *s, int dir, uint64_t max, char id[STORE_ID_LEN + 1], bool *found)
{
	struct store_intake *i = NULL;
	struct error e = { 0 };
	int r = store_intake_begin(s, max, &e, &i);
	if (r == 0)
		r = store_intake_tree(i, dir, &e);
	if (r == 0)
		r = store_intake_commit(i, "pkg 1.0 abc\n", "\"packages\":[]", &e, id, found);
	store_intake_finish(i);
	return r;
}

static ino_t inode_of(const char *base, const char *id, const char *file)
{
	char path[512];
	struct stat st;
	snprintf(path, sizeof(path), "%s/packages/tree/%s/%s", base, id, file);
	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

static void damage(const char *base, const char *id)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/packages/tree/%s/pkg/__init__.py", base, id);
	chmod(path, 0644);
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "x", 1) != 1)
		perror(path);
}

static void using(const char *base, struct store *s, const char *one, const char *two)
{
	struct error e = { 0 };
	struct store_garbage g;
	struct store_list list;
	_cleanup_free_ char *record = NULL;
	size_t len;
	int hold = -1;
	OK(store_check(s, one, false, &e) == 0 && store_check(s, one, true, &e) == 0);
	OK(store_set_hold(s, one, &hold, &record, &len) == 0 && strstr(record, one));
	OK(store_remove(s, one, &e) == -EBUSY);
	/* two is gone, what they share is not */
	OK(store_collect(s, 1e-9, 0, &e, &g) == 0 && g.sets == 1 && g.busy == 1 && g.objects == 1);
	OK(inode_of(base, one, "pkg/shared.txt") && !inode_of(base, two, "pkg/shared.txt"));
	fd_close(hold);
	OK(store_list(s, &list) == 0 && list.n == 1 && text_eq(list.sets[0].id, one) &&
		list.sets[0].files == 2);
	store_list_finish(&list);
	damage(base, one);
	OK(store_check(s, one, false, &e) == -EUCLEAN && text_eq(e.slug, "store_damaged") &&
		strstr(e.text, "pkg/__init__.py"));
	OK(store_remove(s, one, &e) == 0 && store_remove(s, one, &e) == -ENOENT &&
		store_check(s, "../../etc", false, &e) < 0);
}

static void refusals(const char *base, struct store *s)
{
	char id[STORE_ID_LEN + 1];
	bool found;
	_cleanup_fd_ int dir = made_tree(base, "bad", "x");
	OK(take_in(s, dir, 5, id, &found) == -EFBIG);
	OK(symlinkat("/etc/passwd", dir, "link") == 0 && take_in(s, dir, 0, id, &found) == -EINVAL);
	OK(unlinkat(dir, "link", 0) == 0 && mkfifoat(dir, "pipe", 0644) == 0 &&
		take_in(s, dir, 0, id, &found) == -EINVAL);
	OK(unlinkat(dir, "pipe", 0) == 0);
	put(dir, "a\nb", "");
	OK(take_in(s, dir, 0, id, &found) == -EINVAL);
	OK(unlinkat(dir, "a\nb", 0) == 0 && take_in(s, dir, 0, id, &found) == 0);
}

static void stores(void)
{
	char base[] = "/tmp/glovebox-store-XXXXXX", one[STORE_ID_LEN + 1], two[STORE_ID_LEN + 1],
	     again[STORE_ID_LEN + 1], command[128];
	struct error e = { 0 };
	struct store *s = NULL;
	bool found;
	OK(mkdtemp(base) && store_open(base, &e, &s) == 0);
	_cleanup_fd_ int first = made_tree(base, "first", "a = 1\n"),
			 second = made_tree(base, "second", "a = 2\n");
	OK(take_in(s, first, 0, one, &found) == 0 && !found);
	OK(take_in(s, second, 0, two, &found) == 0 && !found && !text_eq(one, two));
	OK(take_in(s, first, 0, again, &found) == 0 && found && text_eq(one, again));
	OK(inode_of(base, one, "pkg/shared.txt") == inode_of(base, two, "pkg/shared.txt"));
	OK(inode_of(base, one, "pkg/__init__.py") != inode_of(base, two, "pkg/__init__.py"));
	using(base, s, one, two);
	refusals(base, s);
	struct stat st;
	OK(stat(store_tree(s), &st) == 0 && (st.st_mode & 0777) == 0311);
	store_close(s);
	snprintf(command, sizeof(command), "%s", base);
	pid_t pid = fork();
	if (pid == 0) {
		execl("/bin/rm", "rm", "-rf", command, NULL);
		_exit(1);
	}
}

/*
 * The key of a request: order and repetition do not matter, where packages come from does, building
 * does not.
 */
static void keys(void)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(REQUEST_BYTES_MAX);
	struct request_keys key[5];
	char *ab[] = { (char *)"a", (char *)"b", NULL },
	     *bab[] = { (char *)"b", (char *)"a", (char *)"b", NULL };
	struct packages_settings plain = { .timeout_s = 1 },
				 other = { .index = (char *)"http://x/", .timeout_s = 1 };
	struct error e = { 0 };
	OK(packages_request_write(&plain, "/s", &(struct packages_request){ .packages = ab }, &e,
		   &b, &key[0]) == 0);
	b.len = 0;
	OK(packages_request_write(&plain, "/s",
		   &(struct packages_request){ .packages = bab, .build = true }, &e, &b,
		   &key[1]) == 0);
	b.len = 0;
	OK(packages_request_write(&other, "/s", &(struct packages_request){ .packages = ab }, &e,
		   &b, &key[2]) == 0);
	b.len = 0;
	OK(packages_request_write(&plain, "/s", &(struct packages_request){ .imports = ab }, &e, &b,
		   &key[3]) == 0);
	b.len = 0;
	OK(packages_request_write(&plain, "/s",
		   &(struct packages_request){ .packages = ab, .client = "x" }, &e, &b,
		   &key[4]) == 0);
	OK_STR(key[0].shared, key[1].shared);
	OK(!text_eq(key[0].shared, key[2].shared) && !text_eq(key[0].shared, key[3].shared));
	OK(!*key[0].own && text_eq(key[4].shared, key[0].shared) && *key[4].own &&
		!text_eq(key[4].own, key[4].shared));
}

/* What a hostile build may say in the installer's name. */
static int claimed(const char *text, json_t **ret, bool *source)
{
	struct error e = { 0 };
	_cleanup_json_ json_t *said = json_loads(text, 0, NULL),
			      *dists = json_pack("{s:s}", "here", "0.9");
	json_t *checked = NULL;
	int r = claims_resolved(said, dists, &e, &checked, source);
	if (ret && r == 0)
		*ret = checked;
	else
		json_decref(checked);
	return r;
}

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ITEM(name, url, hash)                                                               \
	"{\"name\":\"" name "\",\"version\":\"1.0\",\"url\":\"" url "\",\"sha256\":\"" hash \
	"\",\"shared\":\"x\"}"
#define LIST(items) "{\"by\":\"pip\",\"packages\":[" items "]}"

static void claims(void)
{
	_cleanup_json_ json_t *one = NULL, *two = NULL;
	bool source;
	OK(claimed(LIST(ITEM("Here", "http://x/here-1.0-py3-none-any.whl", HASH) "," ITEM(
			   "b", "https://x/b.whl?a=1", HASH)),
		   &one, &source) == 0 &&
		!source);
	OK(claimed(LIST(ITEM("b", "https://x/b.whl?a=1", HASH) "," ITEM(
			   "here", "file:///wheels0/here.whl", HASH)),
		   &two, &source) == 0);
	const json_t *item = json_array_get(json_object_get(one, "packages"), 0);
	OK_STR(json_string_value(json_object_get(item, "name")), "here");
	OK_STR(json_string_value(json_object_get(item, "replaces")), "0.9");
	/* members that the store's records have are not passed on */
	OK(!json_object_get(item, "shared"));
	_cleanup_free_ char *first = claims_identity(json_object_get(one, "packages")),
			    *second = claims_identity(json_object_get(two, "packages"));
	OK_STR(first, second);
	static const char *const sources[] = { "http://x/a.tar.gz", "http://x/a.tar.gz?.whl",
		"http://x/a.zip?x=/b.whl", "http://x/a.WHL", "http://x/.whl/" };
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		OK(!claims_is_wheel(sources[i]));
	OK(claimed(LIST(ITEM("a", "http://x/a-1.tar.gz", HASH)), NULL, &source) == 0 && source);
	static const char *const refused[] = { LIST(ITEM("a", "git+http://x/a.whl", HASH)),
		LIST(ITEM("a", "http://x/a.whl\\n--pre", HASH)),
		LIST(ITEM("a", "http://x/a b.whl", HASH)),
		LIST(ITEM("a", "http://x/a.whl#egg=b", HASH)), LIST(ITEM("a", "/tmp/a.whl", HASH)),
		LIST(ITEM("a\\nb", "http://x/a.whl", HASH)),
		LIST(ITEM("a", "http://x/a.whl", "zz")),
		LIST(ITEM("a", "http://x/a.whl", HASH " " HASH)), LIST("{\"name\":\"a\"}"),
		LIST("7"), "{\"by\":\"me\",\"packages\":[]}", "{\"by\":\"pip\"}", "[]" };
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		OK(claimed(refused[i], NULL, &source) == -EPROTO);
	_cleanup_json_ json_t *said = json_loads("[\"a\", 1, \"a.b\", \"x y\", \"c\"]", 0, NULL),
			      *modules = claims_modules(said);
	OK(json_array_size(modules) == 2);
}

int main(void)
{
	hashes();
	words();
	corrections();
	requirements();
	plans();
	reach();
	stores();
	keys();
	claims();
	return tap_done();
}
