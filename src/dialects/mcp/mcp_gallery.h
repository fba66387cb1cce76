/*
 * The pictures of a result. Each is at most MCP_IMAGE_SIDE pixels on its long side, and all of them
 * together MCP_IMAGES_MAX bytes in base64: larger pictures are scaled down in a separate process
 * before the result is sent.
 */
#pragma once

#include "dialects/mcp/mcp.h"

struct mcp_gallery;

struct mcp_gallery *mcp_gallery_create(void); /* NULL without memory */
void mcp_gallery_destroy(struct mcp_gallery *g);

/*
 * Adds a picture (bytes of a PNG, JPEG, GIF or WebP file), or a sentence. Beyond MCP_RESULT_IMAGES
 * pictures are counted only.
 */
void mcp_gallery_add(struct mcp_gallery *g, const char *data, size_t len);
void mcp_gallery_add_base64(struct mcp_gallery *g, const char *base64, size_t len);
void mcp_gallery_note(struct mcp_gallery *g, const char *text);

/*
 * Takes all three over, and sends the result now or as soon as the pictures are small. The text
 * comes first; it may be NULL.
 */
void mcp_gallery_send(struct mcp_request *r, struct mcp_gallery *g, struct buffer *text,
	struct buffer *structured, bool is_error);
