/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lengths and counts at their ends: 0, 1, just too much, and more than any
 * object in memory can have.
 */
#include "support.h"

static const uint8_t text[] = "a payload, a payload, a payload, a payload";
static const int methods[] = { SSHFLOW_METHOD_NONE, SSHFLOW_METHOD_ZLIB,
    SSHFLOW_METHOD_ZLIB_DELAYED, SSHFLOW_METHOD_ZSTD };

static void
names_of_any_length(void **state)
{
	int method = 77;

	UNUSED(state);
	assert_int_equal(sshflow_method_from_name(NULL, 0, &method),
	    SSHFLOW_ERR_UNSUPPORTED);
	assert_int_equal(sshflow_method_from_name("zlib", 0, &method),
	    SSHFLOW_ERR_UNSUPPORTED);
	assert_int_equal(sshflow_method_from_name("zlib", 3, &method),
	    SSHFLOW_ERR_UNSUPPORTED);
	assert_int_equal(sshflow_method_from_name("zlib", 5, &method),
	    SSHFLOW_ERR_UNSUPPORTED);
	assert_int_equal(sshflow_method_from_name("zlib", SIZE_MAX, &method),
	    SSHFLOW_ERR_INVALID_ARGUMENT);
	assert_int_equal(sshflow_method_from_name("zlib", TOO_LONG, &method),
	    SSHFLOW_ERR_INVALID_ARGUMENT);
	assert_int_equal(method, 77);
	assert_int_equal(sshflow_method_from_name("zlib@other", 4, &method),
	    SSHFLOW_OK);
	assert_int_equal(method, SSHFLOW_METHOD_ZLIB);
}

static void
peers_of_any_length(void **state)
{
	static const char ident[] = "SSH-2.0-OpenSSH_9.9\r\n";
	sshflow_link *link;
	size_t len;

	UNUSED(state);
	assert_int_equal(sshflow_link_new(NULL, &link), SSHFLOW_OK);
	for (len = 0; len < 4; len++)
		assert_int_equal(sshflow_link_peer(link, ident, len, 0),
		    SSHFLOW_ERR_INVALID_ARGUMENT);
	for (len = 4; len < sizeof(ident); len++)
		assert_int_equal(sshflow_link_peer(link, ident, len, 1),
		    SSHFLOW_OK);
	assert_int_equal(sshflow_link_peer(link, NULL, 0, 0),
	    SSHFLOW_ERR_INVALID_ARGUMENT);
	assert_int_equal(sshflow_link_peer(link, ident, SIZE_MAX, 0),
	    SSHFLOW_ERR_INVALID_ARGUMENT);
	assert_int_equal(sshflow_link_peer(link, ident, TOO_LONG, 0),
	    SSHFLOW_ERR_INVALID_ARGUMENT);
	assert_int_equal(sshflow_link_peer(link, ident, 19, 2),
	    SSHFLOW_ERR_INVALID_ARGUMENT);
	sshflow_link_free(link);
}

static void
bounds_of_any_length(void **state)
{
	static const size_t too_long[] = { ((size_t)1 << 30) + 1,
	    (size_t)1 << 31, UINT32_MAX, TOO_LONG - 1, TOO_LONG, SIZE_MAX };
	size_t i, j;

	UNUSED(state);
	for (i = 0; i < COUNT(methods); i++) {
		for (j = 0; j < COUNT(too_long); j++)
			assert_int_equal(sshflow_compress_bound(methods[i],
			    too_long[j]), 0);
		for (j = 0; j <= 30; j++)
			assert_true(sshflow_compress_bound(methods[i],
			    (size_t)1 << j) >= (size_t)1 << j);
	}
}

static int
compress_parts(sshflow_compressor *compressor, const sshflow_slice *parts,
    size_t count)
{
	static uint8_t out[PACKET_MAX];
	size_t len = 77;
	int status = sshflow_compress(compressor, parts, count, 0, out,
	    sizeof(out), &len);

	assert_true(status == SSHFLOW_OK || len == 77);
	return status;
}

static void
payloads_of_impossible_length(void **state)
{
	sshflow_slice parts[4];
	sshflow_compressor *compressor;
	sshflow_decompressor *decompressor;
	size_t i, n;
	uint64_t seed = 3;

	UNUSED(state);
	for (i = 0; i < COUNT(methods); i++) {
		compressor = compressor_with(methods[i], "6");
		decompressor = decompressor_of(methods[i]);

		/* A payload of no bytes, in all the ways to say it. */
		assert_int_equal(compress_parts(compressor, NULL, 0),
		    SSHFLOW_ERR_INVALID_ARGUMENT);
		memset(parts, 0, sizeof(parts));
		assert_int_equal(compress_parts(compressor, parts, 0),
		    SSHFLOW_ERR_INVALID_ARGUMENT);
		assert_int_equal(compress_parts(compressor, parts, 4),
		    SSHFLOW_ERR_INVALID_ARGUMENT);

		/* Counts and lengths that nothing in memory can have. */
		assert_int_equal(compress_parts(compressor, parts, SIZE_MAX),
		    SSHFLOW_ERR_INVALID_ARGUMENT);
		assert_int_equal(compress_parts(compressor, parts,
		    SIZE_MAX / sizeof(parts[0]) + 1),
		    SSHFLOW_ERR_INVALID_ARGUMENT);
		assert_int_equal(compress_parts(compressor, parts,
		    TOO_LONG / sizeof(parts[0])),
		    SSHFLOW_ERR_INVALID_ARGUMENT);
		parts[1].data = text;
		parts[1].len = TOO_LONG;
		assert_int_equal(compress_parts(compressor, parts, 4),
		    SSHFLOW_ERR_INVALID_ARGUMENT);
		parts[1].len = SIZE_MAX;
		assert_int_equal(compress_parts(compressor, parts, 4),
		    SSHFLOW_ERR_INVALID_ARGUMENT);

		/* Lengths that are possible each, and too much. */
		parts[1].len = ((size_t)1 << 30) + 1;
		assert_int_equal(compress_parts(compressor, parts, 4),
		    SSHFLOW_ERR_TOO_LARGE);
		for (n = 0; n < 4; n++) {
			parts[n].data = text;
			parts[n].len = TOO_LONG - 1;
		}
		assert_int_equal(compress_parts(compressor, parts, 4),
		    SSHFLOW_ERR_TOO_LARGE);

		exchange(compressor, decompressor, &seed, 0, 4096);
		sshflow_compressor_free(compressor);
		sshflow_decompressor_free(decompressor);
	}
}

static void
rooms_of_impossible_length(void **state)
{
	const sshflow_slice part = { text, sizeof(text) };
	sshflow_compressor *compressor;
	sshflow_decompressor *decompressor;
	uint8_t packet[PACKET_MAX], out[64];
	size_t i, len, used, written;

	UNUSED(state);
	for (i = 0; i < COUNT(methods); i++) {
		compressor = compressor_with(methods[i], "6");
		decompressor = decompressor_of(methods[i]);
		assert_int_equal(sshflow_compress(compressor, &part, 1, 0,
		    packet, SIZE_MAX, &len), SSHFLOW_ERR_INVALID_ARGUMENT);
		assert_int_equal(sshflow_compress(compressor, &part, 1, 0,
		    packet, TOO_LONG, &len), SSHFLOW_ERR_INVALID_ARGUMENT);
		assert_int_equal(sshflow_compress(compressor, &part, 1, 0,
		    NULL, 0, &len), SSHFLOW_ERR_BUFFER_TOO_SMALL);
		len = compress_ok(compressor, text, sizeof(text), 0, packet);

		assert_int_equal(sshflow_decompress(decompressor, packet, len,
		    &used, out, SIZE_MAX, &written),
		    SSHFLOW_ERR_INVALID_ARGUMENT);
		assert_int_equal(sshflow_decompress(decompressor, packet,
		    SIZE_MAX, &used, out, sizeof(out), &written),
		    SSHFLOW_ERR_INVALID_ARGUMENT);
		assert_int_equal(sshflow_decompress(decompressor, packet,
		    TOO_LONG, &used, out, sizeof(out), &written),
		    SSHFLOW_ERR_INVALID_ARGUMENT);
		assert_int_equal(sshflow_decompress(decompressor, packet, 0,
		    &used, out, sizeof(out), &written),
		    SSHFLOW_ERR_INVALID_ARGUMENT);
		assert_int_equal(sshflow_decompress(decompressor, NULL, 0,
		    &used, out, sizeof(out), &written),
		    SSHFLOW_ERR_INVALID_ARGUMENT);
		decode_equals(decompressor, packet, len, text, sizeof(text));
		sshflow_compressor_free(compressor);
		sshflow_decompressor_free(decompressor);
	}
}

/* What `get` writes for a size of the caller's. */
struct growing {
	int (*get)(const void *handle, void *stats, size_t size);
	const void *handle;
	size_t size;
};

static void
statistics_of_any_size(const struct growing *it)
{
	static const size_t refused[] = { 0, 4097, TOO_LONG, SIZE_MAX };
	uint8_t whole[4096], part[4096 + 8];
	size_t i, n;

	memset(whole, 0x5a, sizeof(whole));
	assert_int_equal(it->get(it->handle, whole, it->size), SSHFLOW_OK);
	for (i = 0; i < COUNT(refused); i++) {
		memset(part, 0x5a, sizeof(part));
		assert_int_equal(it->get(it->handle, part, refused[i]),
		    SSHFLOW_ERR_INVALID_ARGUMENT);
		assert_int_equal(part[0], 0x5a);
	}
	for (n = 1; n <= 4096; n++) {
		memset(part, 0x5a, sizeof(part));
		assert_int_equal(it->get(it->handle, part, n), SSHFLOW_OK);
		/* The front of what there is, zeroes, and not a byte more. */
		assert_memory_equal(part, whole, n < it->size ? n : it->size);
		for (i = it->size; i < n; i++)
			assert_int_equal(part[i], 0);
		assert_int_equal(part[n], 0x5a);
	}
}

static int
get_compressor_stats(const void *handle, void *stats, size_t size)
{
	return sshflow_compressor_stats(handle, stats, size);
}

static int
get_decompressor_stats(const void *handle, void *stats, size_t size)
{
	return sshflow_decompressor_stats(handle, stats, size);
}

static int
get_window_stats(const void *handle, void *stats, size_t size)
{
	return sshflow_window_stats(handle, stats, size);
}

static void
statistics_for_older_and_newer_callers(void **state)
{
	sshflow_compressor *compressor = compressor_with(SSHFLOW_METHOD_ZSTD,
	    "3");
	sshflow_decompressor *decompressor = decompressor_of(
	    SSHFLOW_METHOD_ZSTD);
	const struct growing sending = { get_compressor_stats, compressor,
	    sizeof(sshflow_compress_stats) };
	const struct growing receiving = { get_decompressor_stats,
	    decompressor, sizeof(sshflow_decompress_stats) };
	struct growing flow = { get_window_stats, NULL,
	    sizeof(struct sshflow_window_stats) };
	sshflow_link *link;
	sshflow_window *window;
	uint64_t seed = 5;
	int i;

	UNUSED(state);
	assert_int_equal(sshflow_link_new(NULL, &link), SSHFLOW_OK);
	assert_int_equal(sshflow_window_new(link, SSHFLOW_CHANNEL_BULK,
	    2097152, 32768, &window), SSHFLOW_OK);
	flow.handle = window;
	statistics_of_any_size(&flow);
	sshflow_window_free(window);
	sshflow_link_free(link);
	for (i = 0; i < 20; i++)
		exchange(compressor, decompressor, &seed, 0, 4096);
	statistics_of_any_size(&sending);
	statistics_of_any_size(&receiving);
	sshflow_compressor_free(compressor);
	sshflow_decompressor_free(decompressor);
}

/* Programs that were compiled with this version run with every later one. */
#define AT(type, field, offset) \
	assert_int_equal(offsetof(type, field), offset)

static void
fields_stay_where_they_are(void **state)
{
	UNUSED(state);
	AT(sshflow_slice, data, 0);
	AT(sshflow_slice, len, sizeof(void *));
	AT(sshflow_compress_stats, raw_bytes, 0);
	AT(sshflow_compress_stats, wire_bytes, 8);
	AT(sshflow_compress_stats, packets, 16);
	AT(sshflow_compress_stats, stored_packets, 24);
	AT(sshflow_compress_stats, spent_us, 32);
	AT(sshflow_compress_stats, effort_changes, 40);
	AT(sshflow_compress_stats, memory_bytes, 48);
	AT(sshflow_compress_stats, memory_peak_bytes, 56);
	AT(sshflow_compress_stats, method, 64);
	AT(sshflow_compress_stats, level, 68);
	AT(sshflow_compress_stats, last_level, 72);
	AT(sshflow_compress_stats, level_count, 76);
	AT(sshflow_compress_stats, level_packets, 80);
	AT(sshflow_compress_stats, main_level, 296);
	AT(sshflow_compress_stats, pace, 300);
	AT(sshflow_compress_stats, link_bytes_per_s, 304);
	AT(sshflow_decompress_stats, wire_bytes, 0);
	AT(sshflow_decompress_stats, raw_bytes, 8);
	AT(sshflow_decompress_stats, packets, 16);
	AT(sshflow_decompress_stats, memory_bytes, 24);
	AT(sshflow_decompress_stats, memory_peak_bytes, 32);
	AT(sshflow_decompress_stats, method, 40);
	AT(sshflow_decompress_stats, reserved, 44);
	AT(struct sshflow_window_stats, received, 0);
	AT(struct sshflow_window_stats, consumed, 8);
	AT(struct sshflow_window_stats, granted, 16);
	AT(struct sshflow_window_stats, backlog, 24);
	AT(struct sshflow_window_stats, rate, 32);
	AT(struct sshflow_window_stats, window, 40);
	AT(struct sshflow_window_stats, target, 44);
	AT(struct sshflow_window_stats, stock, 48);
	AT(struct sshflow_window_stats, credit, 52);
	AT(struct sshflow_window_stats, peer_cap, 56);
	AT(struct sshflow_window_stats, min_rtt_us, 60);
	AT(struct sshflow_window_stats, adjusts, 64);
	AT(struct sshflow_window_stats, grows, 68);
	AT(struct sshflow_window_stats, shrinks, 72);
	AT(struct sshflow_window_stats, probes, 76);
	AT(struct sshflow_window_stats, reason, 80);
	AT(struct sshflow_window_stats, latency_mode, 84);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_any_length),
		cmocka_unit_test(peers_of_any_length),
		cmocka_unit_test(bounds_of_any_length),
		cmocka_unit_test(payloads_of_impossible_length),
		cmocka_unit_test(rooms_of_impossible_length),
		cmocka_unit_test(statistics_for_older_and_newer_callers),
		cmocka_unit_test(fields_stay_where_they_are),
	};

	return cmocka_run_group_tests_name("length", tests, NULL, NULL);
}
