/*
 * The pool's side of the proxy (network/proxy.h): started with the first sandbox that needs it,
 * started again when it dies.
 */
#pragma once

struct sandbox;
struct sandbox_pool;

/*
 * The sandbox has its jail, and in it sockets that lead outside: hands them to the proxy, which is
 * started if it is not there.
 */
void proxy_client_open(struct sandbox *b);

/* Ends the network access of this sandbox. */
void proxy_client_close(struct sandbox *b);

/* Ends the proxy; sandbox_pool_finish_when_empty() is called when it is gone. */
void proxy_client_destroy(struct sandbox_pool *n);
