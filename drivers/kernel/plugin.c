// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plugin for QEMU's TCG that counts calls and instructions of functions of
 * the guest's kernel, between the two marks that count.c executes.
 *	-plugin plugin.so,out=FILE,f=NAME:START:END,f=...	(addresses in
 *hex) Writes a line for each stretch between marks: NAME=CALLS/INSTRUCTIONS for
 * each function that ran in it.  A call is an execution of the first
 * instruction.  One virtual CPU.
 *
 * Debian's QEMU 7.2 can load plugins and ships no header for them: what is
 * used of the interface (version 1) is declared here.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;

typedef void (*on_translation)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*on_execution)(unsigned int cpu, void *data);
typedef void (*on_exit)(qemu_plugin_id_t id, void *data);

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
						  on_translation fn);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *i,
						   on_execution fn, int flags,
						   void *data);
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, on_exit fn,
					   void *data);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *i);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *i);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *i);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED extern int qemu_plugin_version;
EXPORTED int qemu_plugin_install(qemu_plugin_id_t id,
				 const struct qemu_info *info, int argc,
				 char **argv);

int qemu_plugin_version = 1;

#define NO_REGISTERS 0
#define MOST 128

static struct function {
	char name[64];
	uint64_t start, end;
	uint64_t calls, instructions;
} functions[MOST];
static unsigned int count;
static bool counting;
static FILE *out;

static void run_instruction(unsigned int cpu, void *data)
{
	struct function *f = data;

	(void)cpu;
	f->instructions += counting;
}

static void run_first(unsigned int cpu, void *data)
{
	struct function *f = data;

	(void)cpu;
	f->calls += counting;
	f->instructions += counting;
}

static void begin(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	for (unsigned int i = 0; i < count; i++)
		functions[i].calls = functions[i].instructions = 0;
	counting = true;
}

static void end(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	if (!counting)
		return;
	counting = false;
	for (unsigned int i = 0; i < count; i++)
		if (functions[i].instructions)
			fprintf(out, "%s=%" PRIu64 "/%" PRIu64 " ",
				functions[i].name, functions[i].calls,
				functions[i].instructions);
	fputc('\n', out);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	static const unsigned char begins[] = {0x0f, 0x1f, 0x80, 0x53,
					       0x44, 0x46, 0x42};
	static const unsigned char ends[] = {0x0f, 0x1f, 0x80, 0x53,
					     0x44, 0x46, 0x45};
	size_t n = qemu_plugin_tb_n_insns(tb);

	(void)id;
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t at = qemu_plugin_insn_vaddr(insn);

		if (qemu_plugin_insn_size(insn) == sizeof(begins)) {
			const void *data = qemu_plugin_insn_data(insn);

			if (!memcmp(data, begins, sizeof(begins)))
				qemu_plugin_register_vcpu_insn_exec_cb(
					insn, begin, NO_REGISTERS, NULL);
			else if (!memcmp(data, ends, sizeof(ends)))
				qemu_plugin_register_vcpu_insn_exec_cb(
					insn, end, NO_REGISTERS, NULL);
		}
		for (unsigned int k = 0; k < count; k++)
			if (at >= functions[k].start && at < functions[k].end)
				qemu_plugin_register_vcpu_insn_exec_cb(
					insn,
					at == functions[k].start
						? run_first
						: run_instruction,
					NO_REGISTERS, &functions[k]);
	}
}

static void finished(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	fclose(out);
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
			int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++) {
		struct function *f = &functions[count];

		if (!strncmp(argv[i], "out=", 4) && !out) {
			out = fopen(argv[i] + 4, "w");
		} else if (count < MOST &&
			   sscanf(argv[i], "f=%63[^:]:%" SCNx64 ":%" SCNx64,
				  f->name, &f->start, &f->end) == 3) {
			count++;
		} else {
			fprintf(stderr, "plugin: not understood: %s\n",
				argv[i]);
			return -1;
		}
	}
	if (!out) {
		fprintf(stderr, "plugin: out=FILE is missing\n");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, finished, NULL);
	return 0;
}
