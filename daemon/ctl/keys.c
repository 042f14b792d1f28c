#include "daemon/ctl/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/auth/auth_key.h"
#include "common/auth/auth_key_file.h"
#include "common/base/log.h"
#include "common/base/util.h"

/* ---- keygen ---------------------------------------------------------------------------------- */

static int sync_folder(const char *file)
{
	autofree char *copy = strdup(file);
	autoclose int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	return fd >= 0 && fsync(fd) == 0 ? 0 : -errno;
}

static int fill(const char *file, int fd, const struct auth_key *key)
{
	int err;

	/* Not less than that, whatever the umask. */
	if (fchmod(fd, 0600) != 0)
		return -errno;
	err = auth_key_write(key, fd);
	if (err)
		return err;
	return fsync(fd) == 0 ? sync_folder(file) : -errno;
}

static int create(const char *file, const struct auth_key *key)
{
	autoclose int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int err;

	if (fd < 0)
		return -errno;
	err = fill(file, fd, key);
	if (err)
		unlink(file);
	return err;
}

static int write_file(const char *name, const char *file, const struct auth_key *key)
{
	int err = create(file, key);

	if (err == -EEXIST)
		log_error("%s is there already, and stays as it is: name a new file, or add a key "
			  "to it: rmemfsctl keygen %s >>%s",
			file, name, file);
	else if (err)
		log_error("can't make the key file %s: %s%s", file, errno_text(err),
			err == -ENOENT ? ": make its folder first, or name another" : "");
	return err;
}

static int write_stdout(const char *name, const struct auth_key *key)
{
	struct stat st;
	int err;

	if (isatty(STDOUT_FILENO)) {
		log_error("standard output is a terminal, and would show the key: name a file: "
			  "rmemfsctl keygen %s FILE",
			name);
		return -EPERM;
	}
	if (fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode) &&
		(st.st_mode & AUTH_KEY_FILE_BAD_MODE)) {
		log_error("standard output is a file of mode %04o, and other users could use the "
			  "key: chmod g-w,o-rw it, or name a new file: rmemfsctl keygen %s FILE",
			st.st_mode & 07777u, name);
		return -EPERM;
	}
	err = auth_key_write(key, STDOUT_FILENO);
	if (err)
		log_error("can't write the key to standard output: %s", errno_text(err));
	return err;
}

/* file: as the user has written it, or NULL. */
static void tell(const char *name, const char *file, const char *id, const char *fingerprint)
{
	char whole[PATH_MAX];

	file = file ? realpath(file, whole) : "FILE";
	if (!file)
		file = "FILE";
	fprintf(stderr,
		"key %s, fingerprint %s\n"
		"1. On the server: chgrp rmemfs %s; chmod 640 %s\n"
		"   and in server.conf, in an export:\n"
		"   clients = ( { name = \"%s\"; keys = \"%s\"; } );\n"
		"2. On the client: scp SERVER:%s %s\n"
		"   and mount with -o key=%s\n",
		id, fingerprint, file, file, name, file, file, file, file);
}

int ctl_keygen(const char *name, const char *file)
{
	char why[256], fingerprint[AUTH_KEY_FINGERPRINT_BYTES];
	struct auth_key key;
	int err = auth_key_generate(name, &key, why, sizeof(why));

	if (err) {
		log_error(err == -EINVAL ? "NAME %s" : "%s", why);
		return EXIT_FAILURE;
	}
	err = auth_key_fingerprint(&key, fingerprint);
	if (err)
		log_error("libcrypto can't make the key's fingerprint");
	else
		err = file ? write_file(name, file, &key) : write_stdout(name, &key);
	if (!err)
		tell(name, file, key.id, fingerprint);
	auth_key_clear(&key);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- keycheck -------------------------------------------------------------------------------- */

static void print_fault(void *arg, const char *text)
{
	(void)arg;
	log_error("%s", text);
}

int ctl_keycheck(const char *file)
{
	char fingerprint[AUTH_KEY_FINGERPRINT_BYTES];
	struct auth_key_file keys;
	int err = auth_key_file_check(file, &keys, print_fault, NULL);

	for (size_t i = 0; i < keys.n; i++) {
		if (auth_key_fingerprint(&keys.v[i], fingerprint)) {
			log_error("libcrypto can't make the fingerprint of key %s", keys.v[i].id);
			err = -EIO;
			continue;
		}
		printf("key %s, fingerprint %s\n", keys.v[i].id, fingerprint);
	}
	auth_key_file_free(&keys);
	return fflush(stdout) == 0 && !err ? EXIT_SUCCESS : EXIT_FAILURE;
}
