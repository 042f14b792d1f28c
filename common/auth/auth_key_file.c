#include "common/auth/auth_key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "common/base/log.h"
#include "common/base/util.h"

enum {
	FILE_BYTES = 16 << 10,
	HEAP_BYTES = 256 << 10, /* a power of 2, as OpenSSL wants it */
	HEAP_LEAST = 32,
	FAULT_BYTES = 2048,
};

/* One reading of a file. */
struct reading {
	const char *path;
	struct auth_key_file *file;
	auth_key_file_fault *fault;
	void *arg;
	int err;   /* of the first fault */
	bool some; /* the file has a line that is no comment */
};

/* ---- memory for secrets ---------------------------------------------------------------------- */

static void make_heap(void)
{
	CRYPTO_secure_malloc_init(HEAP_BYTES, HEAP_LEAST);
}

/* OpenSSL takes its own secrets from that heap, too, and fails where it is full: half of it is
 * left. */
static void *secret_alloc(size_t bytes)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_heap);
	return CRYPTO_secure_used() + bytes <= HEAP_BYTES / 2 ? OPENSSL_secure_zalloc(bytes)
							      : OPENSSL_zalloc(bytes);
}

static void secret_free(void *p, size_t bytes)
{
	OPENSSL_secure_clear_free(p, bytes);
}

void auth_key_file_free(struct auth_key_file *file)
{
	secret_free(file->v, file->room * sizeof(*file->v));
	*file = (struct auth_key_file){0};
}

/* ---- faults ---------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void complain(
	struct reading *r, int err, const char *format, ...)
{
	char text[FAULT_BYTES];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (!r->err)
		r->err = err;
	r->fault(r->arg, text);
}

static void complain_irregular(struct reading *r)
{
	complain(r, -EINVAL, "key file %s is no regular file: name a file with keys", r->path);
}

static void complain_unopened(struct reading *r, int err)
{
	switch (err) {
	case -ENOENT:
		complain(r, err,
			"key file %s: %s: on a client copy the server's file here; on the server "
			"rmemfsctl keygen NAME %s makes a key",
			r->path, errno_text(err), r->path);
		break;
	case -ELOOP:
		complain(r, err, "key file %s is a symbolic link: name the file itself", r->path);
		break;
	case -ENXIO: /* a socket */
		complain_irregular(r);
		break;
	case -EACCES:
		complain(r, err,
			"key file %s: %s: user %u reads it, and must be its owner or in its group: "
			"chgrp GROUP %s; chmod 640 %s",
			r->path, errno_text(err), geteuid(), r->path, r->path);
		break;
	default:
		complain(r, err, "key file %s: %s", r->path, errno_text(err));
		break;
	}
}

/* ---- contents -------------------------------------------------------------------------------- */

const struct auth_key *auth_key_file_find(
	const struct auth_key_file *file, const char *id, size_t len)
{
	for (size_t i = 0; i < file->n; i++)
		if (strlen(file->v[i].id) == len && memcmp(file->v[i].id, id, len) == 0)
			return &file->v[i];
	return NULL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void trim(const char **line, size_t *len)
{
	while (*len > 0 && is_blank((*line)[*len - 1]))
		--*len;
	for (; *len > 0 && is_blank(**line); ++*line)
		--*len;
}

static void add_line(struct reading *r, unsigned number, const char *line, size_t len)
{
	struct auth_key_file *file = r->file;
	struct auth_key *key = &file->v[file->n];
	char why[512];
	int err;

	trim(&line, &len);
	if (len == 0 || *line == '#')
		return;
	r->some = true;
	err = auth_key_parse(line, len, key, why, sizeof(why));
	if (err)
		complain(r, err, "%s:%u: %s", r->path, number, why);
	else if (auth_key_file_find(file, key->id, strlen(key->id)))
		complain(r, -EINVAL, "%s:%u: the file has key %s already: remove one of the lines",
			r->path, number, key->id);
	else
		file->n++;
}

static void add_lines(struct reading *r, const char *text, size_t len)
{
	struct auth_key_file *file = r->file;
	const char *end = text + len, *newline;

	/* So many lines can have a key, with a newline between them; and one more slot to parse in.
	 */
	file->room = (len + 1) / (AUTH_KEY_LINE_MIN + 1) + 1;
	file->v = secret_alloc(file->room * sizeof(*file->v));
	if (!file->v) {
		file->room = 0;
		complain(r, -ENOMEM, "key file %s: %s", r->path, errno_text(ENOMEM));
		return;
	}
	for (unsigned number = 1; text < end; number++, text = newline + 1) {
		newline = memchr(text, '\n', (size_t)(end - text));
		if (!newline)
			newline = end;
		add_line(r, number, text, (size_t)(newline - text));
	}
	if (!r->some)
		complain(r, -EINVAL,
			"key file %s has no key: on a client copy the server's file here; on the "
			"server rmemfsctl keygen NAME >>%s adds a key",
			r->path, r->path);
}

int auth_key_file_parse(const char *path, const char *text, size_t len, struct auth_key_file *file,
	auth_key_file_fault *fault, void *arg)
{
	struct reading r = {.path = path, .file = file, .fault = fault, .arg = arg};

	*file = (struct auth_key_file){0};
	add_lines(&r, text, len);
	return r.err;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void check_owner(struct reading *r, const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		complain(r, -EPERM,
			"key file %s belongs to user %u, and must belong to root or to its reader: "
			"chown %u %s",
			r->path, st->st_uid, geteuid(), r->path);
}

static void check_mode(struct reading *r, const struct stat *st)
{
	const char *may = st->st_mode & (S_IWGRP | S_IWOTH) ? "change" : "read";

	if (st->st_mode & AUTH_KEY_FILE_BAD_MODE)
		complain(r, -EPERM,
			"key file %s has mode %04o, and other users may %s it: chmod g-w,o-rw %s",
			r->path, st->st_mode & 07777u, may, r->path);
}

/* Reads a text of less than FILE_BYTES, the size of buf. */
static int read_text(int fd, char *buf, size_t *len)
{
	for (*len = 0; *len < FILE_BYTES;) {
		ssize_t n = read(fd, buf + *len, FILE_BYTES - *len);

		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			*len += (size_t)n;
	}
	return -EFBIG;
}

static void read_contents(struct reading *r, int fd)
{
	char *buf = secret_alloc(FILE_BYTES);
	size_t len;
	int err = buf ? read_text(fd, buf, &len) : -ENOMEM;

	if (err == -EFBIG)
		complain(r, err, "key file %s has 16 KiB or more: keep keys alone in it", r->path);
	else if (err)
		complain(r, err, "key file %s: %s", r->path, errno_text(err));
	else
		add_lines(r, buf, len);
	secret_free(buf, FILE_BYTES);
}

int auth_key_file_check(
	const char *path, struct auth_key_file *file, auth_key_file_fault *fault, void *arg)
{
	struct reading r = {.path = path, .file = file, .fault = fault, .arg = arg};
	/* O_NONBLOCK: a fifo would wait for a writer. */
	autoclose int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	*file = (struct auth_key_file){0};
	if (fd < 0 || fstat(fd, &st) != 0) {
		complain_unopened(&r, -errno);
	} else if (!S_ISREG(st.st_mode)) {
		complain_irregular(&r);
	} else {
		check_owner(&r, &st);
		check_mode(&r, &st);
		read_contents(&r, fd);
	}
	return r.err;
}

/* ---- one fault only -------------------------------------------------------------------------- */

struct first_fault {
	char *why;
	size_t whylen;
	bool told;
};

static void keep_first(void *arg, const char *text)
{
	struct first_fault *first = arg;

	if (!first->told)
		snprintf(first->why, first->whylen, "%s", text);
	first->told = true;
}

int auth_key_file_read(const char *path, struct auth_key_file *file, char *why, size_t whylen)
{
	struct first_fault first = {.why = why, .whylen = whylen};
	int err = auth_key_file_check(path, file, keep_first, &first);

	if (err)
		auth_key_file_free(file);
	return err;
}
