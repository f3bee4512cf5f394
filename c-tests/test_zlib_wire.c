/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The zlib wire against the system's zlib, called as the peers call it: what
 * they receive from the library, and what they send to it.
 */
#include "support.h"

#include <zlib.h>

static uint8_t payload[PAYLOAD_MAX], packet[PACKET_MAX], decoded[PACKET_MAX];

static const char *const levels[] = { "auto", "0", "1", "2", "3", "4", "5",
    "6", "7", "8", "9" };

/* zlib remembers where a stream lies: it is made in place. */
static void
inflater(z_stream *stream)
{
	memset(stream, 0, sizeof(*stream));
	assert_int_equal(inflateInit(stream), Z_OK);
}

/* packet.c of OpenSSH: inflate until nothing more comes. */
static size_t
inflate_as_openssh(z_stream *stream, size_t packet_len)
{
	uint8_t buffer[4096];
	size_t len = 0;
	int status;

	stream->next_in = packet;
	stream->avail_in = (uInt)packet_len;
	for (;;) {
		stream->next_out = buffer;
		stream->avail_out = sizeof(buffer);
		status = inflate(stream, Z_SYNC_FLUSH);
		if (status == Z_BUF_ERROR)
			return len;
		assert_int_equal(status, Z_OK);
		assert_true(len + sizeof(buffer) <= sizeof(decoded));
		memcpy(decoded + len, buffer,
		    sizeof(buffer) - stream->avail_out);
		len += sizeof(buffer) - stream->avail_out;
	}
}

/* Dropbear: one call, and what comes has to be all. */
static size_t
inflate_as_dropbear(z_stream *stream, size_t packet_len, size_t room)
{
	stream->next_in = packet;
	stream->avail_in = (uInt)packet_len;
	stream->next_out = decoded;
	stream->avail_out = (uInt)room;
	assert_int_equal(inflate(stream, Z_SYNC_FLUSH), Z_OK);
	assert_int_equal(stream->avail_in, 0);
	return room - stream->avail_out;
}

/* comp.c of libssh2: until a call leaves room, or has nothing to do. */
static size_t
inflate_as_libssh2(z_stream *stream, size_t packet_len)
{
	size_t room = 4 * packet_len + 16, len = 0;
	int status;

	stream->next_in = packet;
	stream->avail_in = (uInt)packet_len;
	for (;;) {
		if (room > sizeof(decoded) - len)
			room = sizeof(decoded) - len;
		stream->next_out = decoded + len;
		stream->avail_out = (uInt)room;
		status = inflate(stream, Z_PARTIAL_FLUSH);
		len += room - stream->avail_out;
		if (status == Z_OK && stream->avail_out > 0)
			return len;
		if (status == Z_BUF_ERROR)
			return len;
		assert_int_equal(status, Z_OK);
	}
}

static uint32_t
any_flags(uint64_t *seed)
{
	switch (random_below(seed, 8)) {
	case 0:
		return SSHFLOW_PACKET_SECRET;
	case 1:
		return SSHFLOW_PACKET_INTERACTIVE;
	case 2:
		return SSHFLOW_PACKET_GROUP(random_below(seed, 3));
	default:
		return 0;
	}
}

static void
real_peers_decode_what_is_sent(void **state)
{
	const int rounds = slow_run() ? 60 : 400;
	uint64_t seed = 43;
	size_t i, len, packet_len;
	int round;

	UNUSED(state);
	for (i = 0; i < COUNT(levels); i++) {
		sshflow_compressor *writer = compressor_with(
		    SSHFLOW_METHOD_ZLIB_DELAYED, levels[i]);
		z_stream openssh, dropbear, exact, libssh2;

		inflater(&openssh);
		inflater(&dropbear);
		inflater(&exact);
		inflater(&libssh2);
		for (round = 0; round < rounds; round++) {
			/* Dropbear takes up to 32,768 bytes. */
			len = fill_any(&seed, payload, 32768);
			if (round % 16 == 7)
				fill(&seed, (enum kind)random_below(&seed,
				    KIND_COUNT), payload, len = 32768);
			packet_len = compress_ok(writer, payload, len,
			    any_flags(&seed), packet);
			if (round == 0)
				assert_memory_equal(packet, "\x78\x9c", 2);
			assert_true(packet_len <= 32768 + 21);

			assert_int_equal(inflate_as_openssh(&openssh,
			    packet_len), len);
			assert_memory_equal(decoded, payload, len);
			assert_int_equal(inflate_as_dropbear(&dropbear,
			    packet_len, 32768 + 1), len);
			assert_memory_equal(decoded, payload, len);
			/* Since 2022.83: exactly enough room has to do. */
			assert_int_equal(inflate_as_dropbear(&exact,
			    packet_len, len), len);
			assert_memory_equal(decoded, payload, len);
			assert_int_equal(inflate_as_libssh2(&libssh2,
			    packet_len), len);
			assert_memory_equal(decoded, payload, len);
		}
		inflateEnd(&openssh);
		inflateEnd(&dropbear);
		inflateEnd(&exact);
		inflateEnd(&libssh2);
		sshflow_compressor_free(writer);
	}
}

/* A peer's deflate stream, and the library that reads it. */
struct peer {
	z_stream stream;
	sshflow_decompressor *reader;
};

static void
peer_init(struct peer *peer, int level, int window_bits, int memory_level,
    int strategy)
{
	memset(&peer->stream, 0, sizeof(peer->stream));
	assert_int_equal(deflateInit2(&peer->stream, level, Z_DEFLATED,
	    window_bits, memory_level, strategy), Z_OK);
	peer->reader = decompressor_of(SSHFLOW_METHOD_ZLIB_DELAYED);
}

static void
peer_free(struct peer *peer)
{
	deflateEnd(&peer->stream);
	sshflow_decompressor_free(peer->reader);
}

/* Deflates a piece and flushes it; returns what the packet has then. */
static size_t
peer_writes(struct peer *peer, size_t from, size_t len, size_t packet_len,
    int flush)
{
	z_stream *stream = &peer->stream;

	stream->next_in = payload + from;
	stream->avail_in = (uInt)len;
	stream->next_out = packet + packet_len;
	stream->avail_out = (uInt)(sizeof(packet) - packet_len);
	assert_int_equal(deflate(stream, flush), Z_OK);
	assert_int_equal(stream->avail_in, 0);
	assert_true(stream->avail_out > 0);
	return sizeof(packet) - stream->avail_out;
}

static void
packets_of_real_peers_are_decoded(void **state)
{
	static const int flushes[] = { Z_PARTIAL_FLUSH, Z_SYNC_FLUSH,
	    Z_FULL_FLUSH };
	static const int strategies[] = { Z_DEFAULT_STRATEGY, Z_FILTERED,
	    Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED };
	const int rounds = slow_run() ? 15 : 60;
	uint64_t seed = 47;
	size_t i, j, len, packet_len;
	int level, round;

	UNUSED(state);
	for (level = 0; level <= 9; level++) {
		for (i = 0; i < COUNT(strategies); i++) {
			for (j = 0; j < COUNT(flushes); j++) {
				struct peer peer;

				peer_init(&peer, level,
				    9 + (int)random_below(&seed, 7),
				    1 + (int)random_below(&seed, 9),
				    strategies[i]);
				for (round = 0; round < rounds; round++) {
					len = fill_any(&seed, payload, 20000);
					packet_len = peer_writes(&peer, 0, len,
					    0, flushes[j]);
					decode_equals(peer.reader, packet,
					    packet_len, payload, len);
				}
				peer_free(&peer);
			}
		}
	}
}

static void
several_blocks_in_a_packet_are_decoded(void **state)
{
	static const int flushes[] = { Z_PARTIAL_FLUSH, Z_SYNC_FLUSH,
	    Z_FULL_FLUSH, Z_BLOCK, Z_NO_FLUSH };
	const int rounds = slow_run() ? 100 : 1000;
	struct peer peer;
	uint64_t seed = 53;
	size_t len, at, take, packet_len;
	int round;

	UNUSED(state);
	peer_init(&peer, 6, 15, 8, Z_DEFAULT_STRATEGY);
	for (round = 0; round < rounds; round++) {
		len = fill_any(&seed, payload, 20000);
		packet_len = at = 0;
		while (at < len) {
			take = 1 + random_below(&seed, len - at);
			packet_len = peer_writes(&peer, at, take, packet_len,
			    at + take == len ? Z_PARTIAL_FLUSH :
			    flushes[random_below(&seed, COUNT(flushes))]);
			at += take;
		}
		decode_equals(peer.reader, packet, packet_len, payload, len);
	}
	peer_free(&peer);
}

/* PuTTY pads with empty blocks of fixed codes, ten bits each. */
static void
padding_blocks_are_decoded_and_their_number_is_bounded(void **state)
{
	struct peer peer;
	uint64_t seed = 59;
	size_t len, packet_len;
	int round, blocks, status, i;

	UNUSED(state);
	peer_init(&peer, 6, 15, 8, Z_DEFAULT_STRATEGY);
	for (round = 0; round < 200; round++) {
		len = fill_any(&seed, payload, 300);
		/* The stream's header comes first. */
		blocks = round == 0 ? 0 : (int)random_below(&seed, 20);
		for (i = 0; i < blocks; i++) {
			/* Not the last block, fixed codes, end of block. */
			status = deflatePrime(&peer.stream, 10, 2);
			assert_int_equal(status, Z_OK);
		}
		packet_len = peer_writes(&peer, 0, len, 0, Z_PARTIAL_FLUSH);
		decode_equals(peer.reader, packet, packet_len, payload, len);
	}
	peer_free(&peer);
}

static void
endless_empty_blocks_are_refused(void **state)
{
	/* Stored blocks of nothing, five bytes each, and one with a byte. */
	static const uint8_t empty[] = { 0, 0, 0, 0xff, 0xff };
	static const uint8_t full[] = { 0, 1, 0, 0xfe, 0xff, 'x' };
	size_t blocks, at, i, len;

	UNUSED(state);
	for (blocks = 0; blocks < 4000; blocks += 500) {
		sshflow_decompressor *reader = decompressor_of(
		    SSHFLOW_METHOD_ZLIB);
		int status;

		memcpy(packet, "\x78\x9c", at = 2);
		for (i = 0; i < blocks; i++, at += sizeof(empty))
			memcpy(packet + at, empty, sizeof(empty));
		memcpy(packet + at, full, sizeof(full));
		at += sizeof(full);
		status = decode(reader, packet, at, 100, decoded, 100, &len);
		assert_int_equal(status, blocks <= 1024 ? SSHFLOW_OK :
		    SSHFLOW_ERR_CORRUPT);
		sshflow_decompressor_free(reader);
	}
}

static void
refused(const uint8_t *bytes, size_t bytes_len)
{
	sshflow_decompressor *reader = decompressor_of(SSHFLOW_METHOD_ZLIB);
	size_t len;

	assert_int_equal(decode(reader, bytes, bytes_len, sizeof(decoded),
	    decoded, sizeof(decoded), &len), SSHFLOW_ERR_CORRUPT);
	sshflow_decompressor_free(reader);
}

static void
what_ssh_does_not_know_is_refused(void **state)
{
	/* A header that asks for a dictionary, one with a wrong check, one of
	 * another method, half of one, a block of a reserved kind. */
	static const uint8_t dictionary[] = { 0x78, 0xbb, 0, 0, 0, 0, 0 };
	static const uint8_t check[] = { 0x78, 0x9d, 0x03, 0, 0 };
	static const uint8_t method[] = { 0x79, 0x9c + 0x19, 0, 0, 0 };
	static const uint8_t half[] = { 0x78 };
	static const uint8_t reserved[] = { 0x78, 0x9c, 0x06, 0, 0 };
	z_stream stream;

	UNUSED(state);
	refused(dictionary, sizeof(dictionary));
	refused(check, sizeof(check));
	refused(method, sizeof(method));
	refused(half, sizeof(half));
	refused(reserved, sizeof(reserved));

	/* A stream that ends, as no SSH stream does. */
	memset(&stream, 0, sizeof(stream));
	assert_int_equal(deflateInit(&stream, 6), Z_OK);
	stream.next_in = payload;
	stream.avail_in = 1000;
	stream.next_out = packet;
	stream.avail_out = sizeof(packet);
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	refused(packet, sizeof(packet) - stream.avail_out);
	deflateEnd(&stream);

	/* A packet that decodes to nothing. */
	memcpy(packet, "\x78\x9c\x02\x00", 4);
	refused(packet, 4);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_peers_decode_what_is_sent),
		cmocka_unit_test(packets_of_real_peers_are_decoded),
		cmocka_unit_test(several_blocks_in_a_packet_are_decoded),
		cmocka_unit_test(
		    padding_blocks_are_decoded_and_their_number_is_bounded),
		cmocka_unit_test(endless_empty_blocks_are_refused),
		cmocka_unit_test(what_ssh_does_not_know_is_refused),
	};

	return cmocka_run_group_tests_name("zlib wire", tests, NULL, NULL);
}
