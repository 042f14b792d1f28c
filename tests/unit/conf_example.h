/* conf_example.h - a shipped example of a configuration. For each of its lines "#key = value;" it
 * makes a file with that line alone uncommented; the line keeps its number. */
#ifndef RMEMFS_TESTS_CONF_EXAMPLE_H
#define RMEMFS_TESTS_CONF_EXAMPLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/conf/conf.h"
#include "common/base/util.h"

enum { EXAMPLE_KEYS_MAX = 32 };

struct conf_example {
	char path[64];                 /* of the file for the present line */
	char *names[EXAMPLE_KEYS_MAX]; /* keys seen */
	size_t n;
};

/* Returns the length of the key if the line is a key that is commented out; 0: it is another
 * line. */
static inline size_t example_key_len(const char *line)
{
	size_t len = line[0] == '#' ? strspn(line + 1, "abcdefghijklmnopqrstuvwxyz_") : 0;

	return len && strncmp(line + 1 + len, " = ", 3) == 0 ? len : 0;
}

static inline bool example_seen(const struct conf_example *example, const char *name)
{
	for (size_t i = 0; i < example->n; i++)
		if (strcmp(example->names[i], name) == 0)
			return true;
	return false;
}

static inline void example_write(
	const struct conf_example *example, unsigned number, const char *line)
{
	FILE *f = fopen(example->path, "w");

	assert_non_null(f);
	for (unsigned i = 1; i < number; i++)
		fputc('\n', f);
	fputs(line, f);
	assert_int_equal(fclose(f), 0);
}

/* Calls each(file, key, first) for every such line. first: the key's first line, with the
 * default. */
static inline void example_each(const char *path,
	void (*each)(const char *file, const char *key, bool first), struct conf_example *example)
{
	FILE *f = fopen(path, "r");
	autofree char *line = NULL;
	unsigned number = 0;
	size_t size = 0, len;
	int fd;

	assert_non_null(f);
	/* A memfd has no name, so a test that fails leaves no file behind. */
	fd = memfd_create("example", MFD_CLOEXEC);
	assert_true(fd >= 0);
	*example = (struct conf_example){0};
	snprintf(example->path, sizeof(example->path), "/proc/self/fd/%d", fd);
	while (getline(&line, &size, f) > 0) {
		char *name;

		number++;
		len = example_key_len(line);
		if (!len)
			continue;
		example_write(example, number, line + 1);
		name = strndup(line + 1, len);
		assert_non_null(name);
		each(example->path, name, !example_seen(example, name));
		assert_true(example->n < EXAMPLE_KEYS_MAX);
		example->names[example->n++] = name;
	}
	fclose(f);
	close(fd);
}

/* Every key of the table is in the example. */
static inline void example_is_complete(struct conf_example *example, const struct conf_key *keys)
{
	for (; keys->name; keys++)
		if (!example_seen(example, keys->name))
			fail_msg("the example lacks %s", keys->name);
	for (size_t i = 0; i < example->n; i++)
		free(example->names[i]);
}

#endif
