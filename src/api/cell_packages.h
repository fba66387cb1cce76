/* Packages that cells ask for themselves, answered by the same store and under the same policy. */
#pragma once

struct api;

void cell_packages_start(struct api *a);
void cell_packages_stop(struct api *a); /* nobody is answered any more */
