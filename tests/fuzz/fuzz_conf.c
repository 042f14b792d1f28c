/* fuzz_conf.c - any bytes as a configuration file: it is read or refused, without a crash or a
 * leak. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/conf/conf.h"

struct element {
	char *name;
	uint64_t size;
};

struct settings {
	bool flag;
	uint64_t count;
	char *word;
	struct conf_strings words;
	struct conf_groups elements;
};

static const struct conf_key element_keys[] = {
	{"name", CONF_STRING, offsetof(struct element, name), .max = 16, .required = true},
	{"size", CONF_SIZE, offsetof(struct element, size)},
	{0},
};

static const struct conf_key keys[] = {
	{"flag", CONF_BOOL, offsetof(struct settings, flag)},
	{"count", CONF_UINT, offsetof(struct settings, count), .max = 100},
	{"word", CONF_STRING, offsetof(struct settings, word)},
	{"words", CONF_STRINGS, offsetof(struct settings, words)},
	{"elements", CONF_GROUPS, offsetof(struct settings, elements), .keys = element_keys,
		.element_bytes = sizeof(struct element)},
	{0},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* A leak of libconfig's own, when a syntax error follows a string. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("conf", MFD_CLOEXEC);
	struct settings settings = {0};
	char path[64], why[256];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	conf_read(path, keys, NULL, &settings, why, sizeof(why));
	conf_free(keys, &settings);
	close(fd);
	return 0;
}
