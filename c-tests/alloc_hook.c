/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc_hook.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#ifdef HOOK_WRAP
/* Linked with --wrap for each of these. */
#define REAL(name) __real_##name
#define HOOK(name) __wrap_##name
#else
/* The names under which glibc keeps its own. */
#define REAL(name) __libc_##name
#define HOOK(name) name
#endif

void	*REAL(malloc)(size_t size);
void	*REAL(calloc)(size_t count, size_t size);
void	*REAL(realloc)(void *block, size_t size);
void	REAL(free)(void *block);
#ifdef HOOK_WRAP
int	REAL(posix_memalign)(void **block, size_t align, size_t size);
#else
void	*REAL(memalign)(size_t align, size_t size);
#endif

void	*HOOK(malloc)(size_t size);
void	*HOOK(calloc)(size_t count, size_t size);
void	*HOOK(realloc)(void *block, size_t size);
void	HOOK(free)(void *block);
int	HOOK(posix_memalign)(void **block, size_t align, size_t size);

struct hook hook;

static int on;

/* The blocks that are live: few, so that a list without order will do. */
static struct {
	void *block;
	size_t size;
} live[4096];

void
hook_on(void)
{
	hook.allocations = hook.failed = 0;
	hook.live_blocks = hook.live_bytes = hook.peak_bytes = 0;
	on = 1;
}

void
hook_off(void)
{
	on = 0;
}

void
hook_resume(void)
{
	on = 1;
}

void
hook_each_live(void (*look)(const void *block, size_t size))
{
	size_t i;

	for (i = 0; i < hook.live_blocks; i++)
		look(live[i].block, live[i].size);
}

static int
fails(void)
{
	size_t number;

	if (!on)
		return 0;
	number = ++hook.allocations;
	if (number < hook.fail_first ||
	    number - hook.fail_first >= hook.fail_count)
		return 0;
	hook.failed++;
	errno = ENOMEM;
	return 1;
}

static void *
note(void *block, size_t size)
{
	if (!on || block == NULL)
		return block;
	if (hook.live_blocks == sizeof(live) / sizeof(live[0]))
		__builtin_trap();
	live[hook.live_blocks].block = block;
	live[hook.live_blocks++].size = size;
	hook.live_bytes += size;
	if (hook.live_bytes > hook.peak_bytes)
		hook.peak_bytes = hook.live_bytes;
	return block;
}

static void
forget(void *block)
{
	size_t i;

	for (i = 0; on && i < hook.live_blocks; i++) {
		if (live[i].block != block)
			continue;
		if (hook.freeing != NULL)
			hook.freeing(block, live[i].size);
		hook.live_bytes -= live[i].size;
		live[i] = live[--hook.live_blocks];
		return;
	}
}

void *
HOOK(malloc)(size_t size)
{
	return fails() ? NULL : note(REAL(malloc)(size), size);
}

void *
HOOK(calloc)(size_t count, size_t size)
{
	return fails() ? NULL : note(REAL(calloc)(count, size), count * size);
}

void *
HOOK(realloc)(void *block, size_t size)
{
	void *moved;

	if (fails())
		return NULL;
	moved = REAL(realloc)(block, size);
	if (moved != NULL)
		forget(block);
	return note(moved, size);
}

void
HOOK(free)(void *block)
{
	if (block != NULL)
		forget(block);
	REAL(free)(block);
}

int
HOOK(posix_memalign)(void **block, size_t align, size_t size)
{
	if (fails())
		return ENOMEM;
#ifdef HOOK_WRAP
	if (REAL(posix_memalign)(block, align, size) != 0)
		return ENOMEM;
#else
	*block = REAL(memalign)(align, size);
	if (*block == NULL)
		return ENOMEM;
#endif
	note(*block, size);
	return 0;
}
