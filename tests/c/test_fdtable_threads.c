// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that share a table: nobody is given what another holds, through every
 * growth, and readers find whole tables (run it under TSan as well).
 *   FDSCALE_STRESS_TURNS  turns of each task on each variant (4000)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "property.h"

#define TASKS 3
#define KEEP 150	/* a task's descriptors at most */
#define TABLE_MAX 32768 /* any-fd-split spreads them */

static atomic_int owner[TABLE_MAX]; /* task + 1 */
static atomic_int failures;

struct worker {
	struct files *files;
	struct model_file file;
	unsigned int number, turns;
	bool from_zero;
	unsigned int held[KEEP], count;
};

static void broken(const char *what, int fd)
{
	fprintf(stderr, "%s %d\n", what, fd);
	atomic_fetch_add(&failures, 1);
}

/* @fd is this task's own from now on. */
static void own(struct worker *w, int fd)
{
	int before;

	if (fd < 0 || fd >= TABLE_MAX) {
		broken("alloc gave", fd);
		return;
	}
	before = atomic_exchange(&owner[fd], (int)w->number + 1);
	if (before)
		broken("given twice:", fd);
	w->held[w->count++] = (unsigned int)fd;
}

static void give_back(struct worker *w, struct files_task *t, unsigned int i)
{
	unsigned int fd = w->held[i];
	struct model_file *file = files_get(t, fd);

	if (file != &w->file)
		broken("not the file of", (int)fd);
	if (file)
		files_put(file);
	atomic_store(&owner[fd], 0);
	if (files_close(t, fd))
		broken("close of", (int)fd);
	w->held[i] = w->held[--w->count];
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct files_task t;
	uint64_t r = w->number + 1;
	struct model_file *file;
	struct files *copy;
	unsigned int i;
	int fd;

	files_attach(&t, w->files, w->number);
	for (i = 0; i < w->turns; i++) {
		unsigned int pick = prop_random(&r) % 100;

		if (w->count < KEEP && pick < 40) {
			own(w, files_open(&t, &w->file, pick % 2));
		} else if (w->count && w->count < KEEP && pick < 48) {
			own(w, files_dup(&t, w->held[0]));
		} else if (w->count && w->count < KEEP && pick < 54) {
			own(w, files_dupfd(&t, w->held[0],
					   w->from_zero ? 0 : pick, 0));
		} else if (w->count > 1 && pick < 58) {
			if (files_dup3(&t, w->held[0], w->held[1], 0) !=
			    (int)w->held[1])
				broken("dup3 onto", (int)w->held[1]);
		} else if (pick < 62) {
			fd = files_reserve(&t, 0);
			if (fd < 0 || atomic_load(&owner[fd]))
				broken("reserve gave", fd);
			else
				files_unreserve(&t, (unsigned int)fd);
		} else if (pick < 70) {
			/* Anybody's, at any moment: only that it is whole. */
			file = files_get(&t, prop_random(&r) % 400);
			if (file)
				files_put(file);
		} else if (pick == 70) {
			copy = files_fork(&t);
			if (!copy)
				broken("fork:", errno);
			files_free(copy);
		} else if (w->count) {
			give_back(w, &t, prop_random(&r) % w->count);
		}
	}
	while (w->count)
		give_back(w, &t, 0);
	files_detach(&t);
	return NULL;
}

static void stress(const char *spec, enum files_lock lock)
{
	struct worker w[TASKS];
	pthread_t threads[TASKS];
	struct files_options opt = {
		.variant = variant_find(spec, lock, false, NULL),
		.tasks = TASKS,
		.limit = TABLE_MAX,
		.nr_open = TABLE_MAX,
	};
	struct files *files = files_new(&opt);
	unsigned int i, fd;

	assert_non_null(files);
	for (i = 0; i < TASKS; i++) {
		w[i] = (struct worker){
			.files = files,
			.number = i,
			.turns = prop_env("FDSCALE_STRESS_TURNS", 4000),
			.from_zero = is_v1(opt.variant),
		};
		assert_int_equal(pthread_create(&threads[i], NULL, work, &w[i]),
				 0);
	}
	for (i = 0; i < TASKS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < TASKS; i++)
		assert_int_equal(w[i].file.count, 0);
	for (fd = 0; fd < files_slots(files); fd++)
		assert_false(files_is_open(files, fd));
	files_free(files);
	if (failures)
		fail_msg("%s", spec);
}

static void test_stress(void **state)
{
	const struct variant_word *w;

	(void)state;
	for (w = variant_searches; w->name; w++) {
		stress(w->name, FILES_LOCK_QUEUED);
		stress(w->name, FILES_LOCK_TAS);
	}
	for (w = variant_presets; w->name; w++)
		stress(w->name, FILES_LOCK_QUEUED);
	stress("next_fd-word+split-lines", FILES_LOCK_QUEUED);
}

/* Alone, a task replaces its table without waiting, and keeps none. */
static void test_alone_frees_at_once(void **state)
{
	struct files_options opt = {
		.variant = variant_find("next_fd-word", FILES_LOCK_QUEUED,
					false, NULL),
		.tasks = 2,
		.limit = 1u << 20,
		.nr_open = 1u << 20,
	};
	struct files *files = files_new(&opt);
	struct files_task a, b;

	(void)state;
	files_attach(&a, files, 0);
	assert_int_equal(files_grow(&a, 1000), 0);
	assert_int_equal(files_grow(&a, 2000), 0);
	assert_null(files->retired);
	files_attach(&b, files, 1);
	assert_int_equal(files_grow(&b, 4000), 0);
	assert_non_null(files->retired);
	assert_int_equal(files_grow(&a, 8000), 0);
	assert_int_equal(files->retired->max_fds, 4096);
	assert_null(files->retired->retired);
	files_detach(&b);
	assert_int_equal(files_grow(&a, 16000), 0);
	assert_null(files->retired);
	files_detach(&a);
	files_free(files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stress),
		cmocka_unit_test(test_alone_frees_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
