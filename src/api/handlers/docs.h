/* The API described from its own tables. */
#pragma once

struct buffer;

int openapi_write(struct buffer *out); /* /openapi.json */
int docs_write(struct buffer *out); /* /docs: one page of HTML without scripts or anything from elsewhere */
