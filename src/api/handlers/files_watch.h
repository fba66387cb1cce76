/* GET …/files?watch: changes below a directory as server-sent events. */
#pragma once

struct call;
struct list_query;

/* Answers; the query stays the caller's. */
void files_watch(struct call *c, const struct list_query *q);
