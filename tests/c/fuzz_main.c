// SPDX-License-Identifier: GPL-2.0-only
/* Without libFuzzer: each file that is named is one input. */

#include "fuzz.h"

int main(int argc, char **argv)
{
	static unsigned char data[1 << 16];

	for (int i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "re");

		if (!file) {
			perror(argv[i]);
			return USAGE;
		}
		LLVMFuzzerTestOneInput(data,
				       fread(data, 1, sizeof(data), file));
		fclose(file);
	}
	printf("%d inputs\n", argc - 1);
	return DONE;
}
