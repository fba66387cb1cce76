/* The page /docs, generated from the API's own tables. */
#pragma once

struct buffer;
struct route_table;

int openapi_write(const struct route_table *t, struct buffer *out); /* /openapi.json */
/* /docs: one page of HTML without scripts or anything from elsewhere */
int docs_write(const struct route_table *t, struct buffer *out);
