/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The system calls of the library, under a filter that kills at the first one
 * that is not for memory or the clock. It is narrower than the filter of
 * OpenSSH's pre-authentication process, in which a context is started: new
 * memory is private and anonymous and never executable, and nothing else.
 */
#include "support.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__i386__)
#define ARCHITECTURE AUDIT_ARCH_I386
#endif

#ifdef ARCHITECTURE

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offset))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL)
#define NUMBER offsetof(struct seccomp_data, nr)
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + 8 * (n))

/* Lets a call pass. */
#define PASS(number) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), ALLOW
/* Lets a call pass if argument n has no bit outside `mask`. */
#define PASS_IF(number, n, mask) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 4), \
	LOAD(ARGUMENT(n)), \
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, ~(uint32_t)(mask), 0, 1), \
	KILL, ALLOW
/* Lets mmap pass for plain memory that is neither shared nor executable. */
#define PASS_MMAP(number) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 6), \
	LOAD(ARGUMENT(2)), \
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, \
	    ~(uint32_t)(PROT_READ | PROT_WRITE), 3, 0), \
	LOAD(ARGUMENT(3)), \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MAP_PRIVATE | MAP_ANONYMOUS, 0, \
	    1), \
	ALLOW, KILL

static const struct sock_filter instructions[] = {
	LOAD(offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
	KILL,
	LOAD(NUMBER),
	PASS(SYS_brk),
	PASS(SYS_munmap),
	PASS(SYS_mremap),
	PASS(SYS_clock_gettime),
	/* The end of the child. */
	PASS(SYS_exit_group),
	/* Each of these reads an argument, and has to be the last or kill. */
#ifdef SYS_mmap
	PASS_MMAP(SYS_mmap),
#else
	PASS_MMAP(SYS_mmap2),
#endif
	PASS_IF(SYS_mprotect, 2, PROT_READ | PROT_WRITE),
	PASS_IF(SYS_madvise, 2, MADV_DONTNEED | MADV_FREE),
	KILL,
};

static void
enter(void)
{
	struct sock_fprog program;

	program.len = COUNT(instructions);
	program.filter = (struct sock_filter *)instructions;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(100);
}

/* Runs `work` behind the filter; returns how the child ended. */
static int
behind_the_filter(int (*work)(void))
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		enter();
		_exit(work());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static uint8_t payload[PAYLOAD_MAX], packet[PACKET_MAX], decoded[PAYLOAD_MAX];

/* The life of both handles, from before the first packet to the end. */
static int
life(int method, const char *level)
{
	sshflow_config *config;
	sshflow_compressor *writer;
	sshflow_decompressor *reader;
	sshflow_slice part = { payload, 0 };
	uint64_t seed = 97;
	size_t len, used, written;
	int i;

	if (sshflow_config_new(&config) != SSHFLOW_OK ||
	    sshflow_config_set(config, "level", level) != SSHFLOW_OK ||
	    sshflow_compressor_new(method, config, &writer) != SSHFLOW_OK ||
	    sshflow_decompressor_new(method, config, &reader) != SSHFLOW_OK)
		return 1;
	sshflow_config_free(config);
	for (i = 0; i < 60; i++) {
		part.len = fill_any(&seed, payload, sizeof(payload));
		if (sshflow_compressor_feedback(writer, (uint64_t)i * 1000,
		    (size_t)i * 4096, 0) != SSHFLOW_OK ||
		    sshflow_compress(writer, &part, 1,
		    SSHFLOW_PACKET_GROUP(i % 5), packet, sizeof(packet),
		    &len) != SSHFLOW_OK ||
		    sshflow_decompress(reader, packet, len, &used, decoded,
		    sizeof(decoded), &written) != SSHFLOW_OK ||
		    written != part.len)
			return 2;
		if (i == 30) {
			sshflow_decompressor_free(reader);
			if (sshflow_compressor_rekey(writer, method) !=
			    SSHFLOW_OK || sshflow_decompressor_new(method,
			    NULL, &reader) != SSHFLOW_OK)
				return 3;
		}
	}
	sshflow_compressor_free(writer);
	sshflow_decompressor_free(reader);
	return 0;
}

/* The windows of a connection; sshflow_tcp_min_rtt() is a call of the host's. */
static int
life_of_windows(void)
{
	sshflow_link *link;
	sshflow_window *window[64];
	uint32_t increment;
	uint64_t now = 0;
	size_t i;

	if (sshflow_link_new(NULL, &link) != SSHFLOW_OK)
		return 1;
	for (i = 0; i < COUNT(window); i++)
		if (sshflow_window_new(link, (int)(i % 3), 2097152, 32768,
		    &window[i]) != SSHFLOW_OK)
			return 2;
	for (i = 0; i < 2000; i++, now += 1000)
		if (sshflow_link_rtt(link, now, 30000) != SSHFLOW_OK ||
		    sshflow_window_received(window[i % 64], now, 20000) !=
		    SSHFLOW_OK || sshflow_window_consumed(window[i % 64], now,
		    20000) != SSHFLOW_OK || sshflow_window_adjust(
		    window[i % 64], now, &increment) != SSHFLOW_OK)
			return 3;
	for (i = 0; i < COUNT(window); i++)
		sshflow_window_free(window[i]);
	sshflow_link_free(link);
	return 0;
}

static int
all_lives(void)
{
	static const char *const levels[] = { "auto", "1", "6", "9", "19" };
	size_t i;
	int method, failed;

	for (method = 0; method <= SSHFLOW_METHOD_ZSTD; method++) {
		for (i = 0; i < COUNT(levels); i++) {
			failed = life(method, levels[i]);
			if (failed != 0)
				return failed;
		}
	}
	(void)sshflow_build_info();
	(void)sshflow_strerror(-1);
	return life_of_windows();
}

static void
only_memory_and_the_clock(void **state)
{
	int status;

	UNUSED(state);
	/* Nothing of the library was called in this process before. */
	status = behind_the_filter(all_lives);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		fail_msg("%s", "a forbidden system call");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int
asks_who_it_is(void)
{
	return (int)syscall(SYS_getpid) == 0;
}

static int
shares_memory(void)
{
	return mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1,
	    0) == MAP_FAILED;
}

static int
makes_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE |
	    MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

static int
reserves_memory(void)
{
	return mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
	    MAP_NORESERVE, -1, 0) == MAP_FAILED;
}

static int
writes(void)
{
	return write(STDERR_FILENO, "", 0) != 0;
}

static int
looks_at_files(void)
{
	return syscall(SYS_readlinkat, -100, "/", NULL, 0) == 0;
}

/* The filter bites: a test that could not fail would prove nothing. */
static void
the_filter_kills_what_it_should(void **state)
{
	static int (*const crimes[])(void) = { asks_who_it_is, shares_memory,
	    makes_code, reserves_memory, writes, looks_at_files };
	size_t i;
	int status;

	UNUSED(state);
	for (i = 0; i < COUNT(crimes); i++) {
		status = behind_the_filter(crimes[i]);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_memory_and_the_clock),
		cmocka_unit_test(the_filter_kills_what_it_should),
	};

	return cmocka_run_group_tests_name("sandbox", tests, NULL, NULL);
}

#else

int
main(void)
{
	puts("1..0 # SKIP the filter is not written for this machine");
	return 0;
}

#endif
