/*
 * The profiles a server knows: the built-in ones and those of its configuration directory, and how a choice among them
 * becomes rules for a guest.
 *
 * An own profile is an object (or an INI file with the same names, lists separated by commas):
 *
 *   { "base": "smolagents", "summary": "…", "imports": ["math"], "additional_imports": ["numpy.*"], "builtins": ["open"],
 *     "refuse": ["random.seed"], "max_operations": 0, "max_while_iterations": 0, "print_chars": 0,
 *     "final_answer_stops": true, "fresh_namespace": false }
 *
 * `imports` takes the place of the base's list, `additional_imports` adds to it; the base may be an own profile of a file.
 * Errors have slug "invalid_profile" or "unknown_profile" and name the wrong entry.
 */
#pragma once

#include "base/error.h"
#include "profile/profile.h"

struct profiles;

/* What a session runs under. Everything is the caller's: profile_choice_finish(). */
struct profile_choice {
	char *name;     /* as it was asked for; "custom" for an object without a name */
	char **rules;   /* for the guest, NULL at the end; an empty list changes nothing */
	unsigned table; /* the built-in profile it comes down to: an index of profile_tables */
	/* the name of the file's profile that was asked for, which lives as long as the profiles;
	 * NULL for the others */
	const char *own;
};
void profile_choice_finish(struct profile_choice *c);

/*
 * The files NAME.json and NAME.ini of the directories (NULL at the end, missing ones are fine); an
 * earlier directory wins. A file that cannot be read as a profile is an error.
 */
int profiles_create(const char *const *directories, struct error *e, struct profiles **ret);

/*
 * The same with the directories of this machine, in this order: profiles/ beside the settings file
 * (which may be NULL), ~/.config/glovebox/profiles, /etc/glovebox/profiles.
 */
int profiles_load(const char *settings_file, struct error *e, struct profiles **ret);

void profiles_destroy(struct profiles *p);

/*
 * `profile`: a name, the JSON text of an object (it begins with '{'), or NULL for `fallback` (which
 * may be NULL: python). `additional`: imports beyond the profile's, NULL at the end, or NULL; with
 * `below` each allows what is safe below it, as "numpy.*" does. `profiles` may be NULL: the
 * built-in ones.
 */
int profiles_choose(const struct profiles *p, const char *profile, const char *fallback,
	char *const *additional, bool below, struct error *e, struct profile_choice *ret);

struct json_writer;

/*
 * Writes the array of all profiles: name, base, what it stands for, imports, limits, what it
 * refuses.
 */
void profiles_write(const struct profiles *p, struct json_writer *w);
