/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every function of the header with NULL in every combination of its pointer
 * positions. A call table says which of them the header lets be NULL; every
 * other combination has to be refused, with nothing written and nothing
 * changed. scripts/check-c compares the names here with the header's.
 */
#include "support.h"

#include <sys/socket.h>
#include <unistd.h>

/* Every bit of `null` makes the pointer of that position NULL. */
#define P(position, pointer) (null >> (position) & 1 ? NULL : (pointer))

static struct {
	sshflow_config *config;
	sshflow_compressor *compressor;
	sshflow_decompressor *decompressor;
	sshflow_link *link;
	sshflow_window *window;
	int socket;	/* of a TCP connection */
	uint8_t packet[PACKET_MAX];
	size_t packet_len;
	uint8_t out[PACKET_MAX];
} it;

/* Fails if an output was written by a call that was refused. */
#define UNTOUCHED(output, before) \
	assert_true(null == 0 || memcmp(&(output), &(before), sizeof(output)) == 0)

static const uint8_t text[] = "a payload, a payload, a payload, a payload";

static int
call_config_new(unsigned null)
{
	sshflow_config *out = NULL;
	int status = sshflow_config_new(P(0, &out));

	if (status == SSHFLOW_OK)
		assert_non_null(out);
	sshflow_config_free(out);
	return status;
}

static int
call_config_set(unsigned null)
{
	return sshflow_config_set(P(0, it.config), P(1, "level"), P(2, "3"));
}

static int
call_config_set_int(unsigned null)
{
	return sshflow_config_set_int(P(0, it.config), P(1, "level"), 3);
}

static int
call_config_get_int(unsigned null)
{
	int64_t value = 77, before = 77;
	int status = sshflow_config_get_int(P(0, it.config), P(1, "level"),
	    P(2, &value));

	UNTOUCHED(value, before);
	return status;
}

static int
call_config_get(unsigned null)
{
	char value[32] = "before", before[32] = "before";
	int status = sshflow_config_get(P(0, it.config), P(1, "level"),
	    P(2, value), sizeof(value));

	UNTOUCHED(value, before);
	return status;
}

static int
call_method_from_name(unsigned null)
{
	int method = 77, before = 77;
	int status = sshflow_method_from_name(P(0, "zlib"), 4, P(1, &method));

	UNTOUCHED(method, before);
	return status;
}

static int
call_compressor_new(unsigned null)
{
	sshflow_compressor *out = NULL;
	int status = sshflow_compressor_new(SSHFLOW_METHOD_ZSTD,
	    P(0, it.config), P(1, &out));

	assert_true((status == SSHFLOW_OK) == (out != NULL));
	sshflow_compressor_free(out);
	return status;
}

static int
call_compress(unsigned null)
{
	sshflow_slice parts[2];
	size_t out_len = 77, before = 77;
	int status;

	parts[0].data = P(4, text);
	parts[0].len = 3;
	parts[1].data = P(5, text + 3);
	parts[1].len = sizeof(text) - 3;
	memset(it.out, 0x5a, sizeof(it.out));
	status = sshflow_compress(P(0, it.compressor), P(1, parts), 2, 0,
	    P(2, it.out), sizeof(it.out), P(3, &out_len));
	UNTOUCHED(out_len, before);
	if (status != SSHFLOW_OK) {
		assert_int_equal(it.out[0], 0x5a);
		return status;
	}
	/* Only now and then: the stream was not moved by what was refused. */
	decode_equals(it.decompressor, it.out, out_len, text, sizeof(text));
	return status;
}

static int
call_feedback(unsigned null)
{
	return sshflow_compressor_feedback(P(0, it.compressor), 1, 2, 0);
}

static int
call_compressor_tcp(unsigned null)
{
	int status = sshflow_compressor_tcp(P(0, it.compressor), 1, it.socket);

	/* The system may not tell, as long as it says so. */
	return status == SSHFLOW_ERR_UNSUPPORTED ? SSHFLOW_OK : status;
}

static int
call_rekey(unsigned null)
{
	int status = sshflow_compressor_rekey(P(0, it.compressor),
	    SSHFLOW_METHOD_ZLIB);

	if (status == SSHFLOW_OK) {
		sshflow_decompressor_free(it.decompressor);
		it.decompressor = decompressor_of(SSHFLOW_METHOD_ZLIB);
	}
	return status;
}

static int
call_compressor_stats(unsigned null)
{
	sshflow_compress_stats stats, before;
	int status;

	memset(&stats, 0x5a, sizeof(stats));
	before = stats;
	status = sshflow_compressor_stats(P(0, it.compressor), P(1, &stats),
	    sizeof(stats));
	UNTOUCHED(stats, before);
	return status;
}

static int
call_decompressor_new(unsigned null)
{
	sshflow_decompressor *out = NULL;
	int status = sshflow_decompressor_new(SSHFLOW_METHOD_ZSTD,
	    P(0, it.config), P(1, &out));

	assert_true((status == SSHFLOW_OK) == (out != NULL));
	sshflow_decompressor_free(out);
	return status;
}

static int
call_decompress(unsigned null)
{
	size_t used = 77, len = 77, before = 77;
	int status;

	if (null == 0)
		it.packet_len = compress_ok(it.compressor, text, sizeof(text),
		    0, it.packet);
	memset(it.out, 0x5a, sizeof(it.out));
	status = sshflow_decompress(P(0, it.decompressor), P(1, it.packet),
	    it.packet_len, P(2, &used), P(3, it.out), sizeof(it.out),
	    P(4, &len));
	UNTOUCHED(used, before);
	UNTOUCHED(len, before);
	if (null != 0)
		assert_int_equal(it.out[0], 0x5a);
	return status;
}

static int
call_decompressor_stats(unsigned null)
{
	sshflow_decompress_stats stats, before;
	int status;

	memset(&stats, 0x5a, sizeof(stats));
	before = stats;
	status = sshflow_decompressor_stats(P(0, it.decompressor),
	    P(1, &stats), sizeof(stats));
	UNTOUCHED(stats, before);
	return status;
}

static int
call_link_new(unsigned null)
{
	sshflow_link *out = NULL;
	int status = sshflow_link_new(P(0, it.config), P(1, &out));

	assert_true((status == SSHFLOW_OK) == (out != NULL));
	sshflow_link_free(out);
	return status;
}

static int
call_link_peer(unsigned null)
{
	return sshflow_link_peer(P(0, it.link), P(1, "SSH-2.0-OpenSSH_9.9"),
	    19, 0);
}

static int
call_link_rtt(unsigned null)
{
	return sshflow_link_rtt(P(0, it.link), 1, 20000);
}

static int
call_tcp_min_rtt(unsigned null)
{
	uint32_t min_rtt_us = 77, before = 77;
	int status = sshflow_tcp_min_rtt(it.socket, P(0, &min_rtt_us));

	UNTOUCHED(min_rtt_us, before);
	/* The system may not tell, as long as it says so. */
	return status == SSHFLOW_ERR_UNSUPPORTED || status ==
	    SSHFLOW_ERR_STATE ? SSHFLOW_OK : status;
}

static int
call_window_new(unsigned null)
{
	sshflow_window *out = NULL;
	int status = sshflow_window_new(P(0, it.link), SSHFLOW_CHANNEL_BULK,
	    2097152, 32768, P(1, &out));

	assert_true((status == SSHFLOW_OK) == (out != NULL));
	sshflow_window_free(out);
	return status;
}

static int
call_window_received(unsigned null)
{
	return sshflow_window_received(P(0, it.window), 2, 1000);
}

static int
call_window_consumed(unsigned null)
{
	return sshflow_window_consumed(P(0, it.window), 3, 100);
}

static int
call_window_adjust(unsigned null)
{
	uint32_t increment = 77, before = 77;
	int status = sshflow_window_adjust(P(0, it.window), 4,
	    P(1, &increment));

	UNTOUCHED(increment, before);
	return status;
}

static int
call_window_granted(unsigned null)
{
	return sshflow_window_granted(P(0, it.window), 5, 100);
}

static int
call_window_require(unsigned null)
{
	return sshflow_window_require(P(0, it.window), 100);
}

static int
call_window_target(unsigned null)
{
	uint32_t size = 77, outstanding = 77, before = 77;
	int status = sshflow_window_target(P(0, it.window), P(1, &size),
	    P(2, &outstanding));

	UNTOUCHED(size, before);
	UNTOUCHED(outstanding, before);
	return status;
}

static int
call_window_stats(unsigned null)
{
	struct sshflow_window_stats stats, before;
	int status;

	memset(&stats, 0x5a, sizeof(stats));
	before = stats;
	status = sshflow_window_stats(P(0, it.window), P(1, &stats),
	    sizeof(stats));
	UNTOUCHED(stats, before);
	return status;
}

static const struct {
	const char *name;
	int (*call)(unsigned null);
	unsigned positions;	/* how many pointers there are */
	unsigned optional;	/* those of them that may be NULL, as bits */
} calls[] = {
	{ "sshflow_config_new", call_config_new, 1, 0 },
	{ "sshflow_config_set", call_config_set, 3, 0 },
	{ "sshflow_config_set_int", call_config_set_int, 2, 0 },
	{ "sshflow_config_get_int", call_config_get_int, 3, 0 },
	{ "sshflow_config_get", call_config_get, 3, 0 },
	{ "sshflow_method_from_name", call_method_from_name, 2, 0 },
	{ "sshflow_compressor_new", call_compressor_new, 2, 1 },
	{ "sshflow_compress", call_compress, 6, 0 },
	{ "sshflow_compressor_feedback", call_feedback, 1, 0 },
	{ "sshflow_compressor_tcp", call_compressor_tcp, 1, 0 },
	{ "sshflow_compressor_rekey", call_rekey, 1, 0 },
	{ "sshflow_compressor_stats", call_compressor_stats, 2, 0 },
	{ "sshflow_decompressor_new", call_decompressor_new, 2, 1 },
	{ "sshflow_decompress", call_decompress, 5, 0 },
	{ "sshflow_decompressor_stats", call_decompressor_stats, 2, 0 },
	{ "sshflow_link_new", call_link_new, 2, 1 },
	{ "sshflow_link_peer", call_link_peer, 2, 0 },
	{ "sshflow_link_rtt", call_link_rtt, 1, 0 },
	{ "sshflow_tcp_min_rtt", call_tcp_min_rtt, 1, 0 },
	{ "sshflow_window_new", call_window_new, 2, 0 },
	{ "sshflow_window_received", call_window_received, 1, 0 },
	{ "sshflow_window_consumed", call_window_consumed, 1, 0 },
	{ "sshflow_window_adjust", call_window_adjust, 2, 0 },
	{ "sshflow_window_granted", call_window_granted, 1, 0 },
	{ "sshflow_window_require", call_window_require, 1, 0 },
	{ "sshflow_window_target", call_window_target, 3, 0 },
	{ "sshflow_window_stats", call_window_stats, 2, 0 },
};

static void
every_combination(int method)
{
	unsigned i, null;
	int expected;

	it.config = config_with("level", "6");
	it.compressor = compressor_with(method, "6");
	it.decompressor = decompressor_of(method);
	it.socket = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(sshflow_link_new(NULL, &it.link), SSHFLOW_OK);
	assert_int_equal(sshflow_window_new(it.link, SSHFLOW_CHANNEL_BULK,
	    2097152, 32768, &it.window), SSHFLOW_OK);
	for (i = 0; i < COUNT(calls); i++) {
		for (null = 0; null < 1u << calls[i].positions; null++) {
			expected = null & ~calls[i].optional ?
			    SSHFLOW_ERR_INVALID_ARGUMENT : SSHFLOW_OK;
			if (calls[i].call(null) != expected)
				fail_msg("%s, NULL in positions 0x%x",
				    calls[i].name, null);
		}
		/* Whatever was refused, the same call works again. */
		assert_int_equal(calls[i].call(0), SSHFLOW_OK);
	}
	sshflow_config_free(it.config);
	sshflow_compressor_free(it.compressor);
	sshflow_decompressor_free(it.decompressor);
	sshflow_link_free(it.link);
	sshflow_window_free(it.window);
	close(it.socket);
}

static void
null_is_refused_where_the_header_does_not_allow_it(void **state)
{
	UNUSED(state);
	every_combination(SSHFLOW_METHOD_NONE);
	every_combination(SSHFLOW_METHOD_ZLIB);
	every_combination(SSHFLOW_METHOD_ZSTD);
}

static void
freeing_null_does_nothing(void **state)
{
	UNUSED(state);
	sshflow_config_free(NULL);
	sshflow_compressor_free(NULL);
	sshflow_decompressor_free(NULL);
	sshflow_link_free(NULL);
	sshflow_window_free(NULL);
}

static void
functions_without_pointers_take_any_number(void **state)
{
	static const int numbers[] = { INT32_MIN, -9, -8, -1, 0, 1, 2, 3, 4,
	    5, 255, INT32_MAX };
	size_t i;

	UNUSED(state);
	assert_string_equal(sshflow_strerror(SSHFLOW_OK), "success");
	for (i = 0; i < COUNT(numbers); i++) {
		int known = numbers[i] >= 0 && numbers[i] <= 3;

		assert_true(*sshflow_strerror(numbers[i]) != '\0');
		assert_true((sshflow_method_name(numbers[i]) != NULL) == known);
		assert_int_equal(sshflow_method_is_delayed(numbers[i]),
		    numbers[i] == 2 || numbers[i] == 3);
		assert_true((sshflow_compress_bound(numbers[i], 1) > 0) ==
		    known);
		assert_non_null(strstr(sshflow_method_list(numbers[i]),
		    "none"));
		assert_true(*sshflow_window_reason((uint32_t)numbers[i]) !=
		    '\0');
	}
	assert_true(sshflow_version_number() < UINT32_C(0x01000000));
	assert_non_null(strstr(sshflow_build_info(),
	    sshflow_version_string()));
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    null_is_refused_where_the_header_does_not_allow_it),
		cmocka_unit_test(freeing_null_does_nothing),
		cmocka_unit_test(functions_without_pointers_take_any_number),
	};

	return cmocka_run_group_tests_name("null", tests, NULL, NULL);
}
