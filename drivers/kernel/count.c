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
 * (FD free again); dup2-churn@N does N turns, growth@N takes N from an empty
 * table.  One JSON object a line:
 *	{"row":..,"variant":..,"kernel":..,"own":..,"other":..,"share":..}
 * `kernel` is per operation: the median of what turns of the loop took, less
 * the same with a nop for each syscall instruction; so neither the clock is in
 * it nor a timer tick nor what is freed later nor a new page for a slab.  Not
 * the least one: some calls have a shorter path that a few turns in a hundred
 * take, under every variant.  `own` is the loop's part in user space.
 *
 * Each row runs in a process of its own, from a table of 64 slots; the
 * variants take turns in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "count_loops.h"

#define KNOB "/sys/module/fdscale/parameters/variant"
#define BATCHES 301
#define MARKED 5 /* batches that the plugin sees */
#define MOST_VARIANTS 64

/* The plugin counts between these; to the CPU they are nops. */
#define MARK_BEGIN()                                                           \
	__asm__ volatile(".byte 0x0f,0x1f,0x80,0x53,0x44,0x46,0x42")
#define MARK_END() __asm__ volatile(".byte 0x0f,0x1f,0x80,0x53,0x44,0x46,0x45")

static inline uint64_t now(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

static void die(const char *what, const char *thing, long error)
{
	fprintf(stderr, "count: %s: %s: %s\n", what, thing, strerror(error));
	exit(3);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Instructions an operation: in the kernel, in the loop; and what @share of the
 * turns took in the kernel instead, the most frequent of the other numbers.
 */
struct sample {
	double kernel, own, other, share;
};

/*
 * Let what was put off be done: two grace periods of RCU and what they free.
 * It takes no time where the emulator skips idle time (sleep=off).
 */
static void settle(void)
{
	struct timespec t = {.tv_nsec = 200000000};

	nanosleep(&t, NULL);
}

/* Ticks of batches of @n turns, sorted. */
static long batches(loop body, caller call, const struct table *t,
		    unsigned int n, uint64_t *ticks)
{
	long bad = body(call, t, n); /* warm-up */

	for (int i = 0; i < BATCHES; i++) {
		uint64_t start = now();

		bad |= body(call, t, n);
		ticks[i] = now() - start;
	}
	qsort(ticks, BATCHES, sizeof(*ticks), compare);
	return bad;
}

/* How many of the sorted @ticks are the most frequent one that is not @usual.
 */
static int second(const uint64_t *ticks, uint64_t usual, uint64_t *found)
{
	int most = 0, length = 0;

	*found = usual;
	for (int i = 0; i < BATCHES; i++) {
		length = i && ticks[i] == ticks[i - 1] ? length + 1 : 1;
		if (ticks[i] != usual && length > most) {
			most = length;
			*found = ticks[i];
		}
	}
	return most;
}

static long measure(const struct workload *w, const struct table *t,
		    struct sample *out)
{
	uint64_t none[BATCHES], dry[BATCHES], real[BATCHES], usual, other;
	long bad;

	batches(w->body, call_nothing, t, 0, none);
	batches(w->body, call_nothing, t, 1, dry);
	settle();
	bad = batches(w->body, call_kernel, t, 1, real);
	out->own = (double)(dry[0] - none[0]) / w->operations;
	usual = real[BATCHES / 2];
	out->kernel = (double)(usual - dry[0]) / w->operations;
	out->share = (double)second(real, usual, &other) / BATCHES;
	out->other = (double)(other - dry[0]) / w->operations;
	for (int i = 0; i < MARKED; i++) {
		MARK_BEGIN();
		bad |= w->body(call_kernel, t, 1);
		MARK_END();
	}
	return bad;
}

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
	t->first = n == 2 ? hole : top;
	t->helper = top + HELPER_ABOVE;
}

/* What the loop needs besides the hold, out of its way. */
static void prepare(const struct workload *w, struct table *t)
{
	int fd;

	t->made_by = w->made_by;
	t->step = w->step;
	if (w->prepare && w->prepare())
		die("prepare", w->name, errno);
	if (!w->helper)
		return;
	fd = w->helper();
	if (fd < 0 || dup2(fd, t->helper) < 0 || close(fd))
		die("prepare", w->name, errno);
}

static void report(const char *row, const char *variant, const struct sample *s)
{
	printf("{\"row\":\"%s\",\"variant\":\"%s\",\"kernel\":%.3f,"
	       "\"own\":%.3f,\"other\":%.3f,\"share\":%.3f}\n",
	       row, variant, s->kernel, s->own, s->other, s->share);
}

/* The loop of 2015: one long stretch, ticks and all.  Ticks a turn. */
static double churn(caller call, long turns, long *bad)
{
	uint64_t start;

	syscall(SYS_close_range, 3u, ~0u, 0u);
	*bad |= dup(0);
	start = now();
	for (long i = 0; i < turns; i++) {
		*bad |= call(SYS_close, 3, 0, 0, 0);
		*bad |= call(SYS_dup2, 0, 3, 0, 0);
		*bad |= call(SYS_dup, 0, 0, 0, 0);
	}
	return (double)(now() - start) / turns;
}

/* Dups from an empty table up to @turns, growing it.  Ticks a dup. */
static double growth(caller call, long turns, long *bad)
{
	uint64_t start;

	syscall(SYS_close_range, 3u, ~0u, 0u);
	start = now();
	for (long i = 0; i < turns; i++)
		*bad |= call(SYS_dup, 0, 0, 0, 0);
	return (double)(now() - start) / turns;
}

/* A table does not shrink: each variant has a process of its own. */
static void run_growth(const char *row, long turns, char **variants, int count)
{
	for (int i = 0; i < count; i++) {
		struct sample s = {0};
		int status;
		long bad = 0;

		fflush(stdout);
		if (fork()) {
			if (wait(&status) < 0 || status)
				exit(3);
			continue;
		}
		set_variant(variants[i]);
		s.own = growth(call_nothing, turns, &bad);
		settle();
		bad = 0;
		s.kernel = growth(call_kernel, turns, &bad) - s.own;
		if (bad < 0)
			die("a call failed", row, EIO);
		report(row, variants[i], &s);
		fflush(stdout);
		_exit(0);
	}
}

static void run_churn(const char *row, long turns, char **variants, int count)
{
	struct sample s = {0};
	long bad = 0;

	s.own = churn(call_nothing, turns, &bad);
	churn(call_kernel, turns, &bad); /* grows the table to its size */
	for (int i = 0; i < count; i++) {
		set_variant(variants[i]);
		s.kernel = churn(call_kernel, turns, &bad) - s.own;
		if (bad < 0)
			die("a call failed", row, EIO);
		report(row, variants[i], &s);
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
	if (!strcmp(name, "growth")) {
		run_growth(row, atol(hold), variants, count);
		return;
	}
	for (size_t i = 0; i < sizeof(workloads) / sizeof(*workloads); i++) {
		if (strcmp(workloads[i].name, name))
			continue;
		build_hold(hold, &t);
		prepare(&workloads[i], &t);
		for (int v = 0; v < count; v++) {
			struct sample s;

			set_variant(variants[v]);
			if (measure(&workloads[i], &t, &s) < 0)
				die("a call failed", row, EIO);
			report(row, variants[v], &s);
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
