// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts instructions per operation in a guest whose clock is its instruction
 * count (QEMU TCG, one CPU, -icount shift=0): a difference of two rdtsc is the
 * number of instructions between them.  Elsewhere its numbers are time stamp
 * ticks and mean something else.
 *
 *	count --variants A,B,.. --rows ROW,..
 *
 * A row is WORKLOAD, or WORKLOAD@HOLD where HOLD is none, low:N or low:N-FD
 * (FD free again); dup2-churn@N does N turns.  One JSON object a line:
 *	{"row":..,"variant":..,"total":..,"own":..,"median":..}
 * `total` is per operation: the least over batches of 2n less the least over
 * batches of n, over n; so neither a timer tick nor what RCU frees later nor
 * the reading of the clock is in it.  `median` takes the medians instead: where
 * it is larger, work was put off and done in some batches.  `own` is the same
 * loop with the syscall instruction replaced by a nop: what user space spends.
 *
 * Calls are made by hand, not through the C library, so that the user's part
 * does not depend on it.  Each row runs in a process of its own, from a table
 * of 64 slots; the variants take turns in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KNOB "/sys/module/fdscale/parameters/variant"
#define OWN_FILE "/tmp/fdscale-own"
#define BATCHES 101
#define MARKED 5 /* batches that the plugin sees */
#define BATCH 2	 /* even: some loops make their operations in pairs */
#define MOST_VARIANTS 64

#define noinline __attribute__((noinline))
#define always_inline inline __attribute__((always_inline))

/* The plugin counts between these; to the CPU they are nops. */
#define MARK_BEGIN()                                                           \
	__asm__ volatile(".byte 0x0f,0x1f,0x80,0x53,0x44,0x46,0x42")
#define MARK_END() __asm__ volatile(".byte 0x0f,0x1f,0x80,0x53,0x44,0x46,0x45")

static always_inline long call(bool dry, long nr, long a, long b, long c)
{
	register long d __asm__("r10") = 0;
	long ret;

	if (dry)
		__asm__ volatile("nop"
				 : "=a"(ret)
				 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(d)
				 : "rcx", "r11", "memory");
	else
		__asm__ volatile("syscall"
				 : "=a"(ret)
				 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(d)
				 : "rcx", "r11", "memory");
	return ret;
}

static always_inline uint64_t now(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

/* What a loop needs to know of the hold. */
struct table {
	long low;  /* a held descriptor near the bottom */
	long high; /* one at the top of what is held */
};

/* @n operations; the results or-ed together: negative when one failed. */
typedef long (*loop)(bool dry, const struct table *t, unsigned int n);

static always_inline long dup_close(bool dry, const struct table *t,
				    unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--) {
		long fd = call(dry, SYS_dup, 0, 0, 0);

		bad |= fd | call(dry, SYS_close, fd, 0, 0);
	}
	return bad;
}

static always_inline long open_close(bool dry, const struct table *t,
				     unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--) {
		long fd = call(dry, SYS_open, (long)OWN_FILE, O_RDONLY, 0);

		bad |= fd | call(dry, SYS_close, fd, 0, 0);
	}
	return bad;
}

static always_inline long dupfd_at(bool dry, unsigned int n, long start)
{
	long bad = 0;

	while (n--) {
		long fd = call(dry, SYS_fcntl, 0, F_DUPFD, start);

		bad |= fd | call(dry, SYS_close, fd, 0, 0);
	}
	return bad;
}

static always_inline long dupfd_0(bool dry, const struct table *t,
				  unsigned int n)
{
	(void)t;
	return dupfd_at(dry, n, 0);
}

static always_inline long dupfd_64(bool dry, const struct table *t,
				   unsigned int n)
{
	(void)t;
	return dupfd_at(dry, n, 64);
}

static always_inline long dupfd_1000(bool dry, const struct table *t,
				     unsigned int n)
{
	(void)t;
	return dupfd_at(dry, n, 1000);
}

/*
 * The stale hint: every second time next_fd points into a full word.  One
 * operation is a close with a dup: the loop makes two of each.
 */
static always_inline long two_holes(bool dry, const struct table *t,
				    unsigned int n)
{
	long low = t->low, high = t->high, bad = 0;

	for (n /= 2; n--;) {
		bad |= call(dry, SYS_close, low, 0, 0);
		bad |= call(dry, SYS_close, high, 0, 0);
		bad |= call(dry, SYS_dup, 0, 0, 0);
		bad |= call(dry, SYS_dup, 0, 0, 0);
	}
	return bad;
}

static always_inline long yuma(bool dry, const struct table *t, unsigned int n)
{
	long low = t->low, bad = 0;

	for (n /= 2; n--;) {
		long high;

		bad |= call(dry, SYS_close, low, 0, 0);
		bad |= call(dry, SYS_dup, 0, 0, 0);
		high = call(dry, SYS_dup, 0, 0, 0);
		bad |= high | call(dry, SYS_close, high, 0, 0);
	}
	return bad;
}

static always_inline long socket_of(bool dry, unsigned int n, long family)
{
	long bad = 0;

	while (n--) {
		long fd = call(dry, SYS_socket, family, SOCK_STREAM, 0);

		bad |= fd | call(dry, SYS_close, fd, 0, 0);
	}
	return bad;
}

static always_inline long socket_unix(bool dry, const struct table *t,
				      unsigned int n)
{
	(void)t;
	return socket_of(dry, n, AF_UNIX);
}

static always_inline long socket_inet(bool dry, const struct table *t,
				      unsigned int n)
{
	(void)t;
	return socket_of(dry, n, AF_INET);
}

static always_inline long pipe_close(bool dry, const struct table *t,
				     unsigned int n)
{
	volatile int ends[2] = {0, 0};
	long bad = 0;

	(void)t;
	while (n--) {
		bad |= call(dry, SYS_pipe2, (long)ends, 0, 0);
		bad |= call(dry, SYS_close, ends[0], 0, 0);
		bad |= call(dry, SYS_close, ends[1], 0, 0);
	}
	return bad;
}

static always_inline long eventfd_close(bool dry, const struct table *t,
					unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--) {
		long fd = call(dry, SYS_eventfd2, 0, 0, 0);

		bad |= fd | call(dry, SYS_close, fd, 0, 0);
	}
	return bad;
}

/* A descriptor reserved and given back. */
static always_inline long openneg(bool dry, const struct table *t,
				  unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--)
		bad |= call(dry, SYS_open, (long)"/tmp/missing", O_RDONLY, 0) +
		       ENOENT;
	return bad;
}

/* A call that does nothing: what entering and leaving the kernel costs. */
static always_inline long nothing(bool dry, const struct table *t,
				  unsigned int n)
{
	long bad = 0;

	(void)t;
	while (n--)
		bad |= call(dry, SYS_getppid, 0, 0, 0);
	return bad;
}

static noinline void die(const char *what, const char *thing, long error)
{
	fprintf(stderr, "count: %s: %s: %s\n", what, thing, strerror(error));
	exit(3);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

struct sample {
	double least, median; /* instructions an operation */
};

/* Ticks of batches of @n operations, sorted. */
static always_inline long batches(loop body, bool dry, const struct table *t,
				  unsigned int n, uint64_t *ticks)
{
	long bad;

	/* Not known to the compiler: the loop is the same for every n. */
	__asm__ volatile("" : "+r"(n));
	bad = body(dry, t, n); /* warm-up */
	for (int i = 0; i < BATCHES; i++) {
		uint64_t start = now();

		bad |= body(dry, t, n);
		ticks[i] = now() - start;
	}
	qsort(ticks, BATCHES, sizeof(*ticks), compare);
	return bad;
}

/* Measure one loop; unless it is dry, once more for the plugin. */
static always_inline long sample(loop body, bool dry, const struct table *t,
				 struct sample *out)
{
	uint64_t once[BATCHES], twice[BATCHES];
	long bad = batches(body, dry, t, BATCH, once);

	bad |= batches(body, dry, t, 2 * BATCH, twice);
	out->least = (double)(twice[0] - once[0]) / BATCH;
	out->median = (double)(twice[BATCHES / 2] - once[BATCHES / 2]) / BATCH;
	for (int i = 0; !dry && i < MARKED; i++) {
		MARK_BEGIN();
		bad |= body(dry, t, BATCH);
		MARK_END();
	}
	return bad;
}

struct workload {
	const char *name;
	long (*measure)(const struct table *t, struct sample *total,
			struct sample *own);
};

/* Each loop inlined into a function of its own, once as it is, once dry. */
#define MEASURE(body)                                                          \
	static noinline long measure_##body(const struct table *t,             \
					    struct sample *total,              \
					    struct sample *own)                \
	{                                                                      \
		sample(body, true, t, own);                                    \
		return sample(body, false, t, total);                          \
	}
MEASURE(dup_close)
MEASURE(open_close)
MEASURE(dupfd_0)
MEASURE(dupfd_64)
MEASURE(dupfd_1000)
MEASURE(two_holes)
MEASURE(yuma)
MEASURE(socket_unix)
MEASURE(socket_inet)
MEASURE(pipe_close)
MEASURE(eventfd_close)
MEASURE(openneg)
MEASURE(nothing)

static const struct workload workloads[] = {
	{"dup-close", measure_dup_close},
	{"open-close", measure_open_close},
	{"dupfd:0", measure_dupfd_0},
	{"dupfd:64", measure_dupfd_64},
	{"dupfd:1000", measure_dupfd_1000},
	{"two-holes", measure_two_holes},
	{"yuma", measure_yuma},
	{"socket-unix", measure_socket_unix},
	{"socket-inet", measure_socket_inet},
	{"pipe-close", measure_pipe_close},
	{"eventfd-close", measure_eventfd_close},
	{"openneg", measure_openneg},
	{"getppid", measure_nothing},
};

/* Set the variant and read it back; "-" is the kernel as it is. */
static void set_variant(const char *name)
{
	char got[128];
	ssize_t n;
	int fd;

	if (!strcmp(name, "-"))
		return;
	fd = open(KNOB, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die("no switch in this kernel", KNOB, errno);
	if (write(fd, name, strlen(name)) < 0)
		die("variant", name, errno);
	n = pread(fd, got, sizeof(got) - 1, 0);
	if (n < 1 || (size_t)n - 1 != strlen(name) ||
	    strncmp(got, name, strlen(name)))
		die("the switch reads back something else", name, EIO);
	close(fd);
}

/* 0 .. @top - 1 taken. */
static void fill(long top)
{
	for (;;) {
		int fd = dup(0);

		if (fd < 0)
			die("hold", "dup", errno);
		if (fd == top)
			close(fd);
		if (fd >= top - 1)
			break;
	}
}

static void build_hold(const char *hold, struct table *t)
{
	long top = 3, hole;
	int n;

	n = sscanf(hold, "low:%ld-%ld", &top, &hole);
	if (!n && strcmp(hold, "none"))
		die("not none, low:N or low:N-FD", hold, EINVAL);
	if (top > 3)
		fill(top);
	if (n == 2 && close(hole))
		die("hold", hold, errno);
	t->low = top > 5 ? 5 : 1;
	t->high = top > 10 ? top - 10 : 2;
}

static void report(const char *row, const char *variant,
		   const struct sample *total, const struct sample *own)
{
	printf("{\"row\":\"%s\",\"variant\":\"%s\",\"total\":%.3f,"
	       "\"own\":%.3f,\"median\":%.3f}\n",
	       row, variant, total->least, own->least, total->median);
}

/* The loop of 2015, as seeds tell it: one long stretch, ticks and all. */
static noinline long churn(bool dry, long turns, struct sample *out)
{
	uint64_t start;
	long bad = 0;

	syscall(SYS_close_range, 3u, ~0u, 0u);
	dup(0);
	start = now();
	for (long i = 0; i < turns; i++) {
		bad |= call(dry, SYS_close, 3, 0, 0);
		bad |= call(dry, SYS_dup2, 0, 3, 0);
		bad |= call(dry, SYS_dup, 0, 0, 0);
	}
	out->least = out->median = (double)(now() - start) / turns;
	return bad;
}

static void run_churn(const char *row, long turns, char **variants, int count)
{
	struct sample total, own;

	churn(true, turns, &own);
	churn(false, turns, &total); /* grows the table to its size */
	for (int i = 0; i < count; i++) {
		set_variant(variants[i]);
		if (churn(false, turns, &total) < 0)
			die("a call failed", row, EIO);
		report(row, variants[i], &total, &own);
	}
}

static void run_row(const char *row, char **variants, int count)
{
	char name[64];
	const char *at = strchr(row, '@');
	const char *hold = at ? at + 1 : "none";
	size_t length = at ? (size_t)(at - row) : strlen(row);
	struct table t;

	if (length >= sizeof(name))
		die("no such workload", row, EINVAL);
	memcpy(name, row, length);
	name[length] = '\0';
	if (!strcmp(name, "dup2-churn")) {
		run_churn(row, atol(hold), variants, count);
		return;
	}
	for (size_t i = 0; i < sizeof(workloads) / sizeof(*workloads); i++) {
		if (strcmp(workloads[i].name, name))
			continue;
		build_hold(hold, &t);
		for (int v = 0; v < count; v++) {
			struct sample total, own;

			set_variant(variants[v]);
			if (workloads[i].measure(&t, &total, &own) < 0)
				die("a call failed", row, EIO);
			report(row, variants[v], &total, &own);
		}
		return;
	}
	die("no such workload", row, EINVAL);
}

static int split(char *text, char **words, int most)
{
	int n = 0;

	for (char *w = strtok(text, ","); w && n < most; w = strtok(NULL, ","))
		words[n++] = w;
	return n;
}

int main(int argc, char **argv)
{
	char *variants[MOST_VARIANTS], *rows[256];
	int count, row_count, own;

	if (argc != 5 || strcmp(argv[1], "--variants") ||
	    strcmp(argv[3], "--rows")) {
		fprintf(stderr, "usage: count --variants A,B,.. --rows R,..\n");
		return 2;
	}
	count = split(argv[2], variants, MOST_VARIANTS);
	row_count = split(argv[4], rows, 256);
	own = open(OWN_FILE, O_RDWR | O_CREAT, 0600);
	if (own < 0)
		die("cannot make", OWN_FILE, errno);
	close(own);

	for (int i = 0; i < row_count; i++) {
		int status = 0;
		pid_t child;

		fflush(stdout);
		child = fork();
		if (!child) {
			/* Output below the hold: 1 and 2, nothing else. */
			run_row(rows[i], variants, count);
			fflush(stdout);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) < 0)
			die("fork", rows[i], errno);
		if (status)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
	}
	return 0;
}
