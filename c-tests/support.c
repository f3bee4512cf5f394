/* SPDX-License-Identifier: BSD-3-Clause */
#include "support.h"

uint64_t
random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

size_t
random_below(uint64_t *state, size_t end)
{
	return (size_t)(random_next(state) % end);
}

static void
fill_text(uint64_t *state, uint8_t *payload, size_t len)
{
	static const char *const words[] = { "session ", "opened ", "for ",
	    "user ", "sshd ", "connection ", "closed ", "port " };
	char piece[32];
	size_t at = 0, take;

	while (at < len) {
		if (random_below(state, 4) == 0)
			snprintf(piece, sizeof(piece), "%u\n",
			    (unsigned)random_below(state, 100000));
		else
			snprintf(piece, sizeof(piece), "%s",
			    words[random_below(state, COUNT(words))]);
		take = strlen(piece);
		if (take > len - at)
			take = len - at;
		memcpy(payload + at, piece, take);
		at += take;
	}
}

void
fill(uint64_t *state, enum kind kind, uint8_t *payload, size_t len)
{
	size_t i;

	switch (kind) {
	case KIND_TEXT:
		fill_text(state, payload, len);
		break;
	case KIND_RUN:
		memset(payload, (int)random_below(state, 256), len);
		break;
	default:
		for (i = 0; i < len; i++)
			payload[i] = (uint8_t)random_next(state);
	}
}

size_t
fill_any(uint64_t *state, uint8_t *payload, size_t max)
{
	size_t most = random_below(state, 3) == 0 ? max : max < 64 ? max : 64;
	size_t len = 1 + random_below(state, most);

	fill(state, (enum kind)random_below(state, KIND_COUNT), payload, len);
	return len;
}

int
slow_run(void)
{
	return getenv("SSHFLOW_TEST_SLOW") != NULL;
}

sshflow_config *
config_with(const char *key, const char *value)
{
	sshflow_config *config;

	assert_int_equal(sshflow_config_new(&config), SSHFLOW_OK);
	assert_int_equal(sshflow_config_set(config, key, value), SSHFLOW_OK);
	return config;
}

sshflow_compressor *
compressor_with(int method, const char *level)
{
	sshflow_config *config = config_with("level", level);
	sshflow_compressor *compressor;

	assert_int_equal(sshflow_compressor_new(method, config, &compressor),
	    SSHFLOW_OK);
	sshflow_config_free(config);
	return compressor;
}

sshflow_decompressor *
decompressor_of(int method)
{
	sshflow_decompressor *decompressor;

	assert_int_equal(sshflow_decompressor_new(method, NULL, &decompressor),
	    SSHFLOW_OK);
	return decompressor;
}

size_t
compress_ok(sshflow_compressor *compressor, const uint8_t *payload, size_t len,
    uint32_t flags, uint8_t packet[PACKET_MAX])
{
	const sshflow_slice part = { payload, len };
	size_t packet_len = 0;

	assert_int_equal(sshflow_compress(compressor, &part, 1, flags, packet,
	    PACKET_MAX, &packet_len), SSHFLOW_OK);
	assert_in_range(packet_len, 1, PACKET_MAX);
	return packet_len;
}

int
decode(sshflow_decompressor *decompressor, const uint8_t *packet,
    size_t packet_len, size_t room, uint8_t *payload, size_t capacity,
    size_t *len)
{
	const size_t untouched = (size_t)-7;
	size_t used, written, at = 0, take;
	int status;

	*len = 0;
	for (;;) {
		used = written = untouched;
		take = capacity - *len < room ? capacity - *len : room;
		/* Nothing behind the room may be written. */
		if (*len + take < capacity)
			payload[*len + take] = 0xa5;
		status = sshflow_decompress(decompressor, packet + at,
		    packet_len - at, &used, payload + *len, take, &written);
		if (*len + take < capacity)
			assert_int_equal(payload[*len + take], 0xa5);
		if (status < 0) {
			assert_true(used == untouched && written == untouched);
			return status;
		}
		assert_true(used <= packet_len - at && written <= take);
		at += used;
		*len += written;
		if (status == SSHFLOW_OK) {
			assert_int_equal(at, packet_len);
			return status;
		}
		assert_int_equal(status, SSHFLOW_MORE);
		assert_int_equal(written, take);
		if (*len == capacity)
			return status;
	}
}

void
decode_equals(sshflow_decompressor *decompressor, const uint8_t *packet,
    size_t packet_len, const uint8_t *payload, size_t len)
{
	static uint8_t decoded[PAYLOAD_MAX + 1];
	size_t decoded_len;

	assert_int_equal(decode(decompressor, packet, packet_len,
	    sizeof(decoded), decoded, sizeof(decoded), &decoded_len),
	    SSHFLOW_OK);
	assert_int_equal(decoded_len, len);
	assert_memory_equal(decoded, payload, len);
}

void
exchange(sshflow_compressor *compressor, sshflow_decompressor *decompressor,
    uint64_t *state, uint32_t flags, size_t max)
{
	static uint8_t payload[PAYLOAD_MAX], packet[PACKET_MAX];
	size_t len = fill_any(state, payload, max);
	size_t packet_len = compress_ok(compressor, payload, len, flags,
	    packet);

	decode_equals(decompressor, packet, packet_len, payload, len);
}
