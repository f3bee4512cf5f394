/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the test programs share: cmocka, payloads that repeat exactly, and the
 * two calls that nearly every test makes many times.
 */
#ifndef SSHFLOW_TEST_SUPPORT_H
#define SSHFLOW_TEST_SUPPORT_H

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Has to come behind the headers above. */
#include <cmocka.h>

#include "sshflow.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define UNUSED(name) ((void)(name))

/* The largest payload that the tests make, and room for any packet of it. */
#define PAYLOAD_MAX 65536
#define PACKET_MAX (PAYLOAD_MAX + 1024)

/* More than any slice in the library's language may hold. */
#define TOO_LONG ((size_t)1 << (sizeof(size_t) * 8 - 1))

enum kind {
	KIND_TEXT,	/* words and numbers, as in a log */
	KIND_RANDOM,	/* nothing to gain */
	KIND_RUN,	/* one byte, repeated */
	KIND_COUNT
};

/* A small seeded generator (splitmix64): the tests must repeat exactly. */
uint64_t	random_next(uint64_t *state);
size_t		random_below(uint64_t *state, size_t end);

/* Fills a payload. The same state gives the same bytes. */
void	fill(uint64_t *state, enum kind kind, uint8_t *payload, size_t len);
/* Fills a payload of any kind and of 1 to max bytes; returns its length. */
size_t	fill_any(uint64_t *state, uint8_t *payload, size_t max);

/* Whether this run is slow (valgrind): then fewer rounds do. */
int	slow_run(void);

sshflow_config		*config_with(const char *key, const char *value);
sshflow_compressor	*compressor_with(int method, const char *level);
sshflow_decompressor	*decompressor_of(int method);

/* Compresses one payload, which has to work; returns the packet's length. */
size_t	compress_ok(sshflow_compressor *, const uint8_t *payload, size_t len,
	    uint32_t flags, uint8_t packet[PACKET_MAX]);

/*
 * Decodes one packet with `room` bytes at a time, checking what every answer
 * promises. Returns the last status; *len is the payload's length.
 */
int	decode(sshflow_decompressor *, const uint8_t *packet, size_t packet_len,
	    size_t room, uint8_t *payload, size_t capacity, size_t *len);

/* Decodes a packet, which has to give exactly this payload. */
void	decode_equals(sshflow_decompressor *, const uint8_t *packet,
	    size_t packet_len, const uint8_t *payload, size_t len);

/* Compresses and decodes one payload of any kind. */
void	exchange(sshflow_compressor *, sshflow_decompressor *, uint64_t *state,
	    uint32_t flags, size_t max);

#endif
