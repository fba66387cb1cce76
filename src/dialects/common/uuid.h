/* Random UUIDs (version 4), which other people's clients expect for ids. */
#pragma once

void uuid_random(char out[37]); /* NUL-terminated */
