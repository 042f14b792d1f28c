/* auth_key_file.h - reads the keys of a file.
 *
 * A file has one key a line (auth_key.h), and all of them are valid: so a new key is there before
 * the old one goes. Empty lines and lines that begin with '#' are skipped, and so are blanks and
 * carriage returns at either end of a line. No id may be there twice. A file has less than 16 KiB.
 *
 * The file must be one that no other user chose or can read: a regular file, not a link, which
 * belongs to root or to this process's user. Its group may read it; nobody else may read or change
 * it. Folders above it are the admin's affair. It is opened without waiting, whatever is there.
 *
 * OWNERSHIP  auth_key_file_free() frees the keys, also after an error; a struct of zeros has none.
 *            Keys and the file's text lie in OpenSSL's secure heap while it has room: it is locked
 *            into memory where RLIMIT_MEMLOCK allows that, and in no core dump. All of it is
 *            overwritten when it is freed.
 * THREADS    Any, one struct at a time. The first call makes the secure heap of the process. After
 *            fork(2) the child's copy is not locked.
 * ERRORS     0, or the -errno of the first fault: of open(2), fstat(2), read(2); -EPERM for owner
 *            and mode, -EFBIG, -EINVAL for contents, -ENOMEM.
 */
#ifndef RMEMFS_COMMON_AUTH_AUTH_KEY_FILE_H
#define RMEMFS_COMMON_AUTH_AUTH_KEY_FILE_H

#include <stddef.h>

#include "common/auth/auth_key.h"

/* Mode bits that a key file must not have: its group may write, others may read or write. */
enum { AUTH_KEY_FILE_BAD_MODE = 0026 };

/* In the order of the file. */
struct auth_key_file {
	struct auth_key *v;
	size_t n, room;
};

/* Is told one fault: file, line, reason and remedy, without a newline and without any secret. */
typedef void auth_key_file_fault(void *arg, const char *text);

/* After an error why has the first fault, and the file no keys. */
int auth_key_file_read(const char *path, struct auth_key_file *file, char *why, size_t whylen);

/* Tells of each fault. After an error the file has the keys of the lines without a fault: show
 * them, but use none. */
int auth_key_file_check(
	const char *path, struct auth_key_file *file, auth_key_file_fault *fault, void *arg);

/* The same for a text of len bytes, which path only names. */
int auth_key_file_parse(const char *path, const char *text, size_t len, struct auth_key_file *file,
	auth_key_file_fault *fault, void *arg);

/* The key of that id, or NULL. The id need not end with a NUL. */
const struct auth_key *auth_key_file_find(
	const struct auth_key_file *file, const char *id, size_t len);

void auth_key_file_free(struct auth_key_file *file);

#endif
