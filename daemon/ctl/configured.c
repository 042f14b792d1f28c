#include "daemon/ctl/configured.h"

#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/ctl/configured_units.h"
#include "daemon/ctl/json.h"
#include "daemon/ctl/mount_ask.h"

enum { LINE_BYTES = 16 << 10 };

static const char fstab_file[] = "/etc/fstab";

static bool is_ours(const struct mntent *line)
{
	return strcmp(line->mnt_type, "rmemfs") == 0 ||
	       strcmp(line->mnt_type, MOUNT_TYPE_OURS) == 0;
}

/* An automount is mounted when somebody looks. */
static bool mounts_at_boot(const struct mntent *line)
{
	return !hasmntopt(line, "noauto") && !hasmntopt(line, "x-systemd.automount");
}

static bool is_mounted(const char *dir)
{
	struct mount mount;
	autofree char *text = ctl_find_mount(dir, &mount);

	return text;
}

int configured_fstab(const char *file, json_t *list)
{
	FILE *in = setmntent(file, "re");
	char buf[LINE_BYTES];
	struct mntent line;

	if (!in)
		return errno == ENOENT ? 0 : -errno;
	while (getmntent_r(in, &line, buf, sizeof(buf)))
		if (is_ours(&line) && mounts_at_boot(&line) && !is_mounted(line.mnt_dir))
			json_array_append_new(
				list, json_pack("{s:s, s:s, s:b, s:s, s:s, s:s}", "kind", "mount",
					      "name", line.mnt_dir, "unit", 0, "state", "unmounted",
					      "result", "", "status", ""));
	endmntent(in);
	return 0;
}

int configured_list(unsigned limit_ms, json_t **list)
{
	int err;

	*list = json_array();
	if (!*list)
		return -ENOMEM;
	err = configured_units_list(limit_ms, *list);
	/* Others read no fstab that root keeps to itself. */
	(void)configured_fstab(fstab_file, *list);
	return err;
}

unsigned configured_count(const json_t *list, const char *kind)
{
	const json_t *each;
	unsigned n = 0;
	size_t i;

	json_array_foreach(list, i, each) n += strcmp(ctl_json_text(each, "kind"), kind) == 0;
	return n;
}
