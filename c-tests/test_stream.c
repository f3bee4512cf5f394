/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What compressor and decompressor promise each other: refused calls that can
 * be repeated, packets in pieces, key exchanges, growth, errors that last.
 */
#include "support.h"

static const int methods[] = { SSHFLOW_METHOD_NONE, SSHFLOW_METHOD_ZLIB,
    SSHFLOW_METHOD_ZLIB_DELAYED, SSHFLOW_METHOD_ZSTD };
static const char *const levels[] = { "auto", "-7", "-1", "0", "1", "3", "6",
    "9", "19" };

static uint8_t payload[PAYLOAD_MAX], packet[PACKET_MAX], twins[PACKET_MAX];

static int
try_compress(sshflow_compressor *compressor, size_t len, size_t capacity,
    size_t *packet_len)
{
	const sshflow_slice part = { payload, len };
	/* Of exactly this capacity, so that a checker sees one byte too many. */
	uint8_t *out = malloc(capacity > 0 ? capacity : 1);
	int status;

	assert_non_null(out);
	memset(out, 0x5a, capacity);
	status = sshflow_compress(compressor, &part, 1, 0, out, capacity,
	    packet_len);
	if (status == SSHFLOW_OK)
		memcpy(packet, out, *packet_len);
	free(out);
	return status;
}

/* A compressor that is refused room, and its twin that never is. */
static void
too_small_leaves_the_stream_untouched(void **state)
{
	uint64_t seed = 11;
	size_t i, len, bound, capacity, packet_len, twins_len;
	int round;

	UNUSED(state);
	for (i = 0; i < COUNT(methods); i++) {
		sshflow_compressor *refused = compressor_with(methods[i], "6");
		sshflow_compressor *twin = compressor_with(methods[i], "6");
		sshflow_decompressor *reader = decompressor_of(methods[i]);

		for (round = 0; round < 24; round++) {
			len = fill_any(&seed, payload, 600);
			bound = sshflow_compress_bound(methods[i], len);
			for (capacity = 0; capacity < bound; capacity++) {
				packet_len = 77;
				assert_int_equal(try_compress(refused, len,
				    capacity, &packet_len),
				    SSHFLOW_ERR_BUFFER_TOO_SMALL);
				assert_int_equal(packet_len, 77);
			}
			assert_int_equal(try_compress(refused, len, bound,
			    &packet_len), SSHFLOW_OK);
			twins_len = compress_ok(twin, payload, len, 0, twins);
			assert_int_equal(packet_len, twins_len);
			assert_memory_equal(packet, twins, twins_len);
			decode_equals(reader, packet, packet_len, payload, len);
		}
		sshflow_compressor_free(refused);
		sshflow_compressor_free(twin);
		sshflow_decompressor_free(reader);
	}
}

static void
packets_come_out_in_pieces_of_any_size(void **state)
{
	const size_t len = 300;
	uint8_t out[301];
	size_t i, j, room, packet_len, out_len;
	uint64_t seed = 13;

	UNUSED(state);
	for (i = 0; i < COUNT(methods); i++) {
		for (j = 0; j < COUNT(levels); j++) {
			sshflow_compressor *writer = compressor_with(
			    methods[i], levels[j]);
			sshflow_decompressor *reader = decompressor_of(
			    methods[i]);

			for (room = 1; room <= len + 1; room++) {
				fill(&seed, (enum kind)(room % KIND_COUNT),
				    payload, len);
				packet_len = compress_ok(writer, payload, len,
				    0, packet);
				assert_int_equal(decode(reader, packet,
				    packet_len, room, out, sizeof(out),
				    &out_len), SSHFLOW_OK);
				assert_int_equal(out_len, len);
				assert_memory_equal(out, payload, len);
			}
			sshflow_compressor_free(writer);
			sshflow_decompressor_free(reader);
		}
	}
}

/* A call without room may take input, but the payload comes out all the same. */
static void
calls_without_room_lose_nothing(void **state)
{
	const size_t len = 200;
	size_t i, at, got, used, written, packet_len;
	uint8_t out[200];
	uint64_t seed = 17;
	int status, round;

	UNUSED(state);
	for (i = 0; i < COUNT(methods); i++) {
		sshflow_compressor *writer = compressor_with(methods[i], "6");
		sshflow_decompressor *reader = decompressor_of(methods[i]);

		for (round = 0; round < 6; round++) {
			fill(&seed, (enum kind)(round % KIND_COUNT), payload,
			    len);
			packet_len = compress_ok(writer, payload, len, 0,
			    packet);
			at = got = 0;
			do {
				status = sshflow_decompress(reader, packet + at,
				    packet_len - at, &used, NULL, 0, &written);
				assert_int_equal(status, SSHFLOW_MORE);
				assert_int_equal(written, 0);
				at += used;
				status = sshflow_decompress(reader, packet + at,
				    packet_len - at, &used, out + got, 1,
				    &written);
				assert_int_equal(written, 1);
				at += used;
				got += written;
			} while (status == SSHFLOW_MORE && got < len);
			assert_int_equal(status, SSHFLOW_OK);
			assert_int_equal(got, len);
			assert_memory_equal(out, payload, len);
		}
		sshflow_compressor_free(writer);
		sshflow_decompressor_free(reader);
	}
}

static void
the_rest_of_a_packet_has_to_be_the_rest(void **state)
{
	size_t i, at, used, written, packet_len, len;
	uint8_t out[2000];
	uint64_t seed = 19;

	UNUSED(state);
	for (i = 0; i < COUNT(methods); i++) {
		sshflow_compressor *writer = compressor_with(methods[i], "6");
		sshflow_decompressor *reader = decompressor_of(methods[i]);

		fill(&seed, KIND_TEXT, payload, sizeof(out));
		packet_len = compress_ok(writer, payload, sizeof(out), 0,
		    packet);
		assert_int_equal(sshflow_decompress(reader, packet, packet_len,
		    &used, out, 100, &written), SSHFLOW_MORE);
		at = used;
		used = written = 77;
		assert_int_equal(sshflow_decompress(reader, packet + at,
		    packet_len - at + 1, &used, out, 100, &written),
		    SSHFLOW_ERR_INVALID_ARGUMENT);
		if (packet_len - at > 0)
			assert_int_equal(sshflow_decompress(reader,
			    packet + at, packet_len - at - 1, &used, out, 100,
			    &written), SSHFLOW_ERR_INVALID_ARGUMENT);
		assert_true(used == 77 && written == 77);
		assert_int_equal(decode(reader, packet + at, packet_len - at,
		    50, out, sizeof(out), &len), SSHFLOW_OK);
		assert_int_equal(len, sizeof(out) - 100);
		assert_memory_equal(out, payload + 100, len);
		sshflow_compressor_free(writer);
		sshflow_decompressor_free(reader);
	}
}

static void
key_exchanges_may_change_the_method(void **state)
{
	sshflow_compressor *writer = compressor_with(SSHFLOW_METHOD_ZLIB,
	    "auto");
	sshflow_decompressor *reader;
	sshflow_compress_stats stats;
	uint64_t seed = 23, packets = 0;
	size_t i, j;
	int n, k;

	UNUSED(state);
	for (i = 0; i < COUNT(methods); i++) {
		for (j = 0; j < COUNT(methods); j++) {
			int epochs[2];

			epochs[0] = methods[i];
			epochs[1] = methods[j];
			for (k = 0; k < 2; k++) {
				assert_int_equal(sshflow_compressor_rekey(
				    writer, epochs[k]), SSHFLOW_OK);
				reader = decompressor_of(epochs[k]);
				for (n = 0; n < 8; n++, packets++)
					exchange(writer, reader, &seed,
					    SSHFLOW_PACKET_GROUP(n % 3), 4096);
				sshflow_decompressor_free(reader);
			}
			/* A refused one changes nothing. */
			assert_int_equal(sshflow_compressor_rekey(writer, 4),
			    SSHFLOW_ERR_INVALID_ARGUMENT);
			assert_int_equal(sshflow_compressor_rekey(writer, -1),
			    SSHFLOW_ERR_INVALID_ARGUMENT);
			assert_int_equal(sshflow_compressor_stats(writer,
			    &stats, sizeof(stats)), SSHFLOW_OK);
			assert_int_equal(stats.method, epochs[1]);
			assert_int_equal(stats.packets, packets);
		}
	}
	sshflow_compressor_free(writer);
}

/* Two exchanges without a packet between them: OpenSSH does that. */
static void
a_key_exchange_may_follow_at_once(void **state)
{
	uint64_t seed = 29;
	size_t i;

	UNUSED(state);
	for (i = 0; i < COUNT(methods); i++) {
		sshflow_compressor *writer = compressor_with(methods[i], "6");
		sshflow_decompressor *reader = decompressor_of(methods[i]);

		assert_int_equal(sshflow_compressor_rekey(writer, methods[i]),
		    SSHFLOW_OK);
		exchange(writer, reader, &seed, 0, 3000);
		sshflow_decompressor_free(reader);
		reader = decompressor_of(methods[i]);
		assert_int_equal(sshflow_compressor_rekey(writer, methods[i]),
		    SSHFLOW_OK);
		assert_int_equal(sshflow_compressor_rekey(writer, methods[i]),
		    SSHFLOW_OK);
		exchange(writer, reader, &seed, 0, 3000);
		sshflow_compressor_free(writer);
		sshflow_decompressor_free(reader);
	}
}

static size_t
allowed_growth(int method, int first)
{
	switch (method) {
	case SSHFLOW_METHOD_ZLIB:
	case SSHFLOW_METHOD_ZLIB_DELAYED:
		return 13 + (first ? 2 : 0);
	case SSHFLOW_METHOD_ZSTD:
		return 1;
	default:
		return 0;
	}
}

static void
packets_grow_by_no_more_than_the_wire_allows(void **state)
{
	static const size_t lens[] = { 1, 2, 3, 7, 15, 16, 17, 63, 64, 100,
	    255, 256, 1000, 4096, 16384, 32767, 32768 };
	static const uint32_t flags[] = { 0, SSHFLOW_PACKET_INTERACTIVE,
	    SSHFLOW_PACKET_SECRET, SSHFLOW_PACKET_GROUP(1),
	    SSHFLOW_PACKET_GROUP(2), SSHFLOW_PACKET_GROUP(65535) };
	size_t i, j, k, packet_len;
	uint64_t seed = 31;
	int first;

	UNUSED(state);
	for (i = 0; i < COUNT(methods); i++) {
		for (j = 0; j < COUNT(levels); j++) {
			sshflow_compressor *writer = compressor_with(
			    methods[i], levels[j]);
			sshflow_decompressor *reader = decompressor_of(
			    methods[i]);

			first = 1;
			for (k = 0; k < COUNT(lens) * 6; k++) {
				size_t len = lens[k % COUNT(lens)];
				uint32_t flag = flags[random_below(&seed,
				    COUNT(flags))];

				fill(&seed, (enum kind)random_below(&seed,
				    KIND_COUNT), payload, len);
				packet_len = compress_ok(writer, payload, len,
				    flag, packet);
				if (packet_len > len + allowed_growth(
				    methods[i], first))
					fail_msg("method %d level %s: %zu "
					    "bytes became %zu", methods[i],
					    levels[j], len, packet_len);
				first = 0;
				decode_equals(reader, packet, packet_len,
				    payload, len);
			}
			sshflow_compressor_free(writer);
			sshflow_decompressor_free(reader);
		}
	}
}

static void
unknown_flags_are_refused(void **state)
{
	const sshflow_slice part = { payload, 100 };
	sshflow_compressor *writer = compressor_with(SSHFLOW_METHOD_ZSTD, "3");
	size_t len;
	unsigned bit;

	UNUSED(state);
	for (bit = 0; bit < 32; bit++) {
		int known = bit < 2 || (bit >= 8 && bit < 24);

		assert_int_equal(sshflow_compress(writer, &part, 1,
		    UINT32_C(1) << bit, packet, sizeof(packet), &len), known ?
		    SSHFLOW_OK : SSHFLOW_ERR_INVALID_ARGUMENT);
		assert_int_equal(sshflow_compressor_feedback(writer, UINT64_MAX,
		    SIZE_MAX, UINT32_C(1) << bit), bit == 0 ? SSHFLOW_OK :
		    SSHFLOW_ERR_INVALID_ARGUMENT);
	}
	sshflow_compressor_free(writer);
}

/* After `expected`, nothing but statistics and the end. */
static void
failed_for_good(sshflow_decompressor *reader, const uint8_t *bad, size_t len,
    int expected)
{
	static uint8_t out[PAYLOAD_MAX];
	sshflow_decompress_stats stats;
	size_t out_len;
	int i;

	assert_int_equal(decode(reader, bad, len, sizeof(out), out,
	    sizeof(out), &out_len), expected);
	for (i = 0; i < 3; i++)
		assert_int_equal(decode(reader, bad, len, sizeof(out), out,
		    sizeof(out), &out_len), SSHFLOW_ERR_STATE);
	assert_int_equal(sshflow_decompressor_stats(reader, &stats,
	    sizeof(stats)), SSHFLOW_OK);
	sshflow_decompressor_free(reader);
}

static void
errors_of_the_wire_last(void **state)
{
	static const uint8_t bad[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	sshflow_config *config = config_with("max_payload", "1024");
	size_t i, len;
	uint64_t seed = 37;

	UNUSED(state);
	for (i = 0; i < COUNT(methods); i++) {
		sshflow_compressor *writer = compressor_with(methods[i], "6");
		sshflow_decompressor *reader;

		assert_int_equal(sshflow_decompressor_new(methods[i], config,
		    &reader), SSHFLOW_OK);
		fill(&seed, KIND_TEXT, payload, 1025);
		len = compress_ok(writer, payload, 1024, 0, packet);
		decode_equals(reader, packet, len, payload, 1024);
		len = compress_ok(writer, payload, 1025, 0, packet);
		failed_for_good(reader, packet, len, SSHFLOW_ERR_TOO_LARGE);
		if (methods[i] != SSHFLOW_METHOD_NONE)
			failed_for_good(decompressor_of(methods[i]), bad,
			    sizeof(bad), SSHFLOW_ERR_CORRUPT);
		sshflow_compressor_free(writer);
	}
	sshflow_config_free(config);
}

static void
totals_add_up(void **state)
{
	sshflow_compress_stats sent;
	sshflow_decompress_stats received;
	uint64_t raw, wire, seed = 41;
	size_t i, j, len, packet_len;

	UNUSED(state);
	for (i = 0; i < COUNT(methods); i++) {
		sshflow_compressor *writer = compressor_with(methods[i], "1");
		sshflow_decompressor *reader = decompressor_of(methods[i]);
		uint64_t by_level = 0;

		raw = wire = 0;
		for (j = 0; j < 100; j++) {
			len = fill_any(&seed, payload, 4096);
			packet_len = compress_ok(writer, payload, len, 0,
			    packet);
			decode_equals(reader, packet, packet_len, payload, len);
			raw += len;
			wire += packet_len;
		}
		assert_int_equal(sshflow_compressor_stats(writer, &sent,
		    sizeof(sent)), SSHFLOW_OK);
		assert_int_equal(sshflow_decompressor_stats(reader, &received,
		    sizeof(received)), SSHFLOW_OK);
		assert_true(sent.raw_bytes == raw && sent.wire_bytes == wire);
		assert_true(received.raw_bytes == raw &&
		    received.wire_bytes == wire);
		assert_true(sent.packets == 100 && received.packets == 100);
		assert_int_equal(sent.method, methods[i]);
		assert_int_equal(received.method, methods[i]);
		assert_int_equal(sent.level_count,
		    COUNT(sent.level_packets));
		for (j = 0; j < sent.level_count; j++)
			by_level += sent.level_packets[j];
		assert_int_equal(by_level + sent.stored_packets, 100);
		/* most are made to pack */
		assert_int_equal(sent.main_level,
		    methods[i] == SSHFLOW_METHOD_NONE ? INT32_MIN : 1);
		/* with a fixed level there is no reason to tell */
		assert_int_equal(sent.pace, SSHFLOW_PACE_UNKNOWN);
		assert_true(sent.link_bytes_per_s == 0);
		assert_true(sent.memory_bytes <= sent.memory_peak_bytes);
		sshflow_compressor_free(writer);
		sshflow_decompressor_free(reader);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_small_leaves_the_stream_untouched),
		cmocka_unit_test(packets_come_out_in_pieces_of_any_size),
		cmocka_unit_test(calls_without_room_lose_nothing),
		cmocka_unit_test(the_rest_of_a_packet_has_to_be_the_rest),
		cmocka_unit_test(key_exchanges_may_change_the_method),
		cmocka_unit_test(a_key_exchange_may_follow_at_once),
		cmocka_unit_test(packets_grow_by_no_more_than_the_wire_allows),
		cmocka_unit_test(unknown_flags_are_refused),
		cmocka_unit_test(errors_of_the_wire_last),
		cmocka_unit_test(totals_add_up),
	};

	return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
