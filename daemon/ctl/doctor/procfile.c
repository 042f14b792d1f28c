#include "daemon/ctl/doctor/procfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"

bool procfile_text(const char *path, char *buf, size_t len)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t at = 0;
	ssize_t n = fd < 0 ? -1 : 1;

	while (n > 0 && at < len - 1) {
		n = read(fd, buf + at, len - 1 - at);
		at += n > 0 ? (size_t)n : 0;
	}
	buf[at] = '\0';
	if (at && buf[at - 1] == '\n')
		buf[at - 1] = '\0';
	return n >= 0;
}

bool procfile_number(const char *path, int64_t *number)
{
	char text[32], *end;

	if (!procfile_text(path, text, sizeof(text)))
		return false;
	errno = 0;
	*number = strtoll(text, &end, 10);
	return end != text && !errno;
}

bool procfile_field(const char *path, const char *key, int base, uint64_t *number)
{
	char text[8192], *at = text;
	size_t len = strlen(key);

	if (!procfile_text(path, text, sizeof(text)))
		return false;
	while (strncmp(at, key, len) != 0 || at[len] != ':') {
		at = strchr(at, '\n');
		if (!at)
			return false;
		at++;
	}
	*number = strtoull(at + len + 1, NULL, base);
	return true;
}

void procfile_choice(const char *path, char *buf, size_t len)
{
	char text[128];
	const char *at;

	procfile_text(path, text, sizeof(text));
	at = strchr(text, '[');
	at = at ? at + 1 : text;
	snprintf(buf, len, "%.*s", (int)strcspn(at, "]"), at);
}

unsigned procfile_entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned n = 0;

	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

void procfile_name(int pid, char *buf, size_t len)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	procfile_text(path, buf, len);
}
