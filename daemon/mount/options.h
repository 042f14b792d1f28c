/* options.h - the command line of rmemfs.
 *
 *     rmemfs [-o OPTIONS] [-f] [-c FILE] [--log-level LEVEL] SOURCE MOUNTPOINT
 *
 * Also as mount(8) calls it by the name of mount.rmemfs:
 *
 *     mount.rmemfs SOURCE MOUNTPOINT [-sfnv] [-N NAMESPACE] [-o OPTIONS]
 *
 * OWNERSHIP  options_fini() frees what options_parse() stored, after a failure, too.
 * ERRORS     0 or -errno with a line in why.
 */
#ifndef RMEMFS_DAEMON_MOUNT_OPTIONS_H
#define RMEMFS_DAEMON_MOUNT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/transport/address.h"
#include "daemon/file/access_time.h"
#include "daemon/mount/config.h"

/* Whether set-user-id bits, or device files, are obeyed. The server decides about the contents of a
 * file, and another machine may answer at its address. So neither is obeyed unless the user says
 * so. */
enum permission {
	PERMISSION_UNSAID,
	PERMISSION_REFUSED,
	PERMISSION_GIVEN,
};

struct options {
	bool help, version; /* asked for: nothing else is set */
	bool foreground;
	bool fake;    /* mount -f: all but mounting */
	bool remount; /* change a mount that is there */
	bool read_only;
	bool sync, dirsync; /* libfuse gets them, too */
	enum permission suid, dev;
	enum access_mode access;
	bool nodiratime;
	bool access_given;           /* access or nodiratime was given */
	bool nosymfollow;            /* libfuse does not know it */
	const char *mount_namespace; /* a file that stands for it; NULL: ours */
	const char *config_path;     /* as given; NULL: the default one, which may be absent */
	const char *log_level;       /* of --log-level, or NULL */
	const char *source_text, *mountpoint_text;
	struct source source;
	char *mount_options; /* for libfuse, comma-separated; may be empty */
	struct client_config config;

	/* While parsing. */
	bool helper;        /* called by mount(8) */
	bool sloppy;        /* unknown options are no error */
	bool kernels;       /* mount(8) composed a remount's list from what the kernel shows */
	const char **lists; /* values of -o */
	unsigned nlists;
	size_t nobodys; /* bytes at the end of the only list, which mount.fuse3 has added */
	char *given;    /* keys of the file seen as options, each with a comma */
};

/* Reads the command line and the configuration file. default_config: its path, unless the command
 * line names another. */
int options_parse(int argc, char **argv, const char *default_config, struct options *options,
	char *why, size_t whylen);
void options_fini(struct options *options);

/* The flags of mount(2) that the options mean. */
unsigned long options_flags(const struct options *options);
/* Those of these flags that a remount leaves as they are, since no option names them. */
unsigned long options_kept_flags(const struct options *options);

/* The text of --help. */
extern const char options_help[];

#endif
