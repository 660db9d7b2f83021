// SPDX-License-Identifier: GPL-2.0-only
/* Cases worked out by hand, one rule of variants.md or of fdtable.h each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../drivers/fdtable/table.h"

static struct model_file file, other_file;

static struct files *new_files(struct files_task *t, const char *spec,
			       unsigned int tasks)
{
	struct files_options opt = {
		.variant = variant_find(spec, FILES_LOCK_QUEUED, false, NULL),
		.tasks = tasks,
		.limit = 10000,
		.nr_open = 10000,
	};
	struct files *files;

	assert_non_null(opt.variant);
	file.count = other_file.count = 0;
	files = files_new(&opt);
	assert_non_null(files);
	files_attach(t, files, 0);
	return files;
}

static void end(struct files_task *t)
{
	struct files *files = t->files;

	files_detach(t);
	files_free(files);
}

static void hold(struct files_task *t, unsigned int first, unsigned int last)
{
	for (; first <= last; first++)
		assert_int_equal(files_hold(t, first, &file), 0);
}

/* One hole at each edge of a word, of a line and of the third level. */
static void test_holes(void **state)
{
	static const unsigned int holes[] = {
		0, 1, 62, 63, 64, 65, 127, 128, 511, 512, 4095, 4096, 4159};
	const struct variant_word *w;
	struct files_task t;
	unsigned int i;

	(void)state;
	for (w = variant_searches; w->name; w++) {
		new_files(&t, w->name, 1);
		if (variant_nonconforming(t.variant)) {
			end(&t);
			continue;
		}
		hold(&t, 0, 4200);
		assert_int_equal(files_open(&t, &file, 0), 4201);
		for (i = 0; i < sizeof(holes) / sizeof(holes[0]); i++) {
			assert_int_equal(files_close(&t, holes[i]), 0);
			assert_int_equal(files_dup(&t, 2), holes[i]);
		}
		for (i = 0; i < sizeof(holes) / sizeof(holes[0]); i++) {
			assert_int_equal(files_close(&t, holes[i]), 0);
			assert_int_equal(files_dupfd(&t, 2, holes[i], 0),
					 holes[i]);
		}
		end(&t);
	}
}

static void test_hint(void **state)
{
	struct files_task t;
	struct files *files = new_files(&t, "two-level", 1);

	(void)state;
	assert_int_equal(files_open(&t, &file, 0), 0);
	assert_int_equal(files->next_fd, 1);
	/* Above the hint nothing is known of what lies between. */
	assert_int_equal(files_dupfd(&t, 0, 5, 0), 5);
	assert_int_equal(files->next_fd, 1);
	/* From the hint or below, it is. */
	assert_int_equal(files_dupfd(&t, 0, 1, 0), 1);
	assert_int_equal(files->next_fd, 2);
	assert_int_equal(files_close(&t, 5), 0);
	assert_int_equal(files->next_fd, 2);
	assert_int_equal(files_close(&t, 0), 0);
	assert_int_equal(files->next_fd, 0);
	/* dup3 takes one and leaves the hint: a bound, not a promise. */
	assert_int_equal(files_dup3(&t, 1, 0, 0), 0);
	assert_int_equal(files->next_fd, 0);
	end(&t);
}

static void test_growth(void **state)
{
	struct files_task t;
	struct files *files = new_files(&t, "next_fd-word", 1);

	(void)state;
	assert_int_equal(files_slots(files), 64);
	hold(&t, 0, 63);
	assert_int_equal(files_slots(files), 64);
	assert_int_equal(files_open(&t, &file, 0), 64);
	assert_int_equal(files_slots(files), 128);
	assert_int_equal(files_dupfd(&t, 0, 256, 0), 256);
	assert_int_equal(files_slots(files), 512);
	assert_int_equal(files_close_range(&t, 0, 10000, 0), 0);
	assert_int_equal(files_slots(files), 512);
	/* nr_open, in whole words: 10048. */
	assert_int_equal(files_grow(&t, 10000), 0);
	assert_int_equal(files_slots(files), 10048);
	files_set_limit(files, 20000);
	hold(&t, 0, 10047);
	assert_int_equal(files_open(&t, &file, 0), -EMFILE);
	assert_int_equal(files_grow(&t, 10049), -EMFILE);
	assert_int_equal(files_hold(&t, 10048, &file), -EMFILE);
	end(&t);
}

/* The limit is checked before the table grows; with end-late, after. */
static void test_end_late(void **state)
{
	struct files_task t;
	struct files *files = new_files(&t, "next_fd-word", 1);

	(void)state;
	hold(&t, 0, 63);
	files_set_limit(files, 64);
	assert_int_equal(files_open(&t, &file, 0), -EMFILE);
	assert_int_equal(files_slots(files), 64);
	end(&t);

	files = new_files(&t, "series-v2", 1);
	hold(&t, 0, 63);
	files_set_limit(files, 64);
	assert_int_equal(files_open(&t, &file, 0), -EMFILE);
	assert_int_equal(files_slots(files), 128);
	end(&t);
}

static void test_first_word_v1(void **state)
{
	struct files_task t;
	struct files *files = new_files(&t, "first-word-v1", 1);

	(void)state;
	/* None at or above start in word 0: 64, which the table lacks. */
	hold(&t, 1, 63);
	assert_int_equal(files_dupfd(&t, 1, 5, 0), -EFAULT);
	assert_int_equal(files_grow(&t, 128), 0);
	assert_int_equal(files_dupfd(&t, 1, 100, 0), 64);
	/* Again: it was given away a moment ago, and its count is lost. */
	assert_int_equal(files_dupfd(&t, 1, 100, 0), 64);
	files_set_limit(files, 0);
	assert_int_equal(files_open(&t, &file, 0), 0);
	/* Word 0 is full: two-level, and the limit counts. */
	assert_int_equal(files_open(&t, &file, 0), -EMFILE);
	end(&t);
}

static void test_full_bits(void **state)
{
	static const char *const specs[] = {"three-level",
					    "three-level+cond-clear"};
	const struct fdtable *fdt;
	struct files_task t;

	(void)state;
	for (int i = 0; i < 2; i++) {
		new_files(&t, specs[i], 1);
		hold(&t, 0, 4095);
		fdt = table_of(t.files);
		assert_true(fdt->full_fds_bits[0] == WORD_FULL);
		assert_int_equal(fdt->top_bits[0], 1);
		assert_int_equal(files_close(&t, 130), 0);
		assert_true(fdt->full_fds_bits[0] == (WORD_FULL & ~4ull));
		assert_int_equal(fdt->top_bits[0], 0);
		assert_int_equal(files_close(&t, 131), 0);
		assert_int_equal(files_open(&t, &file, 0), 130);
		assert_int_equal(fdt->top_bits[0], 0);
		assert_int_equal(files_open(&t, &file, 0), 131);
		assert_int_equal(fdt->top_bits[0], 1);
		end(&t);
	}
}

static void test_dup3(void **state)
{
	struct files_task t;
	struct files *files = new_files(&t, "next_fd-word", 1);

	(void)state;
	hold(&t, 0, 1);
	assert_int_equal(files_dup3(&t, 0, 0, 0), 0);
	assert_int_equal(files_dup3(&t, 0, 0, FILES_CLOEXEC), -EINVAL);
	assert_int_equal(files_dup3(&t, 0, 1, 8), -EINVAL);
	assert_int_equal(files_dup3(&t, 9, 9, 0), -EBADF);
	assert_int_equal(files_dup3(&t, 9, 1, 0), -EBADF);
	assert_int_equal(files_dup3(&t, 0, 10000, 0), -EBADF);
	assert_int_equal(files_reserve(&t, FILES_CLOEXEC), 2);
	assert_int_equal(files_cloexec(files, 2), 1);
	assert_int_equal(files_dup3(&t, 0, 2, 0), -EBUSY);
	assert_int_equal(files_close(&t, 2), -EBADF);
	assert_null(files_get(&t, 2));
	files_unreserve(&t, 2);
	assert_int_equal(files_cloexec(files, 2), -EBADF);
	assert_int_equal(files_dup3(&t, 0, 2, FILES_CLOEXEC), 2);
	assert_int_equal(files_cloexec(files, 2), 1);
	assert_int_equal(files_dup3(&t, 0, 200, 0), 200);
	assert_int_equal(files_slots(files), 256);
	end(&t);
}

/* A count for each descriptor, and none left behind. */
static void test_counts(void **state)
{
	struct files_task t;

	(void)state;
	new_files(&t, "merged-6.13", 1);
	assert_int_equal(files_open(&t, &file, 0), 0);
	assert_int_equal(files_dup(&t, 0), 1);
	assert_int_equal(files_open(&t, &other_file, 0), 2);
	assert_int_equal(file.count, 2);
	assert_int_equal(files_dup3(&t, 2, 1, 0), 1);
	assert_int_equal(file.count, 1);
	assert_int_equal(other_file.count, 2);
	assert_ptr_equal(files_get(&t, 1), &other_file);
	assert_int_equal(other_file.count, 3);
	files_put(&other_file);
	end(&t);
	assert_int_equal(file.count, 0);
	assert_int_equal(other_file.count, 0);
}

static void test_fork(void **state)
{
	struct files_task t, child;
	struct files *files = new_files(&t, "three-level", 1), *copy;

	(void)state;
	hold(&t, 0, 63);
	assert_int_equal(files_grow(&t, 4096), 0);
	assert_int_equal(files_reserve(&t, 0), 64);
	assert_int_equal(files_dupfd(&t, 0, 100, FILES_CLOEXEC), 100);
	copy = files_fork(&t);
	assert_non_null(copy);
	assert_int_equal(file.count, 130);
	assert_int_equal(files_slots(copy), 128);
	assert_false(files_is_open(copy, 64)); /* its file was not there yet */
	assert_true(files_is_open(files, 64));
	assert_int_equal(files_cloexec(copy, 100), 1);
	assert_int_equal(copy->next_fd, 0);
	files_attach(&child, copy, 0);
	assert_int_equal(files_open(&child, &file, 0), 64);
	assert_int_equal(files_close(&child, 3), 0);
	assert_true(files_is_open(files, 3));
	end(&child);
	end(&t);
	assert_int_equal(file.count, 0);
}

static void test_close_range(void **state)
{
	struct files_task t;
	struct files *files = new_files(&t, "next_fd-word", 2);

	(void)state;
	hold(&t, 0, 1000);
	assert_int_equal(files_close_range(&t, 2, 1, 0), -EINVAL);
	assert_int_equal(files_close_range(&t, 1, 2, 1), -EINVAL);
	/* All but 0..9 go: the copy is made without them. */
	assert_int_equal(files_close_range(&t, 10, ~0u, FILES_RANGE_UNSHARE),
			 0);
	assert_ptr_not_equal(t.files, files);
	assert_int_equal(files_slots(t.files), 64);
	assert_int_equal(files_open(&t, &file, 0), 10);
	assert_true(files_is_open(files, 1000));
	assert_int_equal(files_close_range(&t, 9, ~0u, FILES_RANGE_CLOEXEC), 0);
	assert_int_equal(files_cloexec(t.files, 8), 0);
	assert_int_equal(files_cloexec(t.files, 10), 1);
	files_free(files);
	end(&t);
	assert_int_equal(file.count, 0);
}

static size_t line_of(const void *p)
{
	return (uintptr_t)p / CACHE_LINE;
}

static void test_layout(void **state)
{
	const struct fdtable *fdt;
	struct files_task t;
	struct files *files;

	(void)state;
	files = new_files(&t, "next_fd-word", 1);
	assert_int_equal((uintptr_t)files % 4096, 0);
	fdt = table_of(files);
	assert_int_equal(line_of(t.lock), line_of(&files->next_fd));
	assert_int_equal(line_of(t.lock), line_of(fdt->full_fds_bits));
	assert_int_equal(line_of(t.lock), line_of(&fdt->fd[3]));
	assert_int_equal(line_of(t.lock) + 1, line_of(&fdt->fd[4]));
	assert_int_equal(files_grow(&t, 65), 0);
	fdt = table_of(files);
	assert_int_equal((uintptr_t)fdt % 4096, 0);
	assert_int_equal((uintptr_t)fdt->open_fds % CACHE_LINE, 0);
	assert_ptr_equal(fdt->close_on_exec, fdt->open_fds + 2);
	assert_ptr_equal(fdt->full_fds_bits, fdt->close_on_exec + 2);
	assert_int_equal((uintptr_t)fdt->fd % CACHE_LINE, 0);
	end(&t);

	files = new_files(&t, "next_fd-word+split-lines", 1);
	fdt = table_of(files);
	assert_int_equal(line_of(t.lock) + 1, line_of(&files->next_fd));
	assert_int_equal(line_of(&files->next_fd), line_of(fdt->full_fds_bits));
	assert_int_equal(line_of(&files->next_fd) + 1, line_of(fdt->fd));
	assert_int_equal((uintptr_t)fdt->fd % CACHE_LINE, 0);
	hold(&t, 0, 63);
	assert_int_equal(files_open(&t, &file, 0), 64);
	end(&t);
}

static void test_any_fd(void **state)
{
	struct files_task a, b;
	struct files *files = new_files(&a, "any-fd", 2);

	(void)state;
	files_attach(&b, files, 1);
	assert_int_equal(files_grow(&a, 128), 0);
	assert_int_equal(files_open(&a, &file, 0), 0);
	assert_int_equal(files_open(&b, &file, 0), 64);
	/* Above the limit its own word is no use. */
	files_set_limit(files, 64);
	assert_int_equal(files_open(&b, &file, 0), 1);
	files_set_limit(files, 10000);
	hold(&a, 2, 63);
	assert_int_equal(files_open(&a, &file, 0), 65);
	files_detach(&b);
	end(&a);
}

static void test_any_fd_split(void **state)
{
	struct files_task a, b;
	struct files *files = new_files(&a, "any-fd-split", 2);

	(void)state;
	files_attach(&b, files, 1);
	assert_ptr_not_equal(a.lock, b.lock);
	assert_int_equal(files_open(&a, &file, 0), 0);
	assert_int_equal(files_open(&b, &file, 0), 512);
	assert_int_equal(files_slots(files), 1024);
	/* Its part is full: the table grows, to the part's next chunk. */
	hold(&a, 1, 511);
	assert_int_equal(files_open(&a, &file, 0), 1024);
	/* Nowhere to grow: from the other's part. */
	files_set_limit(files, 1024);
	assert_int_equal(files_open(&a, &file, 0), 513);
	hold(&a, 514, 1023);
	assert_int_equal(files_open(&a, &file, 0), -EMFILE);
	assert_int_equal(files_open(&b, &file, 0), -EMFILE);
	files_detach(&b);
	end(&a);
}

static void test_memory(void **state)
{
	struct files_task t;
	struct files *files = new_files(&t, "next_fd-word", 1);
	size_t small = files_memory(files);

	(void)state;
	assert_in_range(small, sizeof(struct files), 8192 + 64);
	/* 8 bytes a slot, two bits and a 64th of one. */
	assert_int_equal(files_grow(&t, 8192), 0);
	assert_in_range(files_memory(files) - small, 8192 * 8 + 2 * 1024,
			8192 * 8 + 2 * 1024 + 4096);
	end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_hint),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_end_late),
		cmocka_unit_test(test_first_word_v1),
		cmocka_unit_test(test_full_bits),
		cmocka_unit_test(test_dup3),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_close_range),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_any_fd),
		cmocka_unit_test(test_any_fd_split),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
