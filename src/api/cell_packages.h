/*
 * Packages requested by a running cell, served by the same store and under the same policy as
 * packages of a session.
 */
#pragma once

struct api;

void cell_packages_start(struct api *a);
void cell_packages_stop(struct api *a); /* nobody is answered any more */
