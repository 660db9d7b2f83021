// SPDX-License-Identifier: GPL-2.0-only
/* The patterns of holds, against sets worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../drivers/harness/hold.h"
#include "../../drivers/harness/run.h"

#define END (-1)

/* The hold has exactly what is listed, and ends just above it. */
static void assert_holds(const struct hold *hold, const int *fds)
{
	uint32_t next = 0;

	for (; *fds != END; fds++) {
		for (; next < (uint32_t)*fds; next++)
			assert_false(hold_has(hold, next));
		assert_true(hold_has(hold, next++));
	}
	assert_int_equal(hold->top, next);
	for (uint32_t more = 0; more < 200; more++)
		assert_false(hold_has(hold, next + more));
}

static void parsed(const char *text, uint32_t top, const int *fds)
{
	struct problem p;
	struct hold hold;

	assert_int_equal(hold_parse(text, top, 1, &hold, &p), DONE);
	assert_string_equal(hold.text, text);
	assert_holds(&hold, fds);
	hold_free(&hold);
}

static void refused(const char *text, enum status status, const char *named)
{
	struct problem p = {""};
	struct hold hold;

	assert_int_equal(hold_parse(text, 64, 1, &hold, &p), status);
	assert_non_null(strstr(p.text, named));
	assert_null(strchr(p.text, '\n'));
}

static void every(void **state)
{
	static const int fourth[] = {0, 1,  2,	4,  5,	6,  8,
				     9, 10, 12, 13, 14, END};
	static const int second[] = {0, 2, 4, 6, END};
	static const int none[] = {END};
	static const int all[] = {0, 1, 2, 3, 4, END};
	struct problem p;
	struct hold hold;
	unsigned int held = 0;

	(void)state;
	parsed("every:4", 16, fourth);
	/* The hole at the very end is one all the same. */
	parsed("every:4", 15, fourth);
	parsed("every:2", 8, second);
	parsed("every:2", 7, second);
	parsed("every:1", 100, none);
	parsed("every:6", 5, all);
	/* Across words: 63 and 127 are free, nothing else is. */
	assert_int_equal(hold_parse("every:64", 130, 1, &hold, &p), DONE);
	for (uint32_t fd = 0; fd < 130; fd++)
		held += hold_has(&hold, fd);
	assert_int_equal(held, 128);
	assert_false(hold_has(&hold, 63));
	assert_false(hold_has(&hold, 127));
	hold_free(&hold);
	refused("every:0", USAGE, "'0'");
	refused("every:x", USAGE, "'x'");
	refused("every:-2", USAGE, "every:K");
	refused("every:", USAGE, "every:K");
	refused("every", USAGE, "'every'");
}

static unsigned int held_at(const char *text, uint64_t seed, uint64_t *first)
{
	struct problem p;
	struct hold hold;
	unsigned int held = 0;

	assert_int_equal(hold_parse(text, 10000, seed, &hold, &p), DONE);
	for (uint32_t fd = 0; fd < 10000; fd++)
		held += hold_has(&hold, fd);
	assert_false(hold_has(&hold, 10000));
	if (hold.top)
		assert_true(hold_has(&hold, hold.top - 1));
	if (first)
		*first = hold.bits[0];
	hold_free(&hold);
	return held;
}

static void at_random(void **state)
{
	uint64_t one, same, other;

	(void)state;
	assert_int_equal(held_at("random:0", 7, NULL), 0);
	assert_int_equal(held_at("random:1", 7, NULL), 10000);
	/* Five standard deviations: sqrt(10000 P (1-P)) is 43 and 50. */
	assert_in_range(held_at("random:0.25", 7, NULL), 2284, 2716);
	assert_in_range(held_at("random:.5", 7, &one), 4750, 5250);
	held_at("random:0.5", 7, &same);
	held_at("random:0.5", 8, &other);
	assert_true(one == same);
	assert_true(one != other);
	refused("random:2", USAGE, "'2'");
	refused("random:1.01", USAGE, "'1.01'");
	refused("random:-0.1", USAGE, "'-0.1'");
	refused("random:nan", USAGE, "'nan'");
	refused("random:0x0", USAGE, "'0x0'");
	refused("random:0.5.", USAGE, "'0.5.'");
	refused("random:.", USAGE, "'.'");
	refused("random:", USAGE, "random:P");
}

/* A file with @size bytes of @text in it; "file:" and its name. */
static const char *written_bytes(const char *text, size_t size)
{
	static char word[64];
	char *path = word + strlen("file:");
	int fd;

	strcpy(word, "file:/tmp/fdscale-test-hold-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	close(fd);
	return word;
}

static const char *written(const char *text)
{
	return written_bytes(text, strlen(text));
}

static void file_holds(const char *text, const int *fds)
{
	const char *word = written(text);

	parsed(word, 64, fds);
	unlink(word + strlen("file:"));
}

static void bytes_refused(const char *text, size_t size, const char *named)
{
	const char *word = written_bytes(text, size);

	refused(word, USAGE, named);
	refused(word, USAGE, word);
	unlink(word + strlen("file:"));
}

static void file_refused(const char *text, const char *named)
{
	bytes_refused(text, strlen(text), named);
}

static void from_a_file(void **state)
{
	static const int some[] = {0, 2, 63, 64, 1000, END};
	static const int one[] = {99999, END};
	struct problem p;
	struct hold hold;
	const char *word;

	(void)state;
	file_holds("0\n2\n63\n64\n1000\n", some);
	file_holds("# by hand\n1000\n64\n\n2\n64\n0\r\n63", some);
	file_holds("99999\n", one);
	file_refused("0\n1\nthree\n", "line 3: 'three'");
	file_refused("0 1\n", "line 1");
	file_refused("-1\n", "line 1");
	file_refused("12\r13\n", "line 1: '12?13'");
	bytes_refused("0\n1\0002\n", 6, "line 2: '1?2'");
	file_refused("0\n\xff\n", "line 2: '?'");
	file_refused("\n\r\n# 1\r\n7\r\n8 \n", "line 5: '8 '");
	refused("file:/dev/zero", USAGE, "/dev/zero: line 1");
	file_refused("0\n100000000\n", "line 2");
	file_refused("", "no descriptor");
	file_refused("# nothing\n", "no descriptor");
	refused("file:/nowhere/at all", USAGE, "/nowhere/at all");
	refused("file:", USAGE, "file:");
	refused("file:/tmp", USAGE, "directory");
	word = written("99999999\n");
	assert_int_equal(hold_parse(word, 64, 1, &hold, &p), DONE);
	assert_int_equal(hold.top, HOLD_MAX);
	assert_false(hold_has(&hold, HOLD_MAX - 2));
	hold_free(&hold);
	unlink(word + strlen("file:"));
}

static void of_a_process(void **state)
{
	static const int some[] = {1, 5, 200, END};
	char word[32];
	int tell[2], how;
	char ready;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(tell), 0);
	pid = fork();
	if (!pid) {
		dup2(tell[1], 200);
		dup2(tell[1], 1);
		dup2(tell[1], 5);
		close(0);
		close_range(2, 4, 0);
		close_range(6, 199, 0);
		close_range(201, ~0u, 0);
		if (write(1, "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(tell[0], &ready, 1), 1);
	snprintf(word, sizeof(word), "pid:%d", (int)pid);
	parsed(word, 64, some);
	kill(pid, SIGKILL);
	waitpid(pid, &how, 0);
	close(tell[0]);
	close(tell[1]);
	refused(word, USAGE, "no such process");
	refused("pid:abc", USAGE, "'abc'");
	refused("pid:0", USAGE, "'0'");
	refused("pid:-1", USAGE, "'-1'");
	refused("pid:", USAGE, "pid:PID");
	refused("PID:1", USAGE, "file:F or pid:PID");
}

enum spoil { NOTHING, FILL_A_HOLE, FREE_ONE, MOVE_ONE };

/* In a child, whose table is built: which step went wrong, or 0. */
static int built(const char *text, uint32_t top, const int *fds, int hole,
		 enum spoil spoil)
{
	int how;
	pid_t pid = fork();

	if (!pid) {
		struct hold hold;
		struct problem p;

		if (hold_parse(text, top, 1, &hold, &p))
			_exit(1);
		if (hold_build(&hold, 256, 200, 2, "/tmp", &p))
			_exit(2);
		if (spoil == FILL_A_HOLE)
			dup2(200, hole);
		if (spoil == FREE_ONE || spoil == MOVE_ONE)
			close(fds[0]);
		if (spoil == MOVE_ONE)
			dup2(200, hole);
		if (hold_check(&hold, 200, 2, &p))
			_exit(3);
		for (int fd = 0; fd < 256; fd++) {
			bool want = fd == *fds || fd == 200 || fd == 201;

			if (fd == *fds)
				fds++;
			if ((fcntl(fd, F_GETFD) >= 0) != want)
				_exit(4);
		}
		/* What the workload gets is the lowest hole, twice over. */
		for (int i = 0; i < 2; i++) {
			if (dup(200) != hole)
				_exit(5);
			close(hole);
		}
		_exit(hold_fdsize() == 256 ? 0 : 6);
	}
	waitpid(pid, &how, 0);
	return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static void kernel_tables_have_the_holes(void **state)
{
	static const int fourth[] = {0, 1, 2, 4, 5, 6, END};
	static const int some[] = {1, 2, 5, 70, END};
	static const int none[] = {END};
	const char *word = written("70\n5\n1\n2\n");

	(void)state;
	assert_int_equal(built("every:4", 8, fourth, 3, NOTHING), 0);
	assert_int_equal(built("random:0", 64, none, 0, NOTHING), 0);
	assert_int_equal(built(word, 64, some, 0, NOTHING), 0);
	assert_int_equal(built("every:4", 8, fourth, 3, FILL_A_HOLE), 3);
	assert_int_equal(built("every:4", 8, fourth, 3, FREE_ONE), 3);
	assert_int_equal(built("every:4", 8, fourth, 3, MOVE_ONE), 3);
	unlink(word + strlen("file:"));
}

static bool memfd_refused;

/* Instead of libc's: a filter may refuse it. */
int memfd_create(const char *name, unsigned int flags)
{
	if (memfd_refused) {
		errno = EPERM;
		return -1;
	}
	return syscall(SYS_memfd_create, name, flags);
}

/* Where an own file lies when memory has none; or what is said then. */
static void own_files_are_in_the_folder_given(void **state)
{
	char folder[] = "/tmp/fdscale-test-XXXXXX", missing[64], text[64];
	struct problem *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(missing, sizeof(missing), "%s/none", folder);
	for (int there = 0; there < 2; there++) {
		int how;
		pid_t pid = fork();

		if (!pid) {
			struct hold hold;
			ssize_t n;

			memfd_refused = true;
			hold_parse("none", 64, 1, &hold, p);
			if (hold_build(&hold, 256, 200, 1,
				       there ? folder : missing, p))
				_exit(1);
			n = readlink("/proc/self/fd/200", text,
				     sizeof(text) - 1);
			text[n < 0 ? 0 : n] = '\0';
			_exit(strncmp(text, folder, strlen(folder)) ||
					      !strstr(text, "(deleted)")
				      ? 2
				      : 0);
		}
		waitpid(pid, &how, 0);
		assert_int_equal(how, there ? 0 : 1 << 8);
	}
	assert_non_null(strstr(p->text, missing));
	assert_non_null(strstr(p->text, "--tmpdir"));
	assert_int_equal(rmdir(folder), 0);
	munmap(p, 4096);
}

static void sizes_follow_the_highest(void **state)
{
	static const struct workload w = {.name = "w"};
	struct run run = {.workload = &w, .tasks = 1};
	struct problem p;

	(void)state;
	/* Held up to 14: two in flight and 64 clear above 15. */
	assert_int_equal(hold_parse("every:4", 16, 1, &run.hold, &p), DONE);
	assert_int_equal(run_size(&run, &p), DONE);
	assert_int_equal(run.first_source, 15 + 2 + 64);
	assert_int_equal(run.slots, 128);
	assert_int_equal(run.limit, run.first_source + 1);
	hold_free(&run.hold);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every),
		cmocka_unit_test(at_random),
		cmocka_unit_test(from_a_file),
		cmocka_unit_test(of_a_process),
		cmocka_unit_test(kernel_tables_have_the_holes),
		cmocka_unit_test(own_files_are_in_the_folder_given),
		cmocka_unit_test(sizes_follow_the_highest),
	};

	/* A child's table is as large as what is open here asks for. */
	close_range(3, ~0u, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
