#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/paths.h"
#include "base/text.h"
#include "cli/doctor.h"
#include "cli/user_scope.h"
#include "jail/layers.h"
#include "local/local.h"

enum {
	KERNEL_MAJOR = 5,
	KERNEL_MINOR = 14,
	FDS_PER_SESSION = 8,
	SMALL_FILE = 4096,
	WARM_SECONDS = 60,
	TEXT_MAX = 160
};

/* The first line of a small file, "" when it cannot be read. */
static char *first_line(const char *path, char *buf, size_t size)
{
	_cleanup_free_ char *text = NULL;
	buf[0] = '\0';
	if (fd_read_file(path, SMALL_FILE, &text, NULL) == 0) {
		text[strcspn(text, "\n")] = '\0';
		snprintf(buf, size, "%s", text);
	}
	return buf;
}

static bool file_says(const char *path, const char *value)
{
	char line[TEXT_MAX];
	return text_eq(first_line(path, line, sizeof(line)), value);
}

/* ---- kernel ----------------------------------------------------------- */

static void check_kernel(struct doctor *d)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	uname(&u);
	if (sscanf(u.release, "%u.%u", &major, &minor) != 2) {
		doctor_note(d, FINDING_WARN, "kernel", NULL, "%s: a version of unknown form",
			u.release);
		return;
	}

	if (major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR))
		doctor_note(d, FINDING_OK, "kernel", NULL, "Linux %s on %s", u.release, u.machine);
	else
		doctor_note(d, FINDING_FAIL, "kernel",
			"update the kernel (Debian 12 has 6.1, Ubuntu 24.04 has 6.8)",
			"Linux %s: sessions need %d.%d or newer", u.release, KERNEL_MAJOR,
			KERNEL_MINOR);
}

/* The layers of the wall, tried as a server tries them at its start. */
static void check_layers(struct doctor *d)
{
	struct layer_state states[LAYER_COUNT];
	layers_test(states);
	for (int i = 0; i < LAYER_COUNT; i++) {
		const struct layer_state *s = &states[i];
		char remedy[ERROR_REMEDY_MAX + 64];
		if (s->there) {
			doctor_note(
				d, FINDING_OK, layer_name((enum layer)i), NULL, "%s", s->detail);
			continue;
		}
		bool waivable = layer_can_be_waived((enum layer)i);
		bool waive = waivable && !layer_is_optional((enum layer)i);
		const char *command = i == LAYER_CGROUP ? user_scope_command() : NULL;
		snprintf(remedy, sizeof(remedy), "%s%s%s%s", command ? command : s->why.remedy,
			command ? " (`serve` does that by itself)" : "",
			waive ? " Or start the server with --waive " : "",
			waive ? layer_name((enum layer)i) : "");
		doctor_note(d, waivable ? FINDING_WARN : FINDING_FAIL, layer_name((enum layer)i),
			remedy, "missing (%s): %s", s->why.text, layer_consequence((enum layer)i));
	}
}

static void check_proc(struct doctor *d)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	if (access("/proc/self/exe", F_OK) < 0)
		doctor_note(d, FINDING_FAIL, "/proc", "mount -t proc proc /proc",
			"is not mounted: helpers cannot be found");
	else if (access(path, F_OK) < 0)
		doctor_note(d, FINDING_WARN, "/proc", "use a kernel with CONFIG_PROC_CHILDREN",
			"does not list children: orphaned processes cannot be collected");
	else
		doctor_note(d, FINDING_OK, "/proc", NULL, "is mounted and lists children");
}

static void check_huge_pages(struct doctor *d)
{
	char line[TEXT_MAX];
	first_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof(line));
	if (strstr(line, "[always]") || strstr(line, "[madvise]"))
		doctor_note(d, FINDING_OK, "huge pages", NULL, "%s", line);
	else
		doctor_note(d, FINDING_WARN, "huge pages",
			"echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
			"off: a session takes a few milliseconds more to start");
}

/* ---- limits ----------------------------------------------------------- */

static void check_descriptors(struct doctor *d)
{
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	unsigned long long sessions = limit.rlim_max / FDS_PER_SESSION;
	if (limit.rlim_max == RLIM_INFINITY || sessions >= 1000)
		doctor_note(d, FINDING_OK, "open files", NULL, "limit %llu",
			(unsigned long long)limit.rlim_max);
	else
		doctor_note(d, FINDING_WARN, "open files",
			"raise it: ulimit -Hn 65536, or LimitNOFILE=65536 in the service",
			"limit %llu: enough for about %llu sessions",
			(unsigned long long)limit.rlim_max, sessions);
}

static void check_processes(struct doctor *d)
{
	struct rlimit limit;
	getrlimit(RLIMIT_NPROC, &limit);
	if (geteuid() == 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= 4096)
		doctor_note(
			d, FINDING_OK, "processes", NULL, "no limit that would be reached soon");
	else
		doctor_note(d, FINDING_WARN, "processes",
			"raise it: ulimit -u 65536, or LimitNPROC=65536 in the service",
			"limit %llu: each session needs two processes, and those that its code starts",
			(unsigned long long)limit.rlim_cur);
}

static unsigned long long memory_kb(const char *key)
{
	_cleanup_free_ char *text = NULL;
	unsigned long long kb = 0;
	if (fd_read_file("/proc/meminfo", 64 * SMALL_FILE, &text, NULL) < 0)
		return 0;
	const char *line = strstr(text, key);
	return line && sscanf(line + strlen(key), " %llu", &kb) == 1 ? kb : 0;
}

static void check_memory(struct doctor *d)
{
	unsigned long long available = memory_kb("MemAvailable:") >> 10;
	if (file_says("/proc/sys/vm/overcommit_memory", "2"))
		doctor_note(d, FINDING_WARN, "memory", "sudo sysctl -w vm.overcommit_memory=0",
			"strict accounting: every fork counts its template in full, so few sessions fit");
	else if (available < 512)
		doctor_note(d, FINDING_WARN, "memory", NULL,
			"%llu MB available: enough for a few sessions only", available);
	else
		doctor_note(d, FINDING_OK, "memory", NULL, "%llu MB available", available);
}

/* ---- our own ---------------------------------------------------------- */

static void check_state_dir(struct doctor *d)
{
	_cleanup_free_ char *path = NULL;
	struct error e = { 0 };

	if (paths_state_dir(&e, &path) < 0) {
		doctor_note(d, FINDING_FAIL, "state", e.remedy, "%s", e.text);
		return;
	}

	if (access(path, F_OK) < 0) {
		doctor_note(d, FINDING_OK, "state", NULL, "%s (made at the first start)", path);
		return;
	}

	if (access(path, W_OK | X_OK) < 0)
		doctor_note(d, FINDING_FAIL, "state",
			"give it to this user (chown), or use --state-dir", "%s: %s", path,
			strerror(errno));
	else
		doctor_note(d, FINDING_OK, "state", NULL, "%s", path);
}

static void check_guest(struct doctor *d)
{
	_cleanup_free_ char *path = NULL;
	struct error e = { 0 };
	if (paths_guest(&e, &path) < 0)
		doctor_note(d, FINDING_FAIL, "guest module", e.remedy, "%s", e.text);
	else
		doctor_note(d, FINDING_OK, "guest module", NULL, "%s", path);
}

struct probe {
	enum cell_status status;
	char text[TEXT_MAX];
};

static void on_probe_done(void *userdata, const struct observation *o)
{
	struct probe *probe = userdata;
	probe->status = o->status;
	if (o->error)
		snprintf(probe->text, sizeof(probe->text), "%s: %s", o->error->type,
			o->error->message);
	else
		snprintf(probe->text, sizeof(probe->text), "%.*s", (int)o->out.head_len,
			o->out.head);
}

static void note_preload(struct doctor *d, const char *report)
{
	if (!*report) {
		doctor_note(d, FINDING_OK, "preload", NULL,
			"all modules of the default template are installed");
		return;
	}
	while (*report) {
		size_t len = strcspn(report, "\n");
		doctor_note(d, FINDING_WARN, "preload",
			"install it (Debian: python3-NAME), or sessions import it themselves, slowly, or not "
			"at all",
			"%.*s", (int)len, report);
		report += len + (report[len] == '\n');
	}
}

static void probe_session(struct doctor *d, struct local *l, uint64_t start_ns)
{
	static const char code[] = "import sys; print('Python', sys.version.split()[0], end='')";
	struct probe probe = { 0 };
	struct error e = { 0 };
	bool warm = local_wait_ready(l, WARM_SECONDS);
	double seconds = (double)(clock_now_ns() - start_ns) / NSEC_PER_SEC;

	if (!warm) {
		doctor_note(d, FINDING_FAIL, "session",
			"run `glovebox serve --log-level debug` and look at its first lines",
			"the guest was not ready within %d s", WARM_SECONDS);
		return;
	}

	note_preload(d, local_preload_report(l));
	int r = local_execute(l, &(struct cell_request){ .code = code, .code_len = strlen(code) },
		&(struct cell_observer){ .on_done = on_probe_done }, &probe, &e);
	if (r < 0 || probe.status != CELL_OK)
		doctor_note(d, FINDING_FAIL, "session", r < 0 ? e.remedy : NULL,
			"a cell did not run: %s", r < 0 ? e.text : probe.text);
	else
		doctor_note(d, FINDING_OK, "session", NULL,
			"%s ran in a session; the template was warm after %.1f s", probe.text,
			seconds);
}

static void check_session(struct doctor *d)
{
	struct local *l = NULL;
	struct error e = { 0 };
	uint64_t start = clock_now_ns();
	if (local_create(&(struct local_config){ .timeout_s = WARM_SECONDS }, &e, &l) < 0)
		doctor_note(d, FINDING_FAIL, "session", e.remedy, "%s", e.text);
	else
		probe_session(d, l, start);
	local_destroy(l);
}

/* ---- displays ---------------------------------------------------------- */

struct picture_probe {
	bool taken;
	char text[TEXT_MAX];
};

static void on_picture_done(void *userdata, const struct observation *o)
{
	struct picture_probe *p = userdata;
	p->taken = o->screenshot && o->screenshot->data;
	if (!p->taken)
		snprintf(p->text, sizeof(p->text), "%s",
			o->screenshot ? o->screenshot->text : "no answer");
}

/*
 * Starts a screen and takes a picture of it, in the usual way and, if that fails, in the fallback
 * way.
 */
static void check_display(struct doctor *d)
{
	static const char *const missing = "apt-get install xvfb python3-tk";
	static char *no_modules[] = { NULL };
	struct error e = { 0 };
	struct local *l = NULL;
	struct picture_probe probe = { 0 };

	if (access("/usr/bin/Xvfb", X_OK) < 0) {
		doctor_note(d, FINDING_WARN, "display", missing,
			"no X server (/usr/bin/Xvfb): sessions cannot have a display");
		return;
	}

	int r = local_create(
		&(struct local_config){
			.timeout_s = WARM_SECONDS, .preload = no_modules, .display = true },
		&e, &l);
	if (r == 0)
		r = local_execute(l,
			&(struct cell_request){
				.code = "0", .code_len = 1, .has_screenshot = true },
			&(struct cell_observer){ .on_done = on_picture_done }, &probe, &e);
	const char *kind = r == 0 ? local_display_kind(l) : "";
	if (r < 0 || !probe.taken)
		doctor_note(d, FINDING_WARN, "display", r < 0 ? e.remedy : NULL,
			"could not take a screenshot of a session: %s",
			r < 0 ? e.text : probe.text);
	else if (!text_eq(kind, "warm"))
		doctor_note(d, FINDING_WARN, "display",
			"install glovebox with glovebox-xserver.so beside glovebox-guest.so, and Debian's Xvfb",
			"a new X server is started for each session (35 ms and 7 MB more): the warm X server could not be used");
	else
		doctor_note(d, FINDING_OK, "display", NULL,
			"took a screenshot of a session whose screen was forked from a warm X server");
	local_destroy(l);
}

/* ---- fonts -------------------------------------------------------------- */

struct script_fonts {
	const char *script, *package;
	const char *places[4]; /* patterns of the font files that distributions install */
};

static const struct script_fonts script_fonts[] = {
	{ .script = "Chinese, Japanese and Korean",
		.package = "fonts-droid-fallback",
		.places = { "/usr/share/fonts/truetype/droid/DroidSansFallback*",
			"/usr/share/fonts/*/noto/NotoSansCJK*", "/usr/share/fonts/*/wqy/*",
			"/usr/share/fonts/google-noto*cjk*/*" } },
	{ .script = "emoji",
		.package = "fonts-noto-color-emoji",
		.places = { "/usr/share/fonts/*/noto/NotoColorEmoji*",
			"/usr/share/fonts/*/ancient-scripts/Symbola*",
			"/usr/share/fonts/google-noto*emoji*/*" } },
};

static bool has_fonts(const struct script_fonts *fonts)
{
	for (size_t i = 0; i < ARRAY_LEN(fonts->places) && fonts->places[i]; i++) {
		glob_t found = { 0 };
		int r = glob(fonts->places[i], GLOB_NOSORT, NULL, &found);
		globfree(&found);
		if (r == 0)
			return true;
	}
	return false;
}

/* Plots and windows show a box for each character that no font has. */
static void check_fonts(struct doctor *d)
{
	bool complete = true;
	for (size_t i = 0; i < ARRAY_LEN(script_fonts); i++) {
		const struct script_fonts *fonts = &script_fonts[i];
		if (has_fonts(fonts))
			continue;
		char remedy[TEXT_MAX];
		snprintf(remedy, sizeof(remedy), "apt-get install %s", fonts->package);
		doctor_note(d, FINDING_WARN, "fonts", remedy,
			"no font for %s: windows show boxes in place of these characters",
			fonts->script);
		complete = false;
	}
	if (complete)
		doctor_note(d, FINDING_OK, "fonts", NULL,
			"fonts for Chinese, Japanese, Korean and emoji are installed");
}

const struct doctor_check doctor_checks[] = {
	{ check_kernel },
	{ check_layers },
	{ check_proc },
	{ check_huge_pages },
	{ check_descriptors },
	{ check_processes },
	{ check_memory },
	{ check_state_dir },
	{ check_guest },
	{ check_fonts },
	{ check_session, .slow = true },
	{ check_display, .slow = true },
	{ NULL },
};
