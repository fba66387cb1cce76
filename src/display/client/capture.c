/* Pixels, by shared memory: the server writes into a file in memory that both have mapped. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xcb/shm.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "display/client/screen.h"

/* The kernel's own constant; older headers lack it. */
#define NOEXEC_SEAL 8U

static int make_file(size_t bytes)
{
	int fd = memfd_create("glovebox-picture", MFD_CLOEXEC | NOEXEC_SEAL);
	if (fd < 0)
		fd = memfd_create("glovebox-picture", MFD_CLOEXEC); /* before Linux 6.3 */
	if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
		return fd;
	fd_close(fd);
	return -ENOMEM;
}

void capture_release(struct screen *s)
{
	if (s->segment)
		xcb_shm_detach(s->x, s->segment);
	if (s->shared)
		munmap(s->shared, s->shared_bytes);
	s->segment = 0;
	s->shared = NULL;
	s->shared_bytes = 0;
}

/* Room for so many bytes that the server can write to. */
static int reserve(struct screen *s, size_t bytes)
{
	size_t least = (size_t)s->width * s->height * 4;
	if (bytes > LIMIT_CAPTURE_BYTES)
		return -E2BIG;
	if (s->segment && bytes <= s->shared_bytes)
		return 0;
	capture_release(s);
	bytes = bytes > least ? bytes : least;
	_cleanup_fd_ int fd = make_file(bytes);
	if (fd < 0)
		return fd;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -ENOMEM;
	s->shared = at;
	s->shared_bytes = bytes;
	uint32_t segment = xcb_generate_id(s->x);
	/* The descriptor is xcb's from here on, which closes it after sending. */
	_cleanup_free_ xcb_generic_error_t *e = xcb_request_check(
		s->x, xcb_shm_attach_fd_checked(s->x, segment, TAKE_FD(fd), 0));
	if (e)
		return -EIO;
	s->segment = segment;
	return 0;
}

/*
 * 16-bit pixels, in rows padded to four bytes, become 32-bit ones; from the end, so that none is
 * overwritten before it was read.
 */
static void widen(uint8_t *pixels, size_t width, size_t height)
{
	size_t stride = (width + 1) / 2 * 2;
	const uint16_t *from = (const uint16_t *)(const void *)pixels;
	uint32_t *to = (uint32_t *)(void *)pixels;
	for (size_t y = height; y-- > 0;)
		for (size_t x = width; x-- > 0;) {
			uint32_t p = from[y * stride + x], r = p >> 11, g = p >> 5 & 63, b = p & 31;
			to[y * width + x] = (r * 255 / 31) << 16 | (g * 255 / 63) << 8 |
					    b * 255 / 31;
		}
}

/*
 * A part of a drawable, which must lie inside it. The server may not be one any more: the sizes it
 * tells are checked.
 */
static int grab(struct screen *s, xcb_drawable_t from, int x, int y, uint32_t width,
	uint32_t height, struct image *ret)
{
	size_t n = (size_t)width * height;
	int r = n ? reserve(s, n * 4) : -EINVAL;

	if (r < 0)
		return r;
	_cleanup_free_ xcb_shm_get_image_reply_t *got = xcb_shm_get_image_reply(s->x,
		xcb_shm_get_image(s->x, from, (int16_t)x, (int16_t)y, (uint16_t)width,
			(uint16_t)height, ~0U, XCB_IMAGE_FORMAT_Z_PIXMAP, s->segment, 0),
		NULL);
	if (!got)
		return -EIO;
	if (got->depth <= 16)
		widen(s->shared, width, height);
	*ret = (struct image){ .pixels = s->shared, .width = width, .height = height };
	return 0;
}

/* Cuts the wished part to what there is. */
static int cut(const struct shot_options *o, uint32_t width, uint32_t height, int *ret_x,
	int *ret_y, uint32_t *ret_w, uint32_t *ret_h)
{
	int64_t x0 = 0, y0 = 0, x1 = width, y1 = height;
	if (o->has_region) {
		x0 = o->x > 0 ? o->x : 0;
		y0 = o->y > 0 ? o->y : 0;
		x1 = (int64_t)o->x + o->width < x1 ? (int64_t)o->x + o->width : x1;
		y1 = (int64_t)o->y + o->height < y1 ? (int64_t)o->y + o->height : y1;
	}

	if (x1 <= x0 || y1 <= y0)
		return -ERANGE;
	*ret_x = (int)x0;
	*ret_y = (int)y0;
	*ret_w = (uint32_t)(x1 - x0);
	*ret_h = (uint32_t)(y1 - y0);
	return 0;
}

/* A window's own pixels, which composite keeps for it: nothing that covers it shows. */
static int capture_window(
	struct screen *s, xcb_window_t id, const struct shot_options *o, struct image *ret)
{
	_cleanup_free_ xcb_get_geometry_reply_t *g = xcb_get_geometry_reply(
		s->x, xcb_get_geometry(s->x, id), NULL);
	int x, y;
	uint32_t width, height;

	if (!g)
		return -ENOENT;
	int r = cut(o, g->width, g->height, &x, &y, &width, &height);
	if (r < 0)
		return r;
	xcb_pixmap_t pixmap = xcb_generate_id(s->x);
	_cleanup_free_ xcb_generic_error_t *e = xcb_request_check(
		s->x, xcb_composite_name_window_pixmap_checked(s->x, id, pixmap));
	if (e)
		return -ENOENT; /* not a top-level window, or not mapped */
	r = grab(s, pixmap, x + g->border_width, y + g->border_width, width, height, ret);
	xcb_free_pixmap(s->x, pixmap);
	return r;
}

int capture_image(struct screen *s, const struct shot_options *o, struct image *ret)
{
	xcb_window_t window = o->active ? manager_active(s) : o->window;
	int x, y;
	uint32_t width, height;
	if (o->active && !window)
		return -ENOENT;
	if (window)
		return capture_window(s, window, o, ret);
	int r = cut(o, s->width, s->height, &x, &y, &width, &height);
	return r < 0 ? r : grab(s, s->root, x, y, width, height, ret);
}

/*
 * Four sums side by side: one alone waits for its multiplication at every step, and a screen has
 * three million bytes.
 */
static uint64_t sum_of(const uint8_t *pixels, size_t n)
{
	enum { LANES = 4 };
	uint64_t lane[LANES] = { 0xcbf29ce484222325ULL, 1, 2, 3 }, word[LANES], sum = 0;

	for (size_t at = 0; at + sizeof(word) <= n; at += sizeof(word)) {
		memcpy(word, pixels + at, sizeof(word));
		for (int i = 0; i < LANES; i++) {
			lane[i] = (lane[i] ^ word[i]) * 0x100000001b3ULL;
			lane[i] ^= lane[i] >> 29;
		}
	}

	for (size_t at = n / sizeof(word) * sizeof(word); at < n; at++)
		sum = (sum ^ pixels[at]) * 0x100000001b3ULL;
	for (int i = 0; i < LANES; i++)
		sum = (sum ^ lane[i]) * 0x100000001b3ULL;
	return sum;
}

int capture_sum(struct screen *s, uint64_t *ret)
{
	struct image i;
	int r = capture_image(s, &(struct shot_options){ 0 }, &i);
	if (r < 0)
		return r;
	*ret = sum_of(i.pixels, (size_t)i.width * i.height * 4);
	return 0;
}

/*
 * The colour that most of the picture has, by looking here and there: the one that is met most
 * often in a row of samples.
 */
static uint32_t common_colour(const uint32_t *p, size_t n)
{
	enum { SAMPLES = 1009, COLOURS = 16 };
	uint32_t colour[COLOURS], best = 0;
	unsigned count[COLOURS] = { 0 }, n_colours = 0;

	for (size_t k = 0; k < SAMPLES; k++) {
		uint32_t c = p[k * n / SAMPLES] & 0xffffff;
		unsigned i = 0;
		while (i < n_colours && colour[i] != c)
			i++;
		if (i == COLOURS)
			continue; /* a picture of so many colours has others that are more common */
		if (i == n_colours)
			colour[n_colours++] = c;
		count[i]++;
	}

	for (unsigned i = 1; i < n_colours; i++)
		if (count[i] > count[best])
			best = i;
	return colour[best];
}

uint32_t capture_ink(struct screen *s, uint32_t *ret_paper)
{
	struct shot_options top = { .active = true };
	struct image i;
	if (capture_image(s, &top, &i) < 0)
		return UINT32_MAX;
	const uint32_t *p = (const uint32_t *)(const void *)i.pixels;
	size_t n = (size_t)i.width * i.height;
	uint32_t paper = common_colour(p, n), ink = 0;
	for (size_t k = 0; k < n; k++)
		ink += (p[k] & 0xffffff) != paper;
	*ret_paper = paper;
	return ink;
}

bool capture_is_flat(struct screen *s)
{
	uint32_t paper;
	return capture_ink(s, &paper) == 0;
}
