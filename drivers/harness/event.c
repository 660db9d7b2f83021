// SPDX-License-Identifier: GPL-2.0-only
#include "event.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "own.h"
#include "shared.h"
#include "testcase.h"

/* errno of the first write that failed: later ones only say "again". */
static int stdout_error;

void json_line(json_t *object)
{
	json_dumpf(object, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	putchar('\n');
	if (fflush(stdout) && !stdout_error)
		stdout_error = errno;
	json_decref(object);
}

bool stdout_failed(void)
{
	return stdout_error;
}

int stdout_close(struct problem *p)
{
	if (fflush(stdout) && !stdout_error)
		stdout_error = errno;
	if (stdout_error)
		return problem_set(p, COULD_NOT, "stdout: %s",
				   strerror(stdout_error));
	return DONE;
}

int tally_init(struct tally *tally, const struct run *run, unsigned int blocks)
{
	size_t cells = (size_t)run->variants * run->tasks;

	memset(tally, 0, sizeof(*tally));
	tally->task_ops = calloc(cells, sizeof(*tally->task_ops));
	for (unsigned int v = 0; v < run->variants; v++) {
		tally->rates[v] = calloc(blocks, sizeof(double));
		if (!tally->rates[v])
			return -1;
	}
	return tally->task_ops ? 0 : -1;
}

void tally_free(struct tally *tally)
{
	for (unsigned int v = 0; v < VARIANTS_MAX; v++)
		free(tally->rates[v]);
	free(tally->task_ops);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *sorted, unsigned int n)
{
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double tally_rate(struct tally *tally)
{
	unsigned int n = tally->windows[0];

	if (!n)
		return 0;
	qsort(tally->rates[0], n, sizeof(double), by_value);
	return median(tally->rates[0], n);
}

static json_t *int_array(const int *values, unsigned int n)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < n; i++)
		json_array_append_new(array, json_integer(values[i]));
	return array;
}

/* The workload's own flags as they came out. */
static json_t *own_options(const struct run *run)
{
	const struct workload_option *o = run->workload->options;
	json_t *object = json_object();

	for (unsigned int i = 0; i < WORKLOAD_OPTIONS && o[i].name; i++)
		json_object_set_new(
			object, o[i].name,
			o[i].choices ? json_string(run->options[i].text)
				     : json_integer(run->options[i].number));
	return object;
}

/* What each task does. */
static json_t *roles(const struct run *run)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < run->tasks; i++)
		json_array_append_new(array,
				      json_string(run->workload->role(run, i)));
	return array;
}

static const char *nonconforming(const struct run *run, unsigned int v)
{
	return run->backend == BACKEND_MODEL
		       ? variant_nonconforming(run->model_variants[v])
		       : NULL;
}

/* Of those variants that do not conform: why. */
static json_t *all_nonconforming(const struct run *run)
{
	json_t *object = json_object();

	for (unsigned int v = 0; v < run->variants; v++)
		if (nonconforming(run, v))
			json_object_set_new(object, run->variant_names[v],
					    json_string(nonconforming(run, v)));
	return object;
}

void event_setup(const struct run *run, const struct shared *shared,
		 const struct counters *counters, uint64_t startup_ns)
{
	json_t *names, *event;

	if (run->probe)
		return;
	if (!run->json) {
		if (*run->memory)
			fprintf(stderr, "fdscale: memory not bound: %s\n",
				run->memory);
		if (*shared->table)
			fprintf(stderr, "fdscale: --table-node %d: %s\n",
				run->table_node, shared->table);
		return;
	}
	names = json_array();
	for (unsigned int v = 0; v < run->variants; v++)
		json_array_append_new(names,
				      json_string(run->variant_names[v]));
	event = json_pack(
		"{ss si ss ss so sI ss ss so so ss sI so sI so ss sI ss sI sI}",
		"event", "setup", "schema", SCHEMA, "workload",
		run->workload->name, "backend", backend_names[run->backend],
		"variants", names, "tasks", (json_int_t)run->tasks, "mode",
		mode_names[run->mode], "place", run->place, "pus",
		int_array(run->placement.pus, run->tasks), "nodes",
		int_array(run->placement.nodes, run->tasks), "hold",
		run->hold.text, "fdsize", (json_int_t)shared->fdsize,
		"memory_bound",
		*run->memory ? json_string(run->memory) : json_true(), "seed",
		(json_int_t)run->seed, "options", own_options(run), "kernel",
		kernel_running(), "startup_ns", (json_int_t)startup_ns, "lock",
		run->lock == FILES_LOCK_TAS ? "tas" : "queued", "think_ns",
		(json_int_t)run->think_ns, "table_bytes",
		(json_int_t)shared->table_bytes);
	json_object_set_new(event, "hold_top", json_integer(run->hold.top));
	json_object_set_new(event, "nonconforming", all_nonconforming(run));
	if (run->core_kind)
		json_object_set_new(event, "core_kind",
				    json_string(run->core_kind));
	if (run->table_node != PLACE_NONE) {
		json_object_set_new(event, "table_node",
				    json_integer(run->table_node));
		json_object_set_new(event, "table_there",
				    *shared->table ? json_string(shared->table)
						   : json_true());
	}
	if (run->workload->role)
		json_object_set_new(event, "roles", roles(run));
	json_object_set_new(event, "inject", json_real(run->inject));
	json_object_set_new(event, "counters",
			    *counters->why ? json_string(counters->why)
					   : json_true());
	if (own_source())
		json_object_set_new(event, "sha256", json_string(own.sha256));
	if (run->workload->testcase)
		json_object_set_new(
			event, "testcase",
			json_string(*run->workload->testcase->description));
	json_line(event);
}

/* What an operation took of each counter; null for what is not there. */
static json_t *per_op(const struct counters *c)
{
	static const char *const sides[SIDES] = {"user", "kernel"};
	json_t *all = json_object();

	for (unsigned int k = 0; k < c->list->kinds; k++) {
		json_t *both = json_object();

		for (enum counter_side side = 0; side < SIDES; side++) {
			double each;
			bool there = counters_per_op(c, k, side, &each);

			json_object_set_new(both, sides[side],
					    there ? json_real(each)
						  : json_null());
		}
		json_object_set_new(all, c->list->kind[k]->name, both);
	}
	return all;
}

void event_window(const struct run *run, const struct window *w,
		  const struct counters *counters, struct tally *tally)
{
	unsigned int v = w->variant;
	json_t *ops;

	tally->rates[v][tally->windows[v]++] = w->rate;
	tally->ns[v] += w->ns;
	for (unsigned int i = 0; i < run->tasks; i++)
		tally->task_ops[(size_t)v * run->tasks + i] += w->ops[i];
	if (!run->json || run->probe)
		return;
	ops = json_array();
	for (unsigned int i = 0; i < run->tasks; i++)
		json_array_append_new(ops, json_integer(w->ops[i]));
	json_line(json_pack(
		"{ss ss sI sI sI so sf sI sI sb sI sI so}", "event", "window",
		"variant", run->variant_names[v], "block", (json_int_t)w->block,
		"from_ns", (json_int_t)w->from, "ns", (json_int_t)w->ns, "ops",
		ops, "rate", w->rate, "skew_ns", (json_int_t)w->skew_ns,
		"redone", (json_int_t)w->redone, "skewed", w->skewed,
		"switches", (json_int_t)w->switches, "injected_ns",
		(json_int_t)w->injected, "per_op", per_op(counters)));
}

const char *remedy(int error)
{
	switch (error) {
	case EMFILE:
		return "raise RLIMIT_NOFILE (ulimit -n) or use a smaller hold";
	case ENFILE:
		return "raise fs.file-max (sysctl fs.file-max)";
	case ENOMEM:
		return "free memory, or raise the cgroup's memory.max";
	case ENOSPC:
	case EDQUOT:
		return "free space, or point --tmpdir elsewhere";
	case EROFS:
	case EACCES:
	case ENOENT:
	case ENOTDIR:
		return "point --tmpdir at a folder that can be written";
	case EPERM:
		return "a seccomp filter or security module forbids it";
	case ENOSYS:
		return "this kernel lacks the call; choose another workload";
	default:
		return "strace the driver to see the call that failed";
	}
}

void event_error(const struct run *run, const char *call, int error,
		 unsigned int task, const char *variant)
{
	fprintf(stderr, "fdscale: %s: task %u: %s: %s; %s\n",
		run->workload->name, task, call, strerror(error),
		remedy(error));
	if (run->json)
		json_line(json_pack("{ss ss si ss ss sI ss}", "event", "error",
				    "syscall", call, "errno", error, "error",
				    strerror(error), "remedy", remedy(error),
				    "task", (json_int_t)task, "variant",
				    variant));
}

static void least_and_most(const uint64_t *ops, unsigned int n, double *least,
			   double *most)
{
	double sum = 0, low = ops[0], high = ops[0];

	for (unsigned int i = 0; i < n; i++) {
		sum += ops[i];
		low = ops[i] < low ? ops[i] : low;
		high = ops[i] > high ? ops[i] : high;
	}
	*least = sum > 0 ? low * n / sum : 0;
	*most = sum > 0 ? high * n / sum : 0;
}

/* Tasks that differ in what they do: a line for each role. */
static void role_lines(const struct run *run, const struct tally *tally,
		       unsigned int v)
{
	const char *(*role)(const struct run *, unsigned int) =
		run->workload->role;
	const uint64_t *ops = tally->task_ops + (size_t)v * run->tasks;

	for (unsigned int i = 0; role && i < run->tasks; i++) {
		uint64_t sum = 0;
		bool first = true;

		for (unsigned int j = 0; j < run->tasks; j++) {
			if (strcmp(role(run, j), role(run, i)))
				continue;
			first &= j >= i;
			sum += ops[j];
		}
		if (first)
			printf("  %-24s %14.0f on average\n", role(run, i),
			       sum * 1e9 / tally->ns[v]);
	}
}

static void table(const struct run *run, const struct tally *tally)
{
	static const char *const unit[MODES][2] = {{"thread", "threads"},
						   {"process", "processes"}};

	printf("%s, %s backend, hold %s, %u %s, %s\n", run->workload->name,
	       backend_names[run->backend], run->hold.text, run->tasks,
	       unit[run->mode][run->tasks > 1], run->place);
	printf("%-26s %14s %9s %9s %12s\n", "variant", "median ops/s",
	       "least %", "most %", "tasks' share");
	for (unsigned int v = 0; v < run->variants; v++) {
		unsigned int n = tally->windows[v];
		double *r = tally->rates[v], least, most, m;

		if (!n) {
			printf("%-26s %14s\n", run->variant_names[v],
			       "no window");
			continue;
		}
		qsort(r, n, sizeof(*r), by_value);
		m = median(r, n);
		least_and_most(tally->task_ops + (size_t)v * run->tasks,
			       run->tasks, &least, &most);
		printf("%-26s %14.0f %+8.1f%% %+8.1f%% %5.2f .. %4.2f\n",
		       run->variant_names[v], m, 100 * (r[0] / m - 1),
		       100 * (r[n - 1] / m - 1), least, most);
		role_lines(run, tally, v);
	}
	for (unsigned int v = 0; v < run->variants; v++)
		if (nonconforming(run, v))
			printf("%s %s\n", run->variant_names[v],
			       nonconforming(run, v));
	printf("one run: no interval; ./run.py sweep compares\n");
}

void event_end(const struct run *run, const struct tally *tally,
	       const char *how, uint64_t recorded_ns, uint64_t total_ns)
{
	if (run->probe)
		return;
	if (run->json)
		json_line(json_pack("{ss ss sI sI}", "event", "end", "how", how,
				    "recorded_ns", (json_int_t)recorded_ns,
				    "total_ns", (json_int_t)total_ns));
	else if (strcmp(how, "failed")) /* no number of a broken run */
		table(run, tally);
}
