/* SPDX-License-Identifier: BSD-3-Clause */
/* Every key of the configuration at and beyond both its bounds. */
#include "support.h"

#include <inttypes.h>

#define AUTO INT64_MIN

/* The keys of sshflow(3). A change here is a change of the interface. */
static const struct row {
	const char *key;
	int64_t initial, min, max;
	const char *words[2];	/* the texts of 0 and 1, where it takes words */
	int takes_auto, takes_suffix;
} rows[] = {
	{ "level", AUTO, -7, 19, { NULL, NULL }, 1, 0 },
	{ "max_payload", 262144, 1024, 134217728, { NULL, NULL }, 0, 1 },
	{ "memory_limit", 33554432, 0, 1073741824, { NULL, NULL }, 0, 1 },
	{ "max_packet_time_us", 10000, 50, 1000000, { NULL, NULL }, 0, 1 },
	{ "isolation", 1, 0, 1, { "off", "on" }, 0, 0 },
	{ "window_policy", 1, 0, 1, { "fixed", "auto" }, 0, 0 },
	{ "window_max", 4194304, 32768, 2147483647, { NULL, NULL }, 0, 1 },
	{ "window_budget", 134217728, 32768, 2147483647, { NULL, NULL }, 0, 1 },
	{ "latency_mode", 1, 0, 1, { "off", "auto" }, 0, 0 },
};

static sshflow_config *
config_new(void)
{
	sshflow_config *config;

	assert_int_equal(sshflow_config_new(&config), SSHFLOW_OK);
	return config;
}

static void
holds(const sshflow_config *config, const char *key, int64_t expected)
{
	int64_t value = 77;

	assert_int_equal(sshflow_config_get_int(config, key, &value),
	    SSHFLOW_OK);
	if (value != expected)
		fail_msg("%s: %" PRId64 ", not %" PRId64, key, value, expected);
}

static void
refuses(sshflow_config *config, const char *key, const char *text)
{
	if (sshflow_config_set(config, key, text) !=
	    SSHFLOW_ERR_INVALID_ARGUMENT)
		fail_msg("%s takes \"%s\"", key, text);
}

static void
bounds_hold_and_a_refusal_changes_nothing(void **state)
{
	static const char *const never[] = { "", " ", "auto ", "1 ", " 1",
	    "+1", "1e3", "0x10", "-", "K", "99999999999999999999", "1,0",
	    "\xff\xfe", "On", "AUTO", "true", "-9223372036854775809",
	    "9223372036854775807G" };
	sshflow_config *config = config_new();
	char text[32];
	size_t i, j;

	UNUSED(state);
	for (i = 0; i < COUNT(rows); i++) {
		const struct row *row = &rows[i];
		int64_t out[4];

		out[0] = row->min - 1;
		out[1] = row->max + 1;
		out[2] = INT64_MAX;
		out[3] = row->takes_auto ? INT64_MIN + 1 : INT64_MIN;
		holds(config, row->key, row->initial);
		for (j = 0; j < COUNT(out); j++) {
			assert_int_equal(sshflow_config_set_int(config,
			    row->key, out[j]), SSHFLOW_ERR_INVALID_ARGUMENT);
			snprintf(text, sizeof(text), "%" PRId64, out[j]);
			refuses(config, row->key, text);
		}
		for (j = 0; j < COUNT(never); j++)
			refuses(config, row->key, never[j]);
		holds(config, row->key, row->initial);
		assert_int_equal(sshflow_config_set_int(config, row->key,
		    row->min), SSHFLOW_OK);
		holds(config, row->key, row->min);
		assert_int_equal(sshflow_config_set_int(config, row->key,
		    row->max), SSHFLOW_OK);
		holds(config, row->key, row->max);
	}
	sshflow_config_free(config);
}

static void
text_leads_back_to_the_number(void **state)
{
	sshflow_config *config = config_new();
	char text[32];
	size_t i, j;

	UNUSED(state);
	for (i = 0; i < COUNT(rows); i++) {
		const struct row *row = &rows[i];
		int64_t values[3];

		values[0] = row->min;
		values[1] = row->max;
		values[2] = row->initial;
		for (j = 0; j < COUNT(values); j++) {
			assert_int_equal(sshflow_config_set_int(config,
			    row->key, values[j]), SSHFLOW_OK);
			assert_int_equal(sshflow_config_get(config, row->key,
			    text, sizeof(text)), SSHFLOW_OK);
			if (row->words[0] != NULL)
				assert_string_equal(text,
				    row->words[values[j]]);
			assert_int_equal(sshflow_config_set(config, row->key,
			    text), SSHFLOW_OK);
			holds(config, row->key, values[j]);
		}
		if (row->takes_suffix)
			assert_int_equal(sshflow_config_set(config, row->key,
			    "64k"), SSHFLOW_OK);
		else
			refuses(config, row->key, "1K");
		if (row->takes_suffix)
			holds(config, row->key, 65536);
	}
	sshflow_config_free(config);
}

static void
text_needs_its_room(void **state)
{
	sshflow_config *config = config_with("level", "-7");
	char text[4] = "xyz";

	UNUSED(state);
	assert_int_equal(sshflow_config_get(config, "level", NULL, 0),
	    SSHFLOW_ERR_BUFFER_TOO_SMALL);
	assert_int_equal(sshflow_config_get(config, "level", text, 2),
	    SSHFLOW_ERR_BUFFER_TOO_SMALL);
	assert_int_equal(sshflow_config_get(config, "level", text, SIZE_MAX),
	    SSHFLOW_ERR_INVALID_ARGUMENT);
	assert_string_equal(text, "xyz");
	assert_int_equal(sshflow_config_get(config, "level", text, 3),
	    SSHFLOW_OK);
	assert_string_equal(text, "-7");
	sshflow_config_free(config);
}

static void
unknown_keys_are_refused(void **state)
{
	static const char *const keys[] = { "", "Level", "level ", "levels",
	    "\xff", "isolation=on", "a key that is much longer than any key "
	    "that there is or will be, which is no reason to do anything" };
	sshflow_config *config = config_new();
	int64_t value = 77;
	char text[32] = "before";
	size_t i;

	UNUSED(state);
	for (i = 0; i < COUNT(keys); i++) {
		refuses(config, keys[i], "1");
		assert_int_equal(sshflow_config_set_int(config, keys[i], 1),
		    SSHFLOW_ERR_INVALID_ARGUMENT);
		assert_int_equal(sshflow_config_get_int(config, keys[i],
		    &value), SSHFLOW_ERR_INVALID_ARGUMENT);
		assert_int_equal(sshflow_config_get(config, keys[i], text,
		    sizeof(text)), SSHFLOW_ERR_INVALID_ARGUMENT);
	}
	assert_int_equal(value, 77);
	assert_string_equal(text, "before");
	sshflow_config_free(config);
}

static void
a_configuration_is_copied_by_what_is_made_with_it(void **state)
{
	sshflow_config *config = config_with("level", "3");
	sshflow_compressor *compressor;
	sshflow_compress_stats stats;

	UNUSED(state);
	assert_int_equal(sshflow_compressor_new(SSHFLOW_METHOD_ZSTD, config,
	    &compressor), SSHFLOW_OK);
	assert_int_equal(sshflow_config_set(config, "level", "9"), SSHFLOW_OK);
	sshflow_config_free(config);
	assert_int_equal(sshflow_compressor_stats(compressor, &stats,
	    sizeof(stats)), SSHFLOW_OK);
	assert_int_equal(stats.level, 3);
	sshflow_compressor_free(compressor);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_hold_and_a_refusal_changes_nothing),
		cmocka_unit_test(text_leads_back_to_the_number),
		cmocka_unit_test(text_needs_its_room),
		cmocka_unit_test(unknown_keys_are_refused),
		cmocka_unit_test(
		    a_configuration_is_copied_by_what_is_made_with_it),
	};

	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
