/* The nursery's side of the proxy (network/proxy.h): started with the first berth that needs it, started again when it dies. */
#pragma once

struct berth;
struct nursery;

/* The berth has its jail, and in it sockets that lead outside: hands them to the proxy, which is started if it is not there. */
void egress_open(struct berth *b);

/* Nothing of this berth goes out any more. */
void egress_close(struct berth *b);

/* Ends the proxy; nursery_finish_when_empty() is called when it is gone. */
void egress_destroy(struct nursery *n);
