/* ways.c - the ways by which players read and write the files that all write: by read(2) and
 * write(2), by lasting mappings, and by pages that the kernel sends; see player.h.
 *
 * Bytes that are stored behind a file's end in its last page may appear when the file grows. So
 * players store only in rounds in which all changes of that file's size end with a page. Then a
 * store where the file has ended gets SIGBUS, and stores nothing.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"
#include "tests/stress/player.h"

enum { MANNER_ROUNDS = 4 }; /* so many rounds in a row are alike, so that mappings stay */

static sigjmp_buf fault;
static volatile sig_atomic_t copies;

/* ---- faults ---------------------------------------------------------------------------------- */

static void on_fault(int number)
{
	if (copies)
		siglongjmp(fault, 1);
	signal(number, SIG_DFL);
}

/* Copies cell by cell, each whole. Returns how many until it met a missing one. */
static uint64_t copy_cells(void *to, const void *from, uint64_t ncells)
{
	volatile uint64_t *out = to;
	const volatile uint64_t *in = from;
	volatile uint64_t done = 0;

	if (sigsetjmp(fault, 1) == 0) {
		copies = 1;
		for (; done < ncells; done++)
			out[done] = in[done];
	}
	copies = 0;
	return done;
}

/* ---- handles --------------------------------------------------------------------------------- */

static void data_name(char name[16], unsigned file)
{
	snprintf(name, 16, "data%u", file);
}

static int flags_of(const struct player *p, unsigned file, enum way way)
{
	static const int flags[WAYS] = {
		[CACHED] = O_RDWR,
		[WRITE_ONLY] = O_WRONLY,
		[DIRECT] = O_RDWR | O_DIRECT,
		[MAPPED] = O_RDWR,
		[SENT] = O_RDONLY,
	};
	bool light = way != WRITE_ONLY && !p->manner[file].may_store;

	return light ? (flags[way] & ~O_ACCMODE) | O_RDONLY : flags[way];
}

static void map(struct player *p, unsigned file)
{
	int prot = p->manner[file].may_store ? PROT_READ | PROT_WRITE : PROT_READ;
	int kind = MAP_SHARED;
	void *at;

	if (p->no_shared) {
		prot = PROT_READ;
		kind = MAP_PRIVATE;
	}
	at = mmap(NULL, p->h->file_bytes, prot, kind, p->fd[file][MAPPED], 0);
	need(p, at != MAP_FAILED, "mmap");
	p->map[file] = at;
}

int way_open(struct player *p, unsigned file, enum way way)
{
	int *fd = &p->fd[file][way];
	char name[16];

	data_name(name, file);
	if (*fd < 0)
		*fd = open(name, flags_of(p, file, way) | O_CLOEXEC);
	if (*fd < 0 && way == DIRECT && errno == EINVAL) {
		p->no_direct = true;
		return way_open(p, file, CACHED);
	}
	need(p, *fd >= 0, name);
	if (way == MAPPED && !p->map[file])
		map(p, file);
	return *fd;
}

int way_open_to_change(struct player *p, unsigned file)
{
	return way_open(p, file, p->manner[file].may_store ? CACHED : WRITE_ONLY);
}

void way_forget(struct player *p, unsigned file, enum way way)
{
	int *fd = &p->fd[file][way];

	if (way == MAPPED && p->map[file]) {
		need(p, munmap(p->map[file], p->h->file_bytes) == 0, "munmap");
		p->map[file] = NULL;
	}
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Without fstat a mapping may end at an old end of the file, though others have made it grow since.
 * Returns how much of the range exists; < 0: an error. */
static int64_t ask_how_much(int fd, uint64_t off, uint64_t len)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	return (uint64_t)st.st_size <= off ? 0 : (int64_t)min_u64(len, (uint64_t)st.st_size - off);
}

static ssize_t copy_mapped(struct player *p, unsigned file, uint64_t off, uint64_t len, bool stores)
{
	int64_t n = ask_how_much(way_open(p, file, MAPPED), off, len);
	uint8_t *at = p->map[file] + off;

	if (n < 0)
		return -1;
	n /= CELL_BYTES;
	n = (int64_t)copy_cells(stores ? at : p->buf, stores ? p->buf : at, (uint64_t)n);
	return (ssize_t)n * CELL_BYTES;
}

/* The pipe has pages of the cache until they are read from it. */
static ssize_t send_on(struct player *p, unsigned file, uint64_t off, uint64_t len)
{
	int fd = way_open(p, file, SENT);
	int64_t left = ask_how_much(fd, off, len);
	off_t at = (off_t)off;
	size_t done = 0;

	while (left > 0) {
		ssize_t n = sendfile(p->pipe[1], fd, &at, (size_t)left);

		if (n < 0)
			return -1;
		if (n == 0)
			break;
		for (left -= n; n > 0;) {
			ssize_t came = read(p->pipe[0], p->buf + done, (size_t)n);

			need(p, came > 0, "pipe");
			done += (size_t)came;
			n -= came;
		}
	}
	return left < 0 ? -1 : (ssize_t)done;
}

ssize_t way_read(struct player *p, unsigned file, enum way way, uint64_t off, uint64_t len)
{
	if (way == MAPPED)
		return copy_mapped(p, file, off, len, false);
	if (way == SENT)
		return send_on(p, file, off, len);
	return pread(way_open(p, file, way), p->buf, len, (off_t)off);
}

ssize_t way_write(struct player *p, unsigned file, enum way way, uint64_t off, uint64_t len)
{
	if (way == MAPPED)
		return copy_mapped(p, file, off, len, true);
	return pwrite(way_open(p, file, way), p->buf, len, (off_t)off);
}

/* ---- what goes together ---------------------------------------------------------------------- */

enum way way_draw(struct player *p, unsigned file, bool reads)
{
	const struct manner *m = &p->manner[file];
	enum way way = (enum way)chance(p, WAYS);

	if (p->h->unmapped && (way == MAPPED || way == SENT))
		way = CACHED;
	if (reads)
		return way == WRITE_ONLY || (way == DIRECT && p->no_direct) ? CACHED : way;
	if (!m->may_store)
		return WRITE_ONLY;
	if (!m->calls || (m->stores && (way == MAPPED || way == SENT)))
		return MAPPED;
	return way == MAPPED || way == SENT || (way == DIRECT && p->no_direct) ? CACHED : way;
}

/* The number of the player's mount, and whether the player has it alone. */
static unsigned mount_of(const struct player *p, bool *alone)
{
	unsigned first = p->index;

	*alone = true;
	for (unsigned i = p->h->nplayers; i-- > 0;) {
		if (i == p->index || p->h->device[i] != p->h->device[p->index])
			continue;
		*alone = false;
		if (i < first)
			first = i;
	}
	return first;
}

/* A FUSE mount's page cache does not know of a write(2) until that is over. A store into a page
 * meanwhile writes the rest of the page back as it was. So players that share a mount either all
 * store, or all use system calls. */
static struct manner draw_manner(const struct player *p, unsigned file)
{
	bool alone;
	unsigned mount = mount_of(p, &alone);
	uint64_t of_file = mix(mix(p->seed + p->h->round / MANNER_ROUNDS) + 7919 * (file + 1));
	uint64_t of_mount = mix(of_file + mount);
	struct manner m = {.whole_pages = of_file % 4 != 0, .calls = true};

	m.stores = m.whole_pages && !p->no_shared && !p->h->unmapped && of_mount % 2 == 0;
	m.may_store = m.stores || (of_mount >> 8) % 2 == 0;
	m.calls = !m.stores || alone || p->h->strict;
	return m;
}

void ways_round(struct player *p)
{
	for (unsigned file = 0; file < p->h->nfiles; file++) {
		struct manner m = draw_manner(p, file);

		for (enum way way = 0; way < WAYS && m.may_store != p->manner[file].may_store;
			way++)
			way_forget(p, file, way);
		p->manner[file] = m;
	}
}

/* A mount that is alone may refuse this to handles by which it could be stored into only. */
static void try_shared(struct player *p)
{
	char name[16];
	int fd;
	void *at;

	data_name(name, 0);
	fd = open(name, O_RDWR | O_CLOEXEC);
	need(p, fd >= 0, name);
	at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	p->no_shared = at == MAP_FAILED && errno == ENODEV;
	need(p, p->no_shared || (at != MAP_FAILED && munmap(at, PAGE) == 0), "mmap");
	close(fd);
}

void ways_begin(struct player *p)
{
	struct sigaction action = {.sa_handler = on_fault};

	memset(p->fd, -1, sizeof(p->fd));
	need(p, pipe2(p->pipe, O_CLOEXEC) == 0, "pipe");
	need(p, sigaction(SIGBUS, &action, NULL) == 0, "sigaction");
	try_shared(p);
	if (p->no_shared)
		__atomic_store_n(&p->h->no_shared, true, __ATOMIC_RELAXED);
}
