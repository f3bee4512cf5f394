/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles in processes that fork and in threads that run side by side, and
 * what a fault inside the library leaves behind.
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int methods[] = { SSHFLOW_METHOD_NONE, SSHFLOW_METHOD_ZLIB,
    SSHFLOW_METHOD_ZSTD };

/*
 * Stands in front of the C library's. A clock that fails is something that the
 * library cannot go on after: the way to a fault that a caller can force.
 */
static volatile int clock_is_broken;

int
clock_gettime(clockid_t clock, struct timespec *now)
{
	if (clock_is_broken) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_clock_gettime, clock, now);
}

/* Both ends of one direction, with all they need: for one thread each. */
struct direction {
	sshflow_compressor *writer;
	sshflow_decompressor *reader;
	uint64_t seed;
	uint64_t sum;	/* over all bytes of the wire */
	uint8_t payload[8192], packet[PACKET_MAX], decoded[8192];
};

static int
direction_init(struct direction *it, int method, uint64_t seed)
{
	sshflow_config *config;
	int failed;

	it->seed = seed;
	it->sum = 0;
	failed = sshflow_config_new(&config) != SSHFLOW_OK ||
	    sshflow_config_set(config, "level", "6") != SSHFLOW_OK ||
	    sshflow_compressor_new(method, config, &it->writer) !=
	    SSHFLOW_OK ||
	    sshflow_decompressor_new(method, config, &it->reader) !=
	    SSHFLOW_OK;
	sshflow_config_free(config);
	return failed ? -1 : 0;
}

static void
direction_end(struct direction *it)
{
	sshflow_compressor_free(it->writer);
	sshflow_decompressor_free(it->reader);
}

static void
direction_free(struct direction *it)
{
	direction_end(it);
	free(it);
}

/* Without cmocka's assertions, which only the main thread can leave by. */
static int
direction_run(struct direction *it, int packets)
{
	sshflow_slice part = { it->payload, 0 };
	size_t len, used, written, i;

	while (packets-- > 0) {
		part.len = fill_any(&it->seed, it->payload,
		    sizeof(it->payload));
		if (sshflow_compress(it->writer, &part, 1,
		    SSHFLOW_PACKET_GROUP(packets % 3), it->packet,
		    sizeof(it->packet), &len) != SSHFLOW_OK)
			return -1;
		for (i = 0; i < len; i++)
			it->sum = it->sum * 31 + it->packet[i];
		if (sshflow_decompress(it->reader, it->packet, len, &used,
		    it->decoded, sizeof(it->decoded), &written) != SSHFLOW_OK)
			return -1;
		if (written != part.len ||
		    memcmp(it->decoded, it->payload, written) != 0)
			return -1;
	}
	return 0;
}

static struct direction *
direction_new(int method, uint64_t seed)
{
	struct direction *it = malloc(sizeof(*it));

	assert_non_null(it);
	assert_int_equal(direction_init(it, method, seed), 0);
	return it;
}

/* What a child of `work` says of itself. */
static void
in_a_child(int (*work)(struct direction *), struct direction *it)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(work(it) == 0 ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int
goes_on(struct direction *it)
{
	int result = direction_run(it, 50);

	direction_free(it);
	return result;
}

static int
only_frees(struct direction *it)
{
	direction_free(it);
	return 0;
}

static int
makes_new_ones(struct direction *it)
{
	direction_end(it);
	if (direction_init(it, SSHFLOW_METHOD_ZSTD, 1) != 0)
		return -1;
	return goes_on(it);
}

static void
parent_and_child_go_on_or_free_after_fork(void **state)
{
	static int (*const works[])(struct direction *) = { goes_on,
	    only_frees, makes_new_ones };
	size_t i, j;

	UNUSED(state);
	for (i = 0; i < COUNT(methods); i++) {
		struct direction *it = direction_new(methods[i], 71);

		for (j = 0; j < COUNT(works); j++) {
			assert_int_equal(direction_run(it, 20), 0);
			in_a_child(works[j], it);
			assert_int_equal(direction_run(it, 20), 0);
		}
		direction_free(it);
	}
}

/* Parent and child send the same from there on: the state is the same. */
static void
child_and_parent_make_the_same_bytes(void **state)
{
	size_t i;

	UNUSED(state);
	for (i = 0; i < COUNT(methods); i++) {
		struct direction *it = direction_new(methods[i], 73);
		uint64_t childs = 0;
		int pipes[2];
		pid_t child;

		assert_int_equal(direction_run(it, 20), 0);
		assert_int_equal(pipe(pipes), 0);
		fflush(stdout);
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			int failed = direction_run(it, 30) != 0 ||
			    write(pipes[1], &it->sum, sizeof(it->sum)) !=
			    (ssize_t)sizeof(it->sum);

			direction_free(it);
			_exit(failed);
		}
		assert_int_equal(direction_run(it, 30), 0);
		assert_int_equal(read(pipes[0], &childs, sizeof(childs)),
		    sizeof(childs));
		assert_int_equal(waitpid(child, NULL, 0), child);
		assert_true(childs == it->sum);
		close(pipes[0]);
		close(pipes[1]);
		direction_free(it);
	}
}

#define THREADS 8

struct thread {
	pthread_t id;
	int method;
	uint64_t seed;
	struct direction it;
	int result;
};

static void *
thread_main(void *argument)
{
	struct thread *thread = argument;

	thread->result = direction_init(&thread->it, thread->method,
	    thread->seed);
	if (thread->result == 0)
		thread->result = direction_run(&thread->it,
		    slow_run() ? 60 : 400);
	return NULL;
}

/* Handles made in threads give the bytes that they give alone. */
static void
threads_with_handles_of_their_own_do_not_meet(void **state)
{
	struct thread *threads = calloc(THREADS, sizeof(*threads));
	size_t i;

	UNUSED(state);
	assert_non_null(threads);
	for (i = 0; i < THREADS; i++) {
		threads[i].method = methods[i % COUNT(methods)];
		threads[i].seed = 79 + i;
		assert_int_equal(pthread_create(&threads[i].id, NULL,
		    thread_main, &threads[i]), 0);
	}
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i].id, NULL), 0);
	for (i = 0; i < THREADS; i++) {
		struct direction *alone = direction_new(threads[i].method,
		    threads[i].seed);

		assert_int_equal(threads[i].result, 0);
		assert_int_equal(direction_run(alone,
		    slow_run() ? 60 : 400), 0);
		assert_true(alone->sum == threads[i].it.sum);
		/* A handle may move: this one was made in its thread. */
		assert_int_equal(direction_run(&threads[i].it, 10), 0);
		direction_end(&threads[i].it);
		direction_free(alone);
	}
	free(threads);
}

/*
 * Runs `work` with standard error going to a file; returns what was written
 * there. Called in a child.
 */
static long
bytes_on_stderr(void (*work)(void))
{
	FILE *file = tmpfile();
	long size;

	assert_non_null(file);
	fflush(stderr);
	if (dup2(fileno(file), STDERR_FILENO) < 0)
		return -1;
	work();
	size = (long)lseek(STDERR_FILENO, 0, SEEK_END);
	return size;
}

static int fault_answers;

static void
make_a_fault(void)
{
	struct direction it;
	sshflow_slice part = { it.payload, 100 };
	sshflow_compress_stats stats;
	size_t len = 77;

	if (direction_init(&it, SSHFLOW_METHOD_ZSTD, 83) != 0 ||
	    direction_run(&it, 10) != 0)
		return;
	clock_is_broken = 1;
	fault_answers = sshflow_compress(it.writer, &part, 1, 0, it.packet,
	    sizeof(it.packet), &len) == SSHFLOW_ERR_INTERNAL && len == 77;
	clock_is_broken = 0;
	fault_answers = fault_answers &&
	    sshflow_compress(it.writer, &part, 1, 0, it.packet,
	    sizeof(it.packet), &len) == SSHFLOW_ERR_STATE &&
	    sshflow_compressor_feedback(it.writer, 1, 1, 0) ==
	    SSHFLOW_ERR_STATE &&
	    sshflow_compressor_rekey(it.writer, SSHFLOW_METHOD_ZLIB) ==
	    SSHFLOW_ERR_STATE &&
	    sshflow_compressor_stats(it.writer, &stats, sizeof(stats)) ==
	    SSHFLOW_ERR_STATE;
	direction_end(&it);
	/* Another handle has nothing to do with it. */
	if (direction_init(&it, SSHFLOW_METHOD_ZSTD, 89) != 0 ||
	    direction_run(&it, 10) != 0)
		fault_answers = 0;
	direction_end(&it);
}

static void
a_fault_poisons_its_handle_and_nothing_else(void **state)
{
	pid_t child;
	int status;

	UNUSED(state);
	fflush(stdout);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		setenv("RUST_BACKTRACE", "full", 1);
		status = bytes_on_stderr(make_a_fault) == 0 ? 0 : 2;
		_exit(status | (fault_answers ? 0 : 1));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	/* 1: a wrong answer; 2: something was written to standard error. */
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
a_fault_in_new_gives_no_handle(void **state)
{
	sshflow_compressor *writer = NULL;
	int status;

	UNUSED(state);
	clock_is_broken = 1;
	status = sshflow_compressor_new(SSHFLOW_METHOD_ZSTD, NULL, &writer);
	clock_is_broken = 0;
	assert_int_equal(status, SSHFLOW_ERR_INTERNAL);
	assert_null(writer);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		/* First: threads race for the first call of the process. */
		cmocka_unit_test(threads_with_handles_of_their_own_do_not_meet),
		cmocka_unit_test(parent_and_child_go_on_or_free_after_fork),
		cmocka_unit_test(child_and_parent_make_the_same_bytes),
		cmocka_unit_test(a_fault_poisons_its_handle_and_nothing_else),
		cmocka_unit_test(a_fault_in_new_gives_no_handle),
	};

	return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
