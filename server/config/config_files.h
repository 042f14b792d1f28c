/* config_files.h - exports.d: a directory beside the configuration file whose files have exports.
 *
 * Each file NAME.conf has the key exports, as the configuration file has it, and no other. They are
 * read in the order of their names, after the configuration file; other files, and those that begin
 * with a dot, are not looked at. A directory that is not there has no files. All exports count
 * alike, whichever file has them. A link to a file is as good as the file.
 *
 * rmemfsctl export writes such files. Before it has a server remove an export it writes a mark,
 * .NAME.remove, whose bytes nobody reads. As long as the command lives, it has the mark locked
 * (flock(2)). See server/serve/removals.h for the meaning of marks.
 *
 * THREADS    Those of config.h.
 * ERRORS     0, or -errno with a line in why that begins with file and line. -EINVAL also for a
 *            file that is not a regular one; -EPERM if it, or the directory, is another user's or
 * others may change it.
 */
#ifndef RMEMFS_SERVER_CONFIG_CONFIG_FILES_H
#define RMEMFS_SERVER_CONFIG_CONFIG_FILES_H

#include <stdbool.h>
#include <stddef.h>

struct export_config;
struct server_config;

enum removal_mark {
	MARK_LEFT, /* nobody waits for the removal: a command that was killed has left the mark */
	MARK_WANTED,
};

/* Adds the exports of exports.d beside path, and its marks. The server may not read the directory,
 * or one of its files: -EACCES. */
int config_files_read(struct server_config *config, const char *path, char *why, size_t whylen);

/* Whether the file of an export that is configured is exports.d/NAME.conf, and has no other export:
 * then rmemfsctl can remove it. Else why says which file has which. */
bool config_files_is_alone(const struct server_config *config, const struct export_config *export,
	char *why, size_t whylen);

#endif
