// SPDX-License-Identifier: GPL-2.0-only
/* Made up, in the shape that fs/file.c has: not meant to compile. */
/* alloc_fd(start, end, flags) in a comment is not a definition. */
static int expand_fdtable(struct files_struct *files, unsigned int nr)
{
	grow(files, nr);
	return 1;
}

static int expand_files(struct files_struct *files, unsigned int nr)
{
	return expand_fdtable(files, nr);
}

static inline void __clear_open_fd(unsigned int fd, struct fdtable *fdt)
{
	__clear_bit(fd, fdt->open_fds);
	__clear_bit(fd / 64, fdt->full_fds_bits);
}

static unsigned int find_next_fd(struct fdtable *fdt, unsigned int start)
{
	unsigned int bitbit;

	bitbit = find_next_zero_bit(fdt->full_fds_bits, maxbit, bitbit) * 64;
	return find_next_zero_bit(fdt->open_fds, maxfd, start);
}

static int alloc_fd(unsigned start, unsigned end, unsigned flags)
{
	spin_lock(&files->file_lock);
	fdt = files_fdtable(files);
	fd = files->next_fd;
	fd = find_next_fd(fdt, fd);
	if (fd >= end)
		goto out;
	error = expand_files(files, fd);
	files->next_fd = fd + 1;
	__set_open_fd(fd, fdt);
	if (rcu_access_pointer(fdt->fd[fd]) != NULL)
		printk("oops");
out:
	spin_unlock(&files->file_lock);
}

static void __put_unused_fd(struct files_struct *files, unsigned int fd)
{
	__clear_open_fd(fd, fdt);
	if (fd < files->next_fd)
		files->next_fd = fd;
}

void put_unused_fd(unsigned int fd)
{
	__put_unused_fd(files, fd);
}

static struct file *pick_file(struct files_struct *files, unsigned fd)
{
	if (!file)
		return NULL;
	rcu_assign_pointer(fdt->fd[fd], NULL);
	__put_unused_fd(files, fd);
	return file;
}

int close_fd(unsigned fd)
{
	return put(pick_file(files, fd));
}
