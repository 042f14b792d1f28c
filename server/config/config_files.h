/* config_files.h - exports.d: a directory beside the configuration file whose files have exports.
 *
 * Each file NAME.conf has the key exports, as the configuration file has it, and no other. They are
 * read in the order of their names, after the configuration file; other files, and those that begin
 * with a dot, are not looked at. A directory that is not there has no files. All exports count
 * alike, whichever file has them. A link to a file is as good as the file.
 *
 * rmemfsctl export writes such files.
 *
 * THREADS    Those of config.h.
 * ERRORS     0, or -errno with a line in why that begins with file and line. -EINVAL also for a
 *            file that is not a regular one; -EPERM if it, or the directory, is another user's or
 * others may change it.
 */
#ifndef RMEMFS_SERVER_CONFIG_CONFIG_FILES_H
#define RMEMFS_SERVER_CONFIG_CONFIG_FILES_H

#include <stddef.h>

struct server_config;

/* Adds the exports of exports.d beside path. The server may not read the directory, or one of its
 * files: -EACCES. */
int config_files_read(struct server_config *config, const char *path, char *why, size_t whylen);

#endif
