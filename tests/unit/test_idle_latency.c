#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/idle_latency.h"
#include "tap.h"

static char driver[] = "/tmp/awake-driver-XXXXXX", device[] = "/tmp/awake-device-XXXXXX";

static void name_driver(const char *name)
{
	FILE *f = fopen(driver, "we");
	fprintf(f, "%s\n", name);
	fclose(f);
}

/* Wishes so far, the last one in *ret. */
static int wishes(int32_t *ret)
{
	int n = 0;
	FILE *f = fopen(device, "re");
	while (fread(ret, sizeof(*ret), 1, f) == 1)
		n++;
	fclose(f);
	return n;
}

static void test_where(uv_loop_t *loop)
{
	name_driver("intel_idle");
	OK(!idle_latency_create(loop, driver, device));
	OK(!idle_latency_create(loop, "/nowhere", device));
	name_driver("haltpoll");
	OK(!idle_latency_create(loop, driver, "/nowhere"));
	idle_latency_touch(NULL);
	idle_latency_destroy(NULL);
}

static void test_series(uv_loop_t *loop)
{
	int32_t last = 1;
	struct idle_latency *a = idle_latency_create(loop, driver, device);
	OK(a && wishes(&last) == 0);
	idle_latency_touch(a);
	OK(wishes(&last) == 0); /* one alone */
	idle_latency_touch(a);
	OK(wishes(&last) == 1 && last == 0);
	idle_latency_touch(a);
	OK(wishes(&last) == 1);
	uv_run(loop, UV_RUN_DEFAULT); /* until nothing is left to do */
	OK(wishes(&last) == 2 && last == -1);

	uv_sleep(50);
	uv_update_time(loop);
	idle_latency_touch(a);
	uv_sleep(50);
	uv_update_time(loop);
	idle_latency_touch(a);
	OK(wishes(&last) == 2); /* now and then */
	idle_latency_touch(a);
	OK(wishes(&last) == 3 && last == 0);
	idle_latency_destroy(a);
	uv_run(loop, UV_RUN_DEFAULT);
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	close(mkstemp(driver));
	close(mkstemp(device));
	test_where(loop);
	test_series(loop);
	OK(uv_loop_close(loop) == 0);
	unlink(driver);
	unlink(device);
	return tap_done();
}
