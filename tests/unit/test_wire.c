#include <errno.h>

#include "tap.h"
#include "wire/timing.h"
#include "wire/wire.h"

static void feed(struct wire_reader *r, const char *data, size_t len)
{
	char *at;
	size_t room;
	if (len && wire_reader_room(r, len, &at, &room) == 0 && room >= len) {
		memcpy(at, data, len);
		wire_reader_filled(r, len);
	}
}

static void two_frames(struct buffer *b)
{
	size_t start;
	wire_begin(b, WIRE_EXECUTE, 7, &start);
	wire_put(b, WIRE_CODE, "x = 1", 5);
	wire_put_u64(b, WIRE_RESCAN, 1);
	wire_end(b, start);
	wire_begin(b, WIRE_READY, 0, &start);
	wire_end(b, start);
}

/* Whole frames come out the same wherever the bytes are cut. */
static void every_split(void)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	two_frames(&b);
	int good = 1;
	for (size_t cut = 0; cut <= b.len; cut++) {
		struct wire_reader r;
		struct wire_frame f;
		unsigned seen = 0;
		wire_reader_init(&r, 1024);
		feed(&r, b.data, cut);
		while (wire_reader_next(&r, &f) == 1)
			seen++;
		feed(&r, b.data + cut, b.len - cut);
		while (wire_reader_next(&r, &f) == 1)
			seen++;
		good &= seen == 2 && f.type == WIRE_READY && f.len == 0;
		wire_reader_finish(&r);
	}
	OK(good);
}

static void fields(void)
{
	_cleanup_buffer_ struct buffer b = BUFFER_INIT(0);
	struct wire_reader r;
	struct wire_frame f;
	struct wire_field field;
	size_t at = 0;
	uint64_t n = 0;
	two_frames(&b);
	wire_reader_init(&r, 1024);
	feed(&r, b.data, b.len);
	OK(wire_reader_next(&r, &f) == 1 && f.type == WIRE_EXECUTE && f.serial == 7);
	OK(wire_field_next(&f, &at, &field) == 1 && field.tag == WIRE_CODE && field.len == 5 &&
		!memcmp(field.data, "x = 1", 5));
	OK(wire_field_u64(&field, &n) == -EPROTO);
	OK(wire_field_next(&f, &at, &field) == 1 && wire_field_u64(&field, &n) == 0 && n == 1);
	OK(wire_field_next(&f, &at, &field) == 0);
	wire_reader_finish(&r);
}

static int verdict(const char *bytes, size_t len)
{
	struct wire_reader r;
	struct wire_frame f;
	wire_reader_init(&r, 100);
	feed(&r, bytes, len);
	int v = wire_reader_next(&r, &f);
	if (v == 1) {
		struct wire_field field;
		size_t at = 0;
		while ((v = wire_field_next(&f, &at, &field)) == 1)
			;
	}
	wire_reader_finish(&r);
	return v;
}

static void hostile(void)
{
	/* 101 bytes promised, 100 allowed */
	OK(verdict("\x65\0\0\0\1\0\0\0\0\0\0\0", 12) == -EPROTO);
	/* 4 GiB promised */
	OK(verdict("\xff\xff\xff\xff\1\0\0\0\0\0\0\0", 12) == -EPROTO);
	/* a byte that must be zero */
	OK(verdict("\0\0\0\0\1\0\1\0\0\0\0\0", 12) == -EPROTO);
	/* field header cut */
	OK(verdict("\4\0\0\0\1\0\0\0\0\0\0\0abcd", 16) == -EPROTO);
	/* field runs over its frame */
	OK(verdict("\6\0\0\0\1\0\0\0\0\0\0\0\1\2\0\0\0x", 18) == -EPROTO);
	OK(verdict("\5\0\0\0\1\0\0\0\0\0\0\0\1\xff\xff\xff\xff", 17) == -EPROTO);
	OK(verdict("{\"type\":\"result\"}", 17) == -EPROTO);
	OK(verdict("\0\0\0", 3) == 0);
}

/* A guest tells where its time went; what it says need not be true. */
static void steps(void)
{
	struct step_times t = { 0 };
	OK(step_add_packed(&t, step_pack(STEP_RUN, 1500)) == 1500);
	OK(t.count[STEP_RUN] == 1 && t.ns[STEP_RUN] == 1500);
	OK(step_add_packed(&t, ~0ULL) == 0); /* no such step */
	OK(step_add_packed(&t, step_pack(STEP_RUN, ~0ULL)) == (1ULL << 56) - 1);
	OK(t.count[STEP_RUN] == 2);

	struct step_times cell = { 0 };
	step_add(&cell, STEP_COMPILE, 100);
	step_add(&cell, STEP_RUN, 200);
	step_add(&cell, STEP_SETUP, 5000);
	OK(step_rest(&cell, STEP_COMPILE, STEP_REPORT, 1000) == 700);
	OK(step_rest(&cell, STEP_COMPILE, STEP_REPORT, 250) == 0);
	step_add_all(&cell, &t);
	OK(cell.count[STEP_RUN] == 3);
	for (int i = 0; i < STEP_COUNT; i++)
		OK(step_name((enum lap)i) && *step_name((enum lap)i));
}

int main(void)
{
	steps();
	every_split();
	fields();
	hostile();
	return tap_done();
}
