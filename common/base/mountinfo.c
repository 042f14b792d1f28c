#include "common/base/mountinfo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "common/base/util.h"

/* Blanks, tabs, newlines and backslashes are written as \ooo. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		unsigned octal;

		if (from[0] == '\\' && sscanf(from + 1, "%3o", &octal) == 1) {
			*to = (char)octal;
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* The text behind "name" in a list of options, "" where it has no value; NULL: it is not there. */
static const char *option(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, len) != 0)
			continue;
		if (at[len] == '=')
			return at + len + 1;
		if (strchr(",\n", at[len]))
			return "";
	}
	return NULL;
}

/* "36 35 0:42 / /mnt rw,noatime master:1 - fuse.rmemfs host:/export rw,user_id=0" */
static bool parse_mount(char *line, struct mount *mount)
{
	char *tail = strstr(line, " - ");
	char *fields[6], *type, *source, *options, *tag, *save;
	const char *uid;

	if (!tail)
		return false;
	*tail = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		fields[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!fields[i])
			return false;
	}
	mount->spreads = false;
	while ((tag = strtok_r(NULL, " ", &save)))
		mount->spreads |=
			strncmp(tag, "shared:", 7) == 0 || strncmp(tag, "master:", 7) == 0;
	type = strtok_r(tail + 3, " ", &save);
	source = type ? strtok_r(NULL, " ", &save) : NULL;
	options = source ? strtok_r(NULL, " ", &save) : NULL;
	if (!options || sscanf(fields[2], "%*u:%u", &mount->minor) != 1)
		return false;
	unescape(fields[4]);
	unescape(source);
	mount->dir = fields[4];
	mount->type = type;
	mount->source = source;
	mount->flags = (option(fields[5], "nosuid") ? MS_NOSUID : 0) |
		       (option(fields[5], "nodev") ? MS_NODEV : 0);
	mount->read_only = option(options, "ro");
	mount->sync = option(options, "sync");
	uid = option(options, "user_id");
	mount->uid = uid ? (uid_t)strtoul(uid, NULL, 10) : 0;
	return true;
}

int mountinfo_each(const char *file, bool (*fn)(const struct mount *mount, void *arg), void *arg)
{
	FILE *f = fopen(file, "re");
	autofree char *line = NULL;
	size_t size = 0;
	struct mount mount;
	bool more = true;

	if (!f)
		return -errno;
	while (more && getline(&line, &size, f) > 0)
		if (parse_mount(line, &mount))
			more = fn(&mount, arg);
	fclose(f);
	return 0;
}

char *mountinfo_copy(const struct mount *mount, struct mount *copy)
{
	size_t dir = strlen(mount->dir) + 1, type = strlen(mount->type) + 1;
	size_t source = strlen(mount->source) + 1;
	char *text = malloc(dir + type + source);

	if (!text)
		return NULL;
	*copy = *mount;
	copy->dir = memcpy(text, mount->dir, dir);
	copy->type = memcpy(text + dir, mount->type, type);
	copy->source = memcpy(text + dir + type, mount->source, source);
	return text;
}

struct wanted {
	const char *dir;
	struct mount *mount;
	char *text;
};

/* The last one listed is the topmost. */
static bool take_if_wanted(const struct mount *mount, void *arg)
{
	struct wanted *w = arg;

	if (strcmp(mount->dir, w->dir) != 0)
		return true;
	free(w->text);
	w->text = mountinfo_copy(mount, w->mount);
	return true;
}

char *mountinfo_find(const char *dir, struct mount *mount)
{
	struct wanted w = {dir, mount, NULL};

	mountinfo_each("/proc/self/mountinfo", take_if_wanted, &w);
	return w.text;
}
