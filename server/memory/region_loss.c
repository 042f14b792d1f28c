/* region_loss.c - see region_loss.h. */
#include "server/memory/region_loss.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/conf/conf.h"
#include "common/base/log.h"
#include "common/base/util.h"

static void tell_lost(const struct export *export, const struct region_file *file, uint64_t left)
{
	char have[32], want[32], how[144];

	size_format(left, have, sizeof(have));
	size_format(file->len, want, sizeof(want));
	if (left < file->len)
		snprintf(how, sizeof(how),
			"only %s of %s are left; a process that had it open has cut it", have,
			want);
	else
		snprintf(how, sizeof(how), "an access to it failed (SIGBUS)");
	log_error(
		"export '%s': bytes of its region %s are lost: %s; reads and writes there give EIO, and "
		"the export takes no more data: copy what can still be read, then serve another "
		"export in its place",
		export->name, file->path, how);
}

/* The bytes beyond are nobody's. */
static void cut_back(const struct export *export, struct region_file *file)
{
	int err = ftruncate(file->fd, (off_t)file->len) ? -errno : 0;

	if (!file->gained)
		log_warning("export '%s': a process that had region %s open has made it longer%s%s",
			export->name, file->path, err ? ", and it can't be cut back: " : "",
			err ? errno_text(err) : "");
	file->gained = true;
}

/* The bytes that the file still has; more than its length: it has grown. */
static uint64_t bytes_left(const struct region_file *file)
{
	struct stat st;

	if (fstat(file->fd, &st) != 0)
		return file->len;
	if ((uint64_t)st.st_size > file->len)
		return (uint64_t)st.st_size;
	return min_u64((uint64_t)st.st_size, (uint64_t)st.st_blocks * 512);
}

static bool look_at(struct export *export, struct region_file *file)
{
	uint64_t left = bytes_left(file);

	if (left > file->len) {
		cut_back(export, file);
		left = min_u64(file->len, bytes_left(file));
	}
	if (file->lost || (left == file->len && !cut_guard_is_struck(&file->guard)))
		return false;
	file->lost = true;
	atomic_store(&export->lost, true);
	tell_lost(export, file, left);
	return true;
}

bool region_loss_look(struct export *export)
{
	bool any = false;

	for (uint32_t i = 0; i < export->nregions; i++)
		any |= look_at(export, export->regions[i]);
	return any;
}

uint32_t region_loss_count(const struct export *export)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < export->nregions; i++)
		n += export->regions[i]->lost;
	return n;
}
