/* The nodes of a fleet, and the text of its router's configuration. */
#include "fleet/fleet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fleet/haproxy.h"
#include "tap.h"

static char *text_of(const struct fleet *f, const struct haproxy_settings *s, struct error *e)
{
	struct buffer b = BUFFER_INIT(1 << 20);
	char *text = haproxy_write(f, s, e, &b) == 0 ? strndup(b.data, b.len) : NULL;
	buffer_finish(&b);
	return text;
}

static void nodes(void)
{
	struct fleet f = { 0 };
	struct error e = { 0 };

	OK(fleet_add_word(&f, "ab27=10.0.0.1:8000", &e) == 0);
	OK(fleet_add_word(&f, "host-17.example=[fd00::2]:9000", &e) == 0);
	OK(f.n == 2 && f.nodes[0].port == 8000 && f.nodes[1].port == 9000);
	OK_STR(f.nodes[0].letters, "ab27");
	OK_STR(f.nodes[0].hex, "0075f");
	OK_STR(f.nodes[1].host, "[fd00::2]");
	OK(fleet_add_word(&f, "ab27=10.0.0.2:8000", &e) == -EEXIST);
	OK(fleet_add_word(&f, "c=10.0.0.1:8000", &e) == -EEXIST);
	OK(fleet_add_word(&f, f.nodes[1].letters, &e) == -EINVAL);
	OK(fleet_add(&f, f.nodes[1].letters, "10.0.0.3:8000", &e) == -EEXIST);
	OK(strstr(e.text, "letters") != NULL);

	static const char *const wrong[] = { "", "=", "a", "a=", "=1.2.3.4:80", "a b=1.2.3.4:80",
		"a=1.2.3.4", "a=1.2.3.4:0", "a=1.2.3.4:99999", "a=unix:/x", "a=x y:80", "a=x\n:80",
		"a=x#:80", "a=\"x:80", NULL };
	for (const char *const *w = wrong; *w; w++)
		OK(fleet_add_word(&f, *w, &e) == -EINVAL);
	OK(f.n == 2);
	fleet_finish(&f);
	OK(f.n == 0 && !f.nodes);
}

static void sets(void)
{
	struct fleet f = { 0 };
	struct error e = { 0 };

	OK(fleet_add_set(&f, "glovebox", "glovebox.ns.svc", 8000, LIMIT_FLEET_NODES, &e) == 0);
	OK_STR(f.nodes[255].host, "glovebox-255.glovebox.ns.svc");
	OK_STR(f.nodes[255].name, "glovebox-255");
	OK(fleet_add(&f, "more", "10.0.0.1:80", &e) == -E2BIG);
	fleet_finish(&f);

	char name[NODE_NAME_MAX + 1];
	memset(name, 'x', NODE_NAME_MAX);
	name[NODE_NAME_MAX] = '\0';
	OK(fleet_add_set(&f, name, "svc", 8000, 1, &e) == -EINVAL);
	fleet_finish(&f);
}

static void configuration(void)
{
	struct fleet f = { 0 };
	struct error e = { 0 };
	struct haproxy_settings s = { .bind = ":8080", .agent = true };

	fleet_add_word(&f, "aaaa=10.0.0.1:8000", &e);
	char *one = text_of(&f, &s, &e);
	OK(one && !strstr(one, "node_needed") && !strstr(one, "resolvers") &&
		!strstr(one, " ssl "));
	OK(one && strstr(one, "\nbackend node_aaaa\n") && strstr(one, "agent-port 8001"));
	fleet_add_word(&f, "bbbb=10.0.0.2:8000", &e);
	s.tls = "/etc/x.pem";
	s.dns = true;
	s.agent_port = 77;
	char *two = text_of(&f, &s, &e);
	OK(two && strstr(two, "node_needed") && strstr(two, "parse-resolv-conf"));
	OK(two && strstr(two, "bind :8080 ssl crt /etc/x.pem") && strstr(two, "agent-port 77"));
	OK(two && strstr(two, "-m str aaaa bbbb }"));
	s.agent = false;
	s.nameserver = "10.0.0.9:53";
	char *three = text_of(&f, &s, &e);
	OK(three && !strstr(three, "agent-port") && strstr(three, "nameserver first 10.0.0.9:53"));

	/* Nothing of the template is left. */
	for (int i = 0; i < 3; i++)
		OK(!strstr((char *[]){ one, two, three }[i], "@if") &&
			!strstr((char *[]){ one, two, three }[i], "@end"));
	free(one);
	free(two);
	free(three);

	static const char *const wrong[] = { "", ":80 ssl", ":80\nglobal", ":80#", "a'b", NULL };
	for (const char *const *w = wrong; *w; w++) {
		s.bind = *w;
		OK(text_of(&f, &s, &e) == NULL && e.err == -EINVAL);
	}
	fleet_finish(&f);
}

int main(void)
{
	nodes();
	sets();
	configuration();
	return tap_done();
}
