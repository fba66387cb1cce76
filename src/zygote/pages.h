/* Huge pages for the warm heap: a fork copies page tables, and 2 MiB pages need 512 times fewer entries. */
#pragma once

/* Turns this process's private writable memory into huge pages where the kernel allows it; else does nothing. */
void pages_collapse(void);
