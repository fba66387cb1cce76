/*
 * The checks of `glovebox doctor`: each checks one property of the machine and records its finding.
 */
#pragma once

#include <stdbool.h>

struct doctor;

enum finding_status {
	FINDING_OK,
	FINDING_WARN, /* it runs, but slower, smaller or less sealed: the text says how */
	FINDING_FAIL  /* it does not run */
};

struct finding {
	enum finding_status status;
	char name[32], text[320], remedy[320];
};

/* Adds a finding; remedy may be NULL. */
void doctor_note(struct doctor *d, enum finding_status status, const char *name, const char *remedy,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));

struct doctor_check {
	void (*run)(struct doctor *d); /* the end of the table has NULL */
	bool slow;                     /* takes a second or more */
};
extern const struct doctor_check doctor_checks[];
