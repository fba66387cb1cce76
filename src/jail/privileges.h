/*
 * Users and capabilities: becoming the jail's user, and giving up all privilege for good. System
 * calls only.
 */
#pragma once

/* Takes the id inside the current user namespace, without losing the capabilities in it. */
int privileges_become(unsigned id, const char **ret_step);

/* Empties all five capability sets, locks securebits, sets no_new_privs. Irreversible. */
int privileges_drop(const char **ret_step);
