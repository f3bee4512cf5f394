/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that runs out at every single allocation, memory that is given back,
 * memory that is not taken before it is needed, and payload that is gone from
 * it when it is freed.
 */
#include "support.h"
#include "alloc_hook.h"

#include <sys/wait.h>
#include <unistd.h>
#include <valgrind/memcheck.h>

/* Enough for three groups, each with a packet that does not pack. */
static int packets = 40;

static uint8_t payload[PAYLOAD_MAX], packet[PACKET_MAX], decoded[PACKET_MAX];

/* What one run has seen; the checks come when the hook is off. */
static struct {
	unsigned no_memory, wrong;
} seen;

/* A status that a call may have while memory runs out. */
static int
fine(int status)
{
	if (status == SSHFLOW_ERR_NO_MEMORY)
		seen.no_memory++;
	else if (status != SSHFLOW_OK)
		seen.wrong++;
	return status == SSHFLOW_OK;
}

/*
 * Sends packets until `reader` fails for want of memory. The writer never
 * does: packets go out stored then. Fills with the hook on, which allocates
 * nothing.
 */
static void
transfer(sshflow_compressor *writer, sshflow_decompressor *reader)
{
	const sshflow_slice parts[2] = { { payload, 5 }, { payload + 5, 2995 } };
	uint64_t seed = 61;
	size_t len, used, out_len;
	int i, status;

	for (i = 0; i < packets; i++) {
		fill(&seed, i % 5 == 4 ? KIND_RANDOM : KIND_TEXT, payload,
		    3000);
		status = sshflow_compress(writer, parts, 2,
		    SSHFLOW_PACKET_GROUP(i % 3), packet, sizeof(packet), &len);
		if (status != SSHFLOW_OK) {
			seen.wrong++;
			return;
		}
		if (reader == NULL)
			continue;
		status = sshflow_decompress(reader, packet, len, &used,
		    decoded, sizeof(decoded), &out_len);
		if (status == SSHFLOW_ERR_NO_MEMORY) {
			seen.no_memory++;
			status = sshflow_decompress(reader, packet, len, &used,
			    decoded, sizeof(decoded), &out_len);
			if (status != SSHFLOW_ERR_STATE)
				seen.wrong++;
			reader = NULL;
		} else if (status != SSHFLOW_OK || out_len != 3000 ||
		    memcmp(decoded, payload, 3000) != 0)
			seen.wrong++;
	}
}

/* The windows of a connection, each freed where it could be had. */
static void
windows(const sshflow_config *config)
{
	sshflow_link *link = NULL;
	sshflow_window *window[4] = { NULL, NULL, NULL, NULL };
	uint32_t increment;
	int i;

	if (!fine(sshflow_link_new(config, &link)))
		return;
	fine(sshflow_link_peer(link, "SSH-2.0-OpenSSH_9.9", 19, 0));
	fine(sshflow_link_rtt(link, 1, 50000));
	for (i = 0; i < 4; i++) {
		if (!fine(sshflow_window_new(link, i % 3, 2097152, 32768,
		    &window[i])))
			continue;
		fine(sshflow_window_received(window[i], 2, 1000000));
		fine(sshflow_window_consumed(window[i], 3, 1000000));
		fine(sshflow_window_adjust(window[i], 4, &increment));
	}
	sshflow_window_free(window[0]);
	sshflow_link_free(link);
	for (i = 1; i < 4; i++)
		sshflow_window_free(window[i]);
}

static void
session(int first, int second, const char *level)
{
	sshflow_config *config = NULL;
	sshflow_compressor *writer = NULL;
	sshflow_decompressor *reader = NULL, *next = NULL;
	char text[32];

	if (fine(sshflow_config_new(&config))) {
		fine(sshflow_config_set(config, "level", level));
		fine(sshflow_config_get(config, "level", text, sizeof(text)));
		fine(sshflow_config_get(config, "window_max", text,
		    sizeof(text)));
	}
	windows(config);
	fine(sshflow_decompressor_new(first, config, &reader));
	if (fine(sshflow_compressor_new(first, config, &writer))) {
		transfer(writer, reader);
		fine(sshflow_compressor_rekey(writer, second));
		fine(sshflow_decompressor_new(second, config, &next));
		transfer(writer, next);
	}
	sshflow_compressor_free(writer);
	sshflow_decompressor_free(reader);
	sshflow_decompressor_free(next);
	sshflow_config_free(config);
}

struct scenario {
	int first, second;
	const char *level;
};

static const struct scenario scenarios[] = {
	{ SSHFLOW_METHOD_ZLIB, SSHFLOW_METHOD_ZSTD, "6" },
	{ SSHFLOW_METHOD_ZSTD, SSHFLOW_METHOD_ZLIB_DELAYED, "1" },
	{ SSHFLOW_METHOD_ZSTD, SSHFLOW_METHOD_ZSTD, "auto" },
	{ SSHFLOW_METHOD_ZLIB, SSHFLOW_METHOD_NONE, "auto" },
};

/* Runs with allocation `first` and `count` - 1 more failing. */
static void
run(const struct scenario *it, size_t first, size_t count)
{
	memset(&seen, 0, sizeof(seen));
	hook.fail_first = first;
	hook.fail_count = count;
	hook_on();
	session(it->first, it->second, it->level);
	hook_off();
	if (seen.wrong != 0)
		fail_msg("allocation %zu: %u wrong answers", first, seen.wrong);
	if (hook.live_blocks != 0)
		fail_msg("allocation %zu: %zu blocks leaked", first,
		    hook.live_blocks);
}

static void
every_allocation_may_fail(void **state)
{
	size_t i, n, total, failed;

	UNUSED(state);
	for (i = 0; i < COUNT(scenarios); i++) {
		run(&scenarios[i], 1, 0);
		assert_int_equal(seen.no_memory, 0);
		total = hook.allocations;
		assert_in_range(total, 8, 1000);
		failed = 0;
		/* Each one alone, each one and the next, each and all behind. */
		for (n = 1; n <= total; n++) {
			run(&scenarios[i], n, 1);
			failed += hook.failed;
			if (slow_run())
				continue;
			run(&scenarios[i], n, 2);
			run(&scenarios[i], n, SIZE_MAX);
		}
		/* With `auto`, time decides how many engines there are. */
		if (strcmp(scenarios[i].level, "auto") != 0)
			assert_int_equal(failed, total);
		assert_true(failed > 0);
		/* With nothing at all, that is said. */
		run(&scenarios[i], 1, SIZE_MAX);
		assert_true(seen.no_memory > 0);
	}
}

/* What happens once in a process may fail as well. */
static void
the_first_call_may_fail(void **state)
{
	size_t n;
	pid_t child;
	int status;

	UNUSED(state);
	for (n = 1; n <= 4; n++) {
		fflush(stdout);
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			hook.fail_first = n;
			hook.fail_count = SIZE_MAX;
			hook_on();
			session(SSHFLOW_METHOD_ZSTD, SSHFLOW_METHOD_ZLIB, "3");
			(void)sshflow_build_info();
			hook_off();
			_exit(seen.wrong == 0 && hook.failed > 0 ? 0 : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

static void
a_handle_that_never_sees_a_packet_is_small(void **state)
{
	int method;

	UNUSED(state);
	hook.fail_count = 0;
	for (method = 0; method <= SSHFLOW_METHOD_ZSTD; method++) {
		sshflow_compressor *writer;
		sshflow_decompressor *reader;
		size_t writers, readers;

		hook_on();
		assert_int_equal(sshflow_compressor_new(method, NULL, &writer),
		    SSHFLOW_OK);
		writers = hook.peak_bytes;
		sshflow_compressor_free(writer);
		hook_on();
		assert_int_equal(sshflow_decompressor_new(method, NULL,
		    &reader), SSHFLOW_OK);
		readers = hook.peak_bytes;
		sshflow_decompressor_free(reader);
		hook_off();
		assert_in_range(writers, 1, 4095);
		assert_in_range(readers, 1, 4095);
		assert_int_equal(hook.live_blocks, 0);
	}
}

static void
a_link_and_a_window_are_small(void **state)
{
	sshflow_link *link;
	sshflow_window *window;
	size_t links;

	UNUSED(state);
	hook.fail_count = 0;
	hook_on();
	assert_int_equal(sshflow_link_new(NULL, &link), SSHFLOW_OK);
	links = hook.live_bytes;
	assert_int_equal(sshflow_window_new(link, 0, 2097152, 32768, &window),
	    SSHFLOW_OK);
	assert_in_range(links, 1, 4095);
	assert_in_range(hook.live_bytes - links, 1, 4095);
	sshflow_link_free(link);
	sshflow_window_free(window);
	hook_off();
	assert_int_equal(hook.live_blocks, 0);
}

static const uint8_t marker[] = "m4rk3r: my voice is my passport; ";

static size_t blocks_with_marker, bytes_looked_at;

/* Looks at all there is, at what was never written too. */
static void
look(const void *block, size_t size)
{
	const uint8_t *bytes = block;
	size_t i;

	VALGRIND_DISABLE_ERROR_REPORTING;
	bytes_looked_at += size;
	for (i = 0; i + 8 <= size; i++) {
		if (memcmp(bytes + i, marker, 8) == 0) {
			blocks_with_marker++;
			break;
		}
	}
	VALGRIND_ENABLE_ERROR_REPORTING;
}

/* Packets that hold the marker, packed with it and, for long, behind it. */
static void
send_markers(sshflow_compressor *writer, sshflow_decompressor *reader)
{
	uint64_t seed = 67;
	size_t i, len;

	for (i = 0; i < 12; i++) {
		fill(&seed, KIND_TEXT, payload, 4000);
		memcpy(payload + 1000 + 37 * i, marker, sizeof(marker) - 1);
		hook_resume();
		len = compress_ok(writer, payload, 4000,
		    SSHFLOW_PACKET_GROUP(i % 2), packet);
		hook_off();
		if (i == 11) {
			/* This one stays unfinished. */
			size_t used, written;

			hook_resume();
			assert_int_equal(sshflow_decompress(reader, packet,
			    len, &used, decoded, 1010 + 37 * i, &written),
			    SSHFLOW_MORE);
			hook_off();
			return;
		}
		hook_resume();
		decode_equals(reader, packet, len, payload, 4000);
		hook_off();
	}
}

/*
 * Shows first that the marker is in memory while the handle lives, so that it
 * would be found if it were left there.
 */
static void
payload_is_gone_when(int method, void (*ends)(sshflow_compressor *,
    sshflow_decompressor *), const char *level)
{
	sshflow_compressor *writer = NULL;
	sshflow_decompressor *reader = NULL;
	sshflow_config *config = config_with("level", level);

	hook.fail_count = 0;
	hook.freeing = NULL;
	hook_on();
	assert_int_equal(sshflow_compressor_new(method, config, &writer),
	    SSHFLOW_OK);
	assert_int_equal(sshflow_decompressor_new(method, config, &reader),
	    SSHFLOW_OK);
	hook_off();
	sshflow_config_free(config);
	send_markers(writer, reader);

	blocks_with_marker = bytes_looked_at = 0;
	hook_each_live(look);
	assert_true(blocks_with_marker >= 2);

	blocks_with_marker = bytes_looked_at = 0;
	hook.freeing = look;
	hook_resume();
	ends(writer, reader);
	hook_off();
	hook.freeing = NULL;
	assert_int_equal(hook.live_blocks, 0);
	assert_true(bytes_looked_at > 100000);
	assert_int_equal(blocks_with_marker, 0);
}

static void
by_free(sshflow_compressor *writer, sshflow_decompressor *reader)
{
	sshflow_compressor_free(writer);
	sshflow_decompressor_free(reader);
}

static void
by_key_exchange(sshflow_compressor *writer, sshflow_decompressor *reader)
{
	sshflow_decompressor_free(reader);
	assert_int_equal(sshflow_compressor_rekey(writer,
	    SSHFLOW_METHOD_NONE), SSHFLOW_OK);
	sshflow_compressor_free(writer);
}

static void
payload_does_not_linger_in_freed_memory(void **state)
{
	static const char *const levels[] = { "-1", "1", "3", "6", "9" };
	size_t i;

	UNUSED(state);
	for (i = 0; i < COUNT(levels); i += slow_run() ? 2 : 1) {
		payload_is_gone_when(SSHFLOW_METHOD_ZSTD, by_free, levels[i]);
		payload_is_gone_when(SSHFLOW_METHOD_ZSTD, by_key_exchange,
		    levels[i]);
		if (i == 0)
			continue;
		payload_is_gone_when(SSHFLOW_METHOD_ZLIB, by_free, levels[i]);
		payload_is_gone_when(SSHFLOW_METHOD_ZLIB, by_key_exchange,
		    levels[i]);
	}
}

static size_t bytes_not_zero;

static void
count_not_zero(const void *block, size_t size)
{
	const uint8_t *bytes = block;
	size_t i;

	VALGRIND_DISABLE_ERROR_REPORTING;
	for (i = 0; i < size; i++)
		bytes_not_zero += bytes[i] != 0;
	VALGRIND_ENABLE_ERROR_REPORTING;
	VALGRIND_MAKE_MEM_DEFINED(&bytes_not_zero, sizeof(bytes_not_zero));
}

static const void *handle_block;

static void
look_at_the_handle(const void *block, size_t size)
{
	if (block == handle_block)
		count_not_zero(block, size);
}

/* A decompressor looks one byte ahead, and keeps it in the handle itself. */
static void
handles_are_zeroed_themselves(void **state)
{
	sshflow_decompressor *reader;
	size_t used, written;

	UNUSED(state);
	hook.fail_count = 0;
	hook_on();
	assert_int_equal(sshflow_decompressor_new(SSHFLOW_METHOD_NONE, NULL,
	    &reader), SSHFLOW_OK);
	assert_int_equal(sshflow_decompress(reader, marker, sizeof(marker),
	    &used, decoded, 4, &written), SSHFLOW_MORE);
	handle_block = reader;
	bytes_not_zero = 0;
	hook_each_live(look_at_the_handle);
	assert_true(bytes_not_zero > 0);
	bytes_not_zero = 0;
	hook.freeing = look_at_the_handle;
	sshflow_decompressor_free(reader);
	hook_off();
	hook.freeing = NULL;
	assert_int_equal(bytes_not_zero, 0);
	assert_int_equal(hook.live_blocks, 0);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		/* First: it needs a process in which nothing was called. */
		cmocka_unit_test(the_first_call_may_fail),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(a_handle_that_never_sees_a_packet_is_small),
		cmocka_unit_test(a_link_and_a_window_are_small),
		cmocka_unit_test(payload_does_not_linger_in_freed_memory),
		cmocka_unit_test(handles_are_zeroed_themselves),
	};

	if (slow_run())
		packets = 7;
	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
