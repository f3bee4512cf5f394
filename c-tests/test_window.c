/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows as a C host calls them: accounts that balance for any sequence of
 * calls, handles freed in any order, and the round trip of a real connection.
 */
#include "support.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CREDIT_MAX INT32_MAX
#define WINDOWS 5

static sshflow_link *
link_new(void)
{
	sshflow_link *link;

	assert_int_equal(sshflow_link_new(NULL, &link), SSHFLOW_OK);
	return link;
}

static sshflow_window *
window_new(sshflow_link *link, int kind, uint32_t initial)
{
	sshflow_window *window;

	assert_int_equal(sshflow_window_new(link, kind, initial, 32768,
	    &window), SSHFLOW_OK);
	return window;
}

/* What a host counts by itself. */
struct account {
	sshflow_window *window;
	uint64_t received, consumed, granted;
};

static void
balances(const struct account *it)
{
	struct sshflow_window_stats stats;
	uint32_t size, outstanding;

	assert_int_equal(sshflow_window_stats(it->window, &stats,
	    sizeof(stats)), SSHFLOW_OK);
	assert_true(stats.received == it->received);
	assert_true(stats.consumed == it->consumed);
	assert_true(stats.granted == it->granted);
	assert_true(stats.backlog == it->received - it->consumed);
	assert_true(stats.credit <= CREDIT_MAX);
	assert_true(stats.credit <= stats.peer_cap);
	assert_int_equal(sshflow_window_target(it->window, &size,
	    &outstanding), SSHFLOW_OK);
	assert_int_equal(size, stats.window);
	assert_true(*sshflow_window_reason(stats.reason) != '\0');
}

static uint32_t
any_bytes(uint64_t *seed)
{
	static const uint32_t ends[] = { 0, 1, 32768, INT32_MAX,
	    (uint32_t)INT32_MAX + 1, UINT32_MAX };

	switch (random_below(seed, 8)) {
	case 0:
		return ends[random_below(seed, COUNT(ends))];
	case 1:
		return (uint32_t)random_next(seed);
	default:
		return (uint32_t)random_below(seed, 65536);
	}
}

static void
step(struct account *it, uint64_t *seed, uint64_t now)
{
	uint32_t bytes = any_bytes(seed), increment = 77;
	uint64_t backlog = it->received - it->consumed;
	int status;

	switch (random_below(seed, 8)) {
	case 0:
	case 1:
		assert_int_equal(sshflow_window_received(it->window, now,
		    bytes), SSHFLOW_OK);
		it->received += bytes;
		break;
	case 2:
	case 3:
		if (random_below(seed, 2) && bytes > backlog)
			bytes = (uint32_t)backlog;
		status = sshflow_window_consumed(it->window, now, bytes);
		assert_int_equal(status, bytes <= backlog ? SSHFLOW_OK :
		    SSHFLOW_ERR_STATE);
		it->consumed += status == SSHFLOW_OK ? bytes : 0;
		break;
	case 4:
		status = sshflow_window_granted(it->window, now, bytes);
		assert_true(status == SSHFLOW_OK ||
		    status == SSHFLOW_ERR_INVALID_ARGUMENT);
		it->granted += status == SSHFLOW_OK ? bytes : 0;
		break;
	case 5:
		assert_int_equal(sshflow_window_require(it->window, bytes),
		    SSHFLOW_OK);
		break;
	default:
		assert_int_equal(sshflow_window_adjust(it->window, now,
		    &increment), SSHFLOW_OK);
		assert_true(increment <= CREDIT_MAX);
		it->granted += increment;
	}
	balances(it);
}

static void
accounts_balance_whatever_is_called(void **state)
{
	const int steps = slow_run() ? 2000 : 50000;
	struct account accounts[WINDOWS];
	sshflow_link *link = link_new();
	uint64_t seed = 101, now = 0;
	size_t at;
	int i;

	UNUSED(state);
	for (at = 0; at < WINDOWS; at++) {
		memset(&accounts[at], 0, sizeof(accounts[at]));
		accounts[at].granted = at % 2 ? 2097152 : 0;
		accounts[at].window = window_new(link, (int)(at % 3),
		    (uint32_t)accounts[at].granted);
	}
	for (i = 0; i < steps; i++) {
		/* Time goes on, mostly, and once it jumps to its end. */
		now = random_below(&seed, 5000) == 0 ? random_next(&seed) :
		    now + random_below(&seed, 100000);
		step(&accounts[random_below(&seed, WINDOWS)], &seed, now);
		if (random_below(&seed, 50) == 0)
			assert_int_equal(sshflow_link_rtt(link, now,
			    (uint32_t)random_below(&seed, 1000000)),
			    SSHFLOW_OK);
	}
	for (at = 0; at < WINDOWS; at++)
		sshflow_window_free(accounts[at].window);
	sshflow_link_free(link);
}

static void
handles_are_freed_in_any_order(void **state)
{
	sshflow_link *link;
	sshflow_window *window[3];
	uint32_t increment;
	size_t i, first;

	UNUSED(state);
	for (first = 0; first < 3; first++) {
		link = link_new();
		for (i = 0; i < 3; i++)
			window[i] = window_new(link, (int)i, 0);
		sshflow_window_free(window[first]);
		sshflow_link_free(link);
		for (i = 0; i < 3; i++) {
			if (i == first)
				continue;
			assert_int_equal(sshflow_window_adjust(window[i], 1,
			    &increment), SSHFLOW_OK);
			assert_true(increment > 0);
			sshflow_window_free(window[i]);
		}
	}
}

static void
arguments_out_of_bounds_are_refused(void **state)
{
	static const int kinds[] = { -1, 3, INT32_MIN, INT32_MAX };
	sshflow_link *link = link_new();
	sshflow_window *out = NULL;
	size_t i;

	UNUSED(state);
	for (i = 0; i < COUNT(kinds); i++)
		assert_int_equal(sshflow_window_new(link, kinds[i], 1, 1,
		    &out), SSHFLOW_ERR_INVALID_ARGUMENT);
	assert_int_equal(sshflow_window_new(link, 0, 1, 0, &out),
	    SSHFLOW_ERR_INVALID_ARGUMENT);
	assert_int_equal(sshflow_window_new(link, 0,
	    (uint32_t)INT32_MAX + 1, 1, &out), SSHFLOW_ERR_INVALID_ARGUMENT);
	assert_int_equal(sshflow_link_rtt(link, 0, UINT32_MAX),
	    SSHFLOW_ERR_INVALID_ARGUMENT);
	assert_null(out);
	sshflow_link_free(link);
}

/* Same calls, same answers: in a child too. */
static uint64_t
answers(sshflow_link *link, sshflow_window *window)
{
	uint64_t sum = 0, now;
	uint32_t increment;

	for (now = 0; now < 3000000; now += 1000) {
		if (sshflow_link_rtt(link, now, 40000) != SSHFLOW_OK ||
		    sshflow_window_received(window, now, 30000) !=
		    SSHFLOW_OK || sshflow_window_consumed(window, now,
		    30000) != SSHFLOW_OK || sshflow_window_adjust(window, now,
		    &increment) != SSHFLOW_OK)
			return 0;
		sum = sum * 31 + increment;
	}
	return sum;
}

static void
parent_and_child_get_the_same_answers(void **state)
{
	sshflow_link *link = link_new();
	sshflow_window *window = window_new(link, SSHFLOW_CHANNEL_BULK,
	    2097152);
	uint64_t childs = 0, parents;
	int pipes[2], status;
	pid_t child;

	UNUSED(state);
	assert_int_equal(pipe(pipes), 0);
	fflush(stdout);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		childs = answers(link, window);
		sshflow_link_free(link);
		sshflow_window_free(window);
		_exit(write(pipes[1], &childs, sizeof(childs)) !=
		    (ssize_t)sizeof(childs));
	}
	parents = answers(link, window);
	assert_int_equal(read(pipes[0], &childs, sizeof(childs)),
	    sizeof(childs));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(parents != 0 && parents == childs);
	close(pipes[0]);
	close(pipes[1]);
	sshflow_link_free(link);
	sshflow_window_free(window);
}

/* Connects two sockets over loopback and sends a byte there and back. */
static void
tcp_pair(int pair[2])
{
	struct sockaddr_in name;
	socklen_t name_len = sizeof(name);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	char byte = 'x';

	assert_true(listener >= 0);
	memset(&name, 0, sizeof(name));
	name.sin_family = AF_INET;
	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&name,
	    sizeof(name)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&name,
	    &name_len), 0);
	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(pair[0], (struct sockaddr *)&name,
	    sizeof(name)), 0);
	pair[1] = accept(listener, NULL, NULL);
	assert_true(pair[1] >= 0);
	assert_int_equal(write(pair[0], &byte, 1), 1);
	assert_int_equal(read(pair[1], &byte, 1), 1);
	close(listener);
}

static void
the_kernel_tells_the_round_trip_of_tcp_only(void **state)
{
	uint32_t min_rtt_us = 77;
	int pair[2], pipes[2];

	UNUSED(state);
	tcp_pair(pair);
	assert_int_equal(sshflow_tcp_min_rtt(pair[0], &min_rtt_us),
	    SSHFLOW_OK);
	/* Loopback: less than a second, however busy the machine is. */
	assert_in_range(min_rtt_us, 0, 1000000);
	close(pair[0]);
	close(pair[1]);

	min_rtt_us = 77;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(sshflow_tcp_min_rtt(pipes[0], &min_rtt_us),
	    SSHFLOW_ERR_UNSUPPORTED);
	close(pipes[0]);
	close(pipes[1]);
	assert_int_equal(sshflow_tcp_min_rtt(pipes[0], &min_rtt_us),
	    SSHFLOW_ERR_INVALID_ARGUMENT);
	assert_int_equal(sshflow_tcp_min_rtt(-1, &min_rtt_us),
	    SSHFLOW_ERR_INVALID_ARGUMENT);
	assert_int_equal(min_rtt_us, 77);
}

static void
a_compressor_asks_the_kernel_of_tcp_only(void **state)
{
	sshflow_compressor *compressor;
	int pair[2], pipes[2], status;

	UNUSED(state);
	assert_int_equal(sshflow_compressor_new(SSHFLOW_METHOD_ZSTD, NULL,
	    &compressor), SSHFLOW_OK);
	tcp_pair(pair);
	status = sshflow_compressor_tcp(compressor, 0, pair[0]);
#ifdef __linux__
	assert_int_equal(status, SSHFLOW_OK);
	/* Within the millisecond it does not ask again, so any number does. */
	assert_int_equal(sshflow_compressor_tcp(compressor, 999, -1),
	    SSHFLOW_OK);
#else
	assert_int_equal(status, SSHFLOW_ERR_UNSUPPORTED);
#endif
	close(pair[0]);
	close(pair[1]);

	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(sshflow_compressor_tcp(compressor, 1000, pipes[1]),
	    SSHFLOW_ERR_UNSUPPORTED);
	close(pipes[0]);
	close(pipes[1]);
	status = sshflow_compressor_tcp(compressor, UINT64_MAX, -1);
#ifdef __linux__
	assert_int_equal(status, SSHFLOW_ERR_INVALID_ARGUMENT);
#endif
	sshflow_compressor_free(compressor);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(accounts_balance_whatever_is_called),
		cmocka_unit_test(handles_are_freed_in_any_order),
		cmocka_unit_test(arguments_out_of_bounds_are_refused),
		cmocka_unit_test(parent_and_child_get_the_same_answers),
		cmocka_unit_test(the_kernel_tells_the_round_trip_of_tcp_only),
		cmocka_unit_test(a_compressor_asks_the_kernel_of_tcp_only),
	};

	return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
