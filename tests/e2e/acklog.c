/* acklog.c - file operations with a log of what was acknowledged, kept outside the mount.
 *
 *     acklog run FOLDER LOG SEED    operates in FOLDER until LOG.stop exists, or it is killed
 *     acklog verify FOLDER LOG      holds FOLDER against the log
 *
 * Each operation is logged before it is sent and when it has been answered. The log alone tells the
 * right answer and the right result: the same operations change a model in memory, with every byte
 * of every file. So an operation that was lost, or done twice after a repetition (EEXIST, ENOENT),
 * contradicts the model. An operation without an answer in the log, because its process was killed,
 * may have happened or not. If it changes bytes, that holds for each byte.
 *
 * Names are SLOTS entries of one folder. Each is a file, an empty directory, or nothing. A file may
 * have several names and an extended attribute, short or long. Exit status 0; or 1 after a
 * contradiction or an error, with a message on standard error.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/util.h"

enum { SLOTS = 24, FILES = 2 * SLOTS, FILE_BYTES_MAX = 192 * 1024, PATH_BYTES = 4096 };
enum { VALUE_BYTES_MAX = 65536 };

#define ATTRIBUTE "user.acklog"

enum kind {
	OP_CREATE,
	OP_WRITE,
	OP_APPEND,
	OP_TRUNCATE,
	OP_RENAME,
	OP_LINK,
	OP_UNLINK,
	OP_MKDIR,
	OP_RMDIR,
	OP_SETXATTR,
	OP_REMOVEXATTR,
	OP_PUNCH,
	OP_ALLOCATE,
	OP_COPY,
	OP_READ,
	OP_KINDS
};

static const char *const kind_names[OP_KINDS] = {"create", "write", "append", "truncate", "rename",
	"link", "unlink", "mkdir", "rmdir", "setxattr", "removexattr", "punch", "allocate", "copy",
	"read"};

struct op {
	enum kind kind;
	unsigned a, b; /* slots */
	uint32_t off, len;
	uint64_t generation; /* seed of the bytes */
};

static char folder[PATH_BYTES];

__attribute__((noreturn, format(printf, 1, 2))) static void give_up(const char *format, ...)
{
	va_list args;

	fputs("acklog: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* ---- the model ------------------------------------------------------------------------------- */

enum { NOTHING = -1, DIRECTORY = -2 }; /* otherwise an index of model.files */

struct file {
	unsigned links;
	uint32_t size;
	uint8_t *bytes;     /* [FILE_BYTES_MAX]; zero beyond the size */
	uint32_t value_len; /* of the extended attribute; 0: it has none */
	uint64_t value;     /* seed of the attribute's bytes */
};

struct model {
	int slots[SLOTS];
	struct file files[FILES];
};

static void model_init(struct model *m)
{
	for (unsigned i = 0; i < SLOTS; i++)
		m->slots[i] = NOTHING;
	for (unsigned i = 0; i < FILES; i++) {
		m->files[i] = (struct file){.bytes = calloc(1, FILE_BYTES_MAX)};
		if (!m->files[i].bytes)
			give_up("out of memory");
	}
}

static void model_duplicate(struct model *to, const struct model *from)
{
	memcpy(to->slots, from->slots, sizeof(to->slots));
	for (unsigned i = 0; i < FILES; i++) {
		to->files[i].links = from->files[i].links;
		to->files[i].size = from->files[i].size;
		to->files[i].value_len = from->files[i].value_len;
		to->files[i].value = from->files[i].value;
		memcpy(to->files[i].bytes, from->files[i].bytes, FILE_BYTES_MAX);
	}
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static void fill_bytes(uint8_t *bytes, uint32_t len, uint64_t generation)
{
	for (uint32_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(mix(generation + i / 8) >> i % 8 * 8);
}

static void make_bytes(uint8_t *bytes, const struct op *op)
{
	fill_bytes(bytes, op->len, op->generation);
}

static int new_file(struct model *m)
{
	for (int i = 0; i < FILES; i++) {
		if (!m->files[i].links) {
			m->files[i].links = 1;
			m->files[i].size = m->files[i].value_len = 0;
			memset(m->files[i].bytes, 0, FILE_BYTES_MAX);
			return i;
		}
	}
	give_up("the model has no more files");
}

static void put_down(struct model *m, int what)
{
	if (what >= 0)
		m->files[what].links--;
}

static int model_write(struct file *f, uint32_t off, const struct op *op)
{
	if (off + op->len > FILE_BYTES_MAX)
		give_up("a write beyond the model's files");
	make_bytes(f->bytes + off, op);
	if (off + op->len > f->size)
		f->size = off + op->len;
	return 0;
}

static int model_truncate(struct file *f, uint32_t size)
{
	if (size < f->size)
		memset(f->bytes + size, 0, f->size - size);
	f->size = size;
	return 0;
}

static int model_setxattr(struct file *f, const struct op *op)
{
	f->value = op->generation;
	f->value_len = op->len;
	return 0;
}

static int model_removexattr(struct file *f)
{
	if (!f->value_len)
		return ENODATA;
	f->value_len = 0;
	return 0;
}

static int model_punch(struct file *f, const struct op *op)
{
	memset(f->bytes + op->off, 0, op->len);
	return 0;
}

static int model_allocate(struct file *f, const struct op *op)
{
	if (op->off + op->len > f->size)
		f->size = op->off + op->len;
	return 0;
}

/* Both files use the same offset. */
static int model_copy(struct model *m, int a, int b, const struct op *op)
{
	struct file *from = &m->files[a], *to;
	uint32_t len;

	if (b < 0)
		return b == NOTHING ? ENOENT : EISDIR;
	to = &m->files[b];
	if (op->off >= from->size)
		return 0;
	if (from == to)
		return EINVAL; /* the ranges overlap */
	len = op->off + op->len > from->size ? from->size - op->off : op->len;
	memcpy(to->bytes + op->off, from->bytes + op->off, len);
	if (op->off + len > to->size)
		to->size = op->off + len;
	return 0;
}

static int model_rename(struct model *m, int *a, int *b)
{
	if (*a == NOTHING)
		return ENOENT;
	if (*a == *b && *a >= 0)
		return 0; /* two names of one file: both stay */
	if (*b >= 0 && *a == DIRECTORY)
		return ENOTDIR;
	if (*b == DIRECTORY && *a >= 0)
		return EISDIR;
	if (a == b)
		return 0;
	put_down(m, *b);
	*b = *a;
	*a = NOTHING;
	return 0;
}

static int model_make(int *slot, int what)
{
	if (*slot != NOTHING)
		return EEXIST;
	*slot = what;
	return 0;
}

static int model_remove(struct model *m, int *slot, bool directory)
{
	if (*slot == NOTHING)
		return ENOENT;
	if (directory != (*slot == DIRECTORY))
		return directory ? ENOTDIR : EISDIR;
	put_down(m, *slot);
	*slot = NOTHING;
	return 0;
}

static int model_link(struct model *m, const int *a, int *b)
{
	if (*a == NOTHING)
		return ENOENT;
	if (*b != NOTHING)
		return EEXIST;
	if (*a == DIRECTORY)
		return EPERM;
	*b = *a;
	m->files[*a].links++;
	return 0;
}

/* Applies the operation, and returns the right answer: 0 or an errno. */
static int model_apply(struct model *m, const struct op *op)
{
	int *a = &m->slots[op->a], *b = &m->slots[op->b];

	switch (op->kind) {
	case OP_CREATE:
		return *a != NOTHING ? EEXIST : model_make(a, new_file(m));
	case OP_MKDIR:
		return model_make(a, DIRECTORY);
	case OP_UNLINK:
	case OP_RMDIR:
		return model_remove(m, a, op->kind == OP_RMDIR);
	case OP_RENAME:
		return model_rename(m, a, b);
	default:
		break;
	}
	if (op->kind == OP_LINK)
		return model_link(m, a, b);
	if (*a < 0)
		return *a == NOTHING ? ENOENT : EISDIR;
	if (op->kind == OP_WRITE)
		return model_write(&m->files[*a], op->off, op);
	if (op->kind == OP_APPEND)
		return model_write(&m->files[*a], m->files[*a].size, op);
	if (op->kind == OP_TRUNCATE)
		return model_truncate(&m->files[*a], op->off);
	if (op->kind == OP_SETXATTR)
		return model_setxattr(&m->files[*a], op);
	if (op->kind == OP_REMOVEXATTR)
		return model_removexattr(&m->files[*a]);
	if (op->kind == OP_PUNCH)
		return model_punch(&m->files[*a], op);
	if (op->kind == OP_ALLOCATE)
		return model_allocate(&m->files[*a], op);
	if (op->kind == OP_COPY)
		return model_copy(m, *a, *b, op);
	return 0;
}

/* ---- the files ------------------------------------------------------------------------------- */

static const char *path_of(unsigned slot, char path[PATH_BYTES])
{
	if (snprintf(path, PATH_BYTES, "%s/%u", folder, slot) >= PATH_BYTES)
		give_up("%s: too long", folder);
	return path;
}

static int write_and_sync(const char *path, int flags, const struct op *op, bool at_end)
{
	static uint8_t bytes[FILE_BYTES_MAX];
	autoclose int fd = open(path, O_WRONLY | O_CLOEXEC | flags);
	ssize_t n;

	if (fd < 0)
		return errno;
	make_bytes(bytes, op);
	n = at_end ? write(fd, bytes, op->len) : pwrite(fd, bytes, op->len, op->off);
	if (n < 0)
		return errno;
	if (n != (ssize_t)op->len)
		give_up("%s: %zd of %u bytes were written", path, n, op->len);
	return fsync(fd) ? errno : 0;
}

/* With ACKLOG_LOSES in the environment a file may lose what was not committed, and fsync tells that
 * by EIO: then it is written again. */
static int write_until_synced(
	const char *path, int flags, const struct op *op, bool at_end, uint32_t end)
{
	struct op again = *op;
	int err = write_and_sync(path, flags, op, at_end);

	if (at_end)
		again.off = end;
	while (err == EIO && getenv("ACKLOG_LOSES"))
		err = write_and_sync(path, 0, &again, false);
	return err;
}

static int create_file(const char *path)
{
	autoclose int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	return fd < 0 ? errno : 0;
}

/* The extended attribute is as in the model. */
static int compare_value(const char *path, const struct file *f)
{
	static uint8_t value[VALUE_BYTES_MAX], expected[VALUE_BYTES_MAX];
	ssize_t n = getxattr(path, ATTRIBUTE, value, sizeof(value));

	if (n < 0 && errno != ENODATA)
		return errno;
	fill_bytes(expected, f->value_len, f->value);
	if ((n < 0 && !f->value_len) ||
		(n == (ssize_t)f->value_len && memcmp(value, expected, f->value_len) == 0))
		return 0;
	fprintf(stderr, "acklog: %s: %s is another one, of %zd bytes, and should have %u\n", path,
		ATTRIBUTE, n, f->value_len);
	return EILSEQ;
}

/* The size may lie between the two: an operation that is done in steps grows the file in steps. */
static bool size_agrees(uint32_t size, const struct file *f, const struct file * or)
{
	uint32_t low = f->size < or->size ? f->size : or->size;
	uint32_t high = f->size + or->size - low;

	return low <= size && size <= high;
}

/* Each byte of the file is as in f or in or. */
static int compare_file(const char *path, const struct file *f, const struct file * or)
{
	static uint8_t bytes[FILE_BYTES_MAX + 1];
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return errno;
	n = pread(fd, bytes, sizeof(bytes), 0);
	if (n < 0)
		return errno;
	if (!size_agrees((uint32_t)n, f, or)) {
		fprintf(stderr, "acklog: %s has %zd bytes, and should have %u\n", path, n, f->size);
		return EILSEQ;
	}
	for (ssize_t i = 0; i < n; i++) {
		if (bytes[i] == f->bytes[i] || bytes[i] == or->bytes[i])
			continue;
		fprintf(stderr, "acklog: %s: byte %zd is %#x, and should be %#x\n", path, i,
			bytes[i], f->bytes[i]);
		return EILSEQ;
	}
	return 0;
}

static int compare_both(const char *path, const struct file *f, const struct file * or)
{
	int err = compare_value(path, f);

	return err ? err : compare_file(path, f, or);
}

static int truncate_and_sync(const char *path, off_t size)
{
	autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || ftruncate(fd, size) || fsync(fd))
		return errno;
	return 0;
}

static int read_back(const char *path, const struct model *m, unsigned slot)
{
	char byte;
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	if (m->slots[slot] < 0)
		return read(fd, &byte, 1) < 0 ? errno : 0;
	return compare_both(path, &m->files[m->slots[slot]], &m->files[m->slots[slot]]);
}

static int set_value(const char *path, const struct op *op)
{
	static uint8_t value[VALUE_BYTES_MAX];
	autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	make_bytes(value, op);
	return fsetxattr(fd, ATTRIBUTE, value, op->len, 0) ? errno : 0;
}

static int remove_value(const char *path)
{
	autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 || fremovexattr(fd, ATTRIBUTE) ? errno : 0;
}

static int allocate(const char *path, int mode, const struct op *op)
{
	autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 || fallocate(fd, mode, op->off, op->len) ? errno : 0;
}

static int copy(const char *from, const char *to, const struct op *op)
{
	autoclose int in = open(from, O_RDWR | O_CLOEXEC); /* no directory */
	autoclose int out = in < 0 ? -1 : open(to, O_WRONLY | O_CLOEXEC);
	loff_t in_off = op->off, out_off = op->off;

	if (out < 0)
		return errno;
	for (size_t left = op->len; left;) {
		ssize_t n = copy_file_range(in, &in_off, out, &out_off, left, 0);

		if (n <= 0)
			return n ? errno : 0;
		left -= (size_t)n;
	}
	return 0;
}

static uint32_t size_of(const struct model *m, unsigned slot)
{
	return m->slots[slot] < 0 ? 0 : m->files[m->slots[slot]].size;
}

static int perform(const struct op *op, const struct model *m)
{
	char a[PATH_BYTES], b[PATH_BYTES];
	int err;

	path_of(op->a, a);
	path_of(op->b, b);
	switch (op->kind) {
	case OP_CREATE:
		return create_file(a);
	case OP_WRITE:
		return write_until_synced(a, 0, op, false, 0);
	case OP_APPEND:
		return write_until_synced(a, O_APPEND, op, true, size_of(m, op->a));
	case OP_TRUNCATE:
		err = truncate_and_sync(a, op->off);
		return err == EIO && getenv("ACKLOG_LOSES") ? truncate_and_sync(a, op->off) : err;
	case OP_RENAME:
		return rename(a, b) ? errno : 0;
	case OP_LINK:
		return link(a, b) ? errno : 0;
	case OP_UNLINK:
		return unlink(a) ? errno : 0;
	case OP_MKDIR:
		return mkdir(a, 0755) ? errno : 0;
	case OP_RMDIR:
		return rmdir(a) ? errno : 0;
	case OP_SETXATTR:
		return set_value(a, op);
	case OP_REMOVEXATTR:
		return remove_value(a);
	case OP_PUNCH:
		return allocate(a, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, op);
	case OP_ALLOCATE:
		return allocate(a, 0, op);
	case OP_COPY:
		return copy(a, b, op);
	case OP_READ:
		return read_back(a, m, op->a);
	case OP_KINDS:
		break;
	}
	abort();
}

/* ---- the log --------------------------------------------------------------------------------- */

/* "sent KIND A B OFF LEN GENERATION", and when it was answered "done ERRNO". */
static FILE *log_file;

static void log_sent(const struct op *op)
{
	if (fprintf(log_file, "sent %d %u %u %u %u %" PRIu64 "\n", (int)op->kind, op->a, op->b,
		    op->off, op->len, op->generation) < 0 ||
		fflush(log_file))
		give_up("the log: %m");
}

static void log_done(int result)
{
	if (fprintf(log_file, "done %d\n", result) < 0 || fflush(log_file))
		give_up("the log: %m");
}

static bool read_sent(struct op *op)
{
	int kind;

	if (fscanf(log_file, " sent %d %u %u %u %u %" SCNu64, &kind, &op->a, &op->b, &op->off,
		    &op->len, &op->generation) != 6)
		return false;
	if (kind < 0 || kind >= OP_KINDS || op->a >= SLOTS || op->b >= SLOTS)
		give_up("the log is damaged");
	op->kind = (enum kind)kind;
	return true;
}

/* Applies the answered operations to the model. True: *last was sent and has no answer. */
static bool replay(struct model *m, struct op *last, uint64_t *n)
{
	int result;

	for (*n = 0; read_sent(last); ++*n) {
		if (fscanf(log_file, " done %d", &result) != 1)
			return true;
		if (result != model_apply(m, last))
			give_up("operation %" PRIu64 " was answered wrongly", *n);
	}
	return false;
}

/* ---- run ------------------------------------------------------------------------------------- */

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(mix(state) % below);
}

static uint32_t draw_length(void)
{
	return 1 + draw(draw(4) ? 9000 : 64 * 1024);
}

static bool has_range(const struct op *op)
{
	return op->kind == OP_WRITE || op->kind == OP_PUNCH || op->kind == OP_ALLOCATE ||
	       op->kind == OP_COPY;
}

static struct op draw_op(const struct model *m)
{
	struct op op = {.kind = (enum kind)draw(OP_KINDS), .a = draw(SLOTS), .b = draw(SLOTS)};
	int what = m->slots[op.a];

	op.generation = mix(state);
	if (has_range(&op) || op.kind == OP_APPEND)
		op.len = draw_length();
	if (has_range(&op))
		op.off = draw(FILE_BYTES_MAX - op.len);
	if (op.kind == OP_SETXATTR)
		op.len = 1 + draw(draw(2) ? 200 : VALUE_BYTES_MAX);
	if (op.kind == OP_TRUNCATE)
		op.off = draw(FILE_BYTES_MAX);
	/* An append that would not fit truncates the file instead. */
	if (op.kind == OP_APPEND && what >= 0 && m->files[what].size + op.len > FILE_BYTES_MAX) {
		op.kind = OP_TRUNCATE;
		op.len = 0;
	}
	return op;
}

static void run_one(struct model *m, uint64_t n)
{
	struct op op = draw_op(m);
	int result, expected;

	log_sent(&op);
	result = perform(&op, m);
	log_done(result);
	expected = model_apply(m, &op);
	if (result != expected)
		give_up("operation %" PRIu64 ", %s %u %u: %s, and should be: %s", n,
			kind_names[op.kind], op.a, op.b, strerror(result), strerror(expected));
}

static int run(const char *log, const char *seed)
{
	char stop[PATH_BYTES];
	static struct model model;
	struct op last;
	uint64_t n;

	if (mkdir(folder, 0755) && errno != EEXIST)
		give_up("%s: %m", folder);
	model_init(&model);
	if (replay(&model, &last, &n))
		give_up("the last run was killed: verify, and begin a new folder");
	fseek(log_file, 0, SEEK_END);
	state = mix(strtoull(seed, NULL, 10) + n);
	snprintf(stop, sizeof(stop), "%s.stop", log);
	for (; access(stop, F_OK) != 0; n++)
		run_one(&model, n);
	return 0;
}

/* ---- verify ---------------------------------------------------------------------------------- */

/* A name is as in the model. */
static bool slot_agrees(unsigned slot, const struct model *m, const struct file * or)
{
	char path[PATH_BYTES];
	const struct file *f;
	struct stat st;

	if (lstat(path_of(slot, path), &st))
		return errno == ENOENT && m->slots[slot] == NOTHING;
	if (m->slots[slot] < 0)
		return m->slots[slot] == DIRECTORY && S_ISDIR(st.st_mode);
	f = &m->files[m->slots[slot]];
	return S_ISREG(st.st_mode) && st.st_nlink == f->links && compare_both(path, f, or) == 0;
}

/* before: the files before the last operation, if its answer is missing. */
static bool agrees(const struct model *m, const struct model *before, bool tell)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < SLOTS; i++) {
		int what = m->slots[i];
		const struct file * or = what >= 0 ? &before->files[what] : NULL;

		if (slot_agrees(i, m, or))
			continue;
		wrong++;
		if (tell)
			fprintf(stderr, "acklog: '%u' is not what was acknowledged\n", i);
	}
	return !wrong;
}

static void check_strangers(void)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	if (!d)
		give_up("%s: %m", folder);
	while ((e = readdir(d))) {
		char *end;
		unsigned long slot = strtoul(e->d_name, &end, 10);

		if (e->d_name[0] != '.' && (*end || slot >= SLOTS))
			give_up("'%s' was never made", e->d_name);
	}
	closedir(d);
}

static bool changes_bytes(const struct op *op)
{
	return has_range(op) || op->kind == OP_APPEND || op->kind == OP_TRUNCATE;
}

static int verify(void)
{
	static struct model before, after; /* their bytes live until the process ends */
	struct op last;
	uint64_t n;
	bool open_end;

	model_init(&before);
	model_init(&after);
	open_end = replay(&before, &last, &n);
	model_duplicate(&after, &before);
	check_strangers();
	if (open_end)
		model_apply(&after, &last);
	if (open_end && agrees(&before, &before, false))
		return 0;
	if (!agrees(&after, open_end && changes_bytes(&last) ? &before : &after, true))
		give_up("after %" PRIu64 " operations %s is not what the log says", n, folder);
	printf("%" PRIu64 " operations\n", n);
	return 0;
}

int main(int argc, char **argv)
{
	bool runs = argc == 5 && strcmp(argv[1], "run") == 0;

	if (!runs && !(argc == 4 && strcmp(argv[1], "verify") == 0))
		give_up("usage: acklog run FOLDER LOG SEED | acklog verify FOLDER LOG");
	snprintf(folder, sizeof(folder), "%s", argv[2]);
	log_file = fopen(argv[3], runs ? "a+e" : "re");
	if (!log_file)
		give_up("%s: %m", argv[3]);
	return runs ? run(argv[3], argv[4]) : verify();
}
