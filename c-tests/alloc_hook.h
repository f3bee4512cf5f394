/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watches the allocator while the library is called. With the static library
 * the linker leads its calls here (--wrap), with the shared one the program's
 * malloc() stands in front of the C library's. Counts and fails only what
 * happens on one thread between hook_on() and hook_off().
 */
#ifndef SSHFLOW_TEST_ALLOC_HOOK_H
#define SSHFLOW_TEST_ALLOC_HOOK_H

#include <stddef.h>

struct hook {
	/* Set before hook_on(). */
	size_t fail_first;	/* fail allocations from this number on ... */
	size_t fail_count;	/* ... and so many of them; 0: none */
	void (*freeing)(const void *block, size_t size);	/* or NULL */
	/* Results. */
	size_t allocations;	/* asked for, the failed ones too */
	size_t failed;
	size_t live_blocks, live_bytes, peak_bytes;
};

extern struct hook hook;

/* Starts with counters of zero and the fields above as they are. */
void	hook_on(void);
/* Stops; may go on with hook_resume(). */
void	hook_off(void);
void	hook_resume(void);

/* Calls `look` for each block that is live, with the size asked for. */
void	hook_each_live(void (*look)(const void *block, size_t size));

#endif
