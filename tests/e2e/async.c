#include "async.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/util.h"

struct piece {
	uint8_t *buf;
	size_t len;
	off_t offset;
};

/* ---- beginning and end ----------------------------------------------------------------------- */

/* Every kernel with io_uring that the tests run on maps both rings at once. */
static int map_rings(struct async *a)
{
	const struct io_uring_params *p = &a->params;
	size_t submission = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
	size_t completion = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);

	if (!(p->features & IORING_FEAT_SINGLE_MMAP))
		return -EOPNOTSUPP;
	a->rings_bytes = submission > completion ? submission : completion;
	a->rings = mmap(NULL, a->rings_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		a->uring, IORING_OFF_SQ_RING);
	if (a->rings == MAP_FAILED)
		return -errno;
	a->entries = mmap(NULL, p->sq_entries * sizeof(*a->entries), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_POPULATE, a->uring, IORING_OFF_SQES);
	return a->entries == MAP_FAILED ? -errno : 0;
}

int async_init(struct async *a, unsigned npieces)
{
	*a = (struct async){.npieces = npieces};
	if (syscall(SYS_io_setup, npieces, &a->aio) < 0)
		return -errno;
	a->uring = (int)syscall(SYS_io_uring_setup, npieces, &a->params);
	if (a->uring < 0)
		return errno == ENOSYS || errno == EPERM ? 0 : -errno;
	return map_rings(a);
}

void async_fini(struct async *a)
{
	syscall(SYS_io_destroy, a->aio);
	if (a->uring < 0)
		return;
	munmap(a->entries, a->params.sq_entries * sizeof(*a->entries));
	munmap(a->rings, a->rings_bytes);
	close(a->uring);
}

bool async_has(const struct async *a, enum async_kind kind)
{
	return kind == ASYNC_AIO || a->uring >= 0;
}

/* ---- the two ways ---------------------------------------------------------------------------- */

struct submission {
	aio_context_t aio;
	long n;
	struct iocb **list;
	bool lingers, done;
};

enum { LINGER_US = 50000 };

static void *submit_aio(void *arg)
{
	struct submission *s = arg;

	s->done = syscall(SYS_io_submit, s->aio, s->n, s->list) == s->n;
	/* The filesystem may want to see who asks. */
	if (s->lingers)
		usleep(LINGER_US);
	return NULL;
}

static void submit_by_thread(struct submission *s)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, submit_aio, s) == 0)
		pthread_join(thread, NULL);
}

static int run_aio(struct async *a, bool write, int fd, const struct piece *pieces, unsigned n)
{
	struct iocb blocks[ASYNC_PIECES_MAX] = {0}, *list[ASYNC_PIECES_MAX];
	struct io_event events[ASYNC_PIECES_MAX];
	struct submission s = {a->aio, n, list, a->by_thread, false};

	for (unsigned i = 0; i < n; i++) {
		list[i] = &blocks[i];
		blocks[i].aio_data = i;
		blocks[i].aio_lio_opcode = write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
		blocks[i].aio_fildes = (uint32_t)fd;
		blocks[i].aio_buf = (uint64_t)(uintptr_t)pieces[i].buf;
		blocks[i].aio_nbytes = pieces[i].len;
		blocks[i].aio_offset = pieces[i].offset;
	}
	if (a->by_thread)
		submit_by_thread(&s);
	else
		submit_aio(&s);
	if (!s.done)
		return -EIO;
	if (syscall(SYS_io_getevents, a->aio, (long)n, (long)n, events, NULL) != (long)n)
		return -EIO;
	for (unsigned i = 0; i < n; i++)
		a->results[events[i].data] = (ssize_t)events[i].res;
	return 0;
}

static uint32_t *ring_word(struct async *a, uint32_t at)
{
	return (uint32_t *)(a->rings + at);
}

static void submit_uring(
	struct async *a, bool write, int fd, const struct piece *pieces, unsigned n)
{
	_Atomic uint32_t *tail = (_Atomic uint32_t *)ring_word(a, a->params.sq_off.tail);
	uint32_t mask = *ring_word(a, a->params.sq_off.ring_mask), at = atomic_load(tail);

	for (unsigned i = 0; i < n; i++, at++) {
		ring_word(a, a->params.sq_off.array)[at & mask] = i;
		a->entries[i] = (struct io_uring_sqe){
			.opcode = write ? IORING_OP_WRITE : IORING_OP_READ,
			.fd = fd,
			.addr = (uint64_t)(uintptr_t)pieces[i].buf,
			.len = (uint32_t)pieces[i].len,
			.off = (uint64_t)pieces[i].offset,
			.user_data = i,
		};
	}
	atomic_store(tail, at);
}

static int run_uring(struct async *a, bool write, int fd, const struct piece *pieces, unsigned n)
{
	_Atomic uint32_t *head = (_Atomic uint32_t *)ring_word(a, a->params.cq_off.head);
	_Atomic uint32_t *tail = (_Atomic uint32_t *)ring_word(a, a->params.cq_off.tail);
	uint32_t mask = *ring_word(a, a->params.cq_off.ring_mask), at = atomic_load(head);
	const struct io_uring_cqe *completions =
		(const struct io_uring_cqe *)(a->rings + a->params.cq_off.cqes);

	submit_uring(a, write, fd, pieces, n);
	if (syscall(SYS_io_uring_enter, a->uring, n, n, IORING_ENTER_GETEVENTS, NULL, 0) != (long)n)
		return -EIO;
	if (atomic_load(tail) - at != n)
		return -EIO;
	for (unsigned i = 0; i < n; i++, at++)
		a->results[completions[at & mask].user_data] = completions[at & mask].res;
	atomic_store(head, at);
	return 0;
}

/* ---- a range --------------------------------------------------------------------------------- */

static unsigned cut(struct piece *pieces, unsigned npieces, uint8_t *buf, size_t len, off_t offset,
	size_t piece_min)
{
	size_t units = (len + piece_min - 1) / piece_min;
	size_t piece = (units + npieces - 1) / npieces * piece_min;
	unsigned n = 0;

	for (size_t done = 0; done < len; done += piece, n++)
		pieces[n] = (struct piece){.buf = buf + done,
			.len = min_u64(piece, len - done),
			.offset = offset + (off_t)done};
	return n;
}

ssize_t async_run(struct async *a, enum async_kind kind, bool write, int fd, uint8_t *buf,
	size_t len, off_t offset, size_t piece_min)
{
	struct piece pieces[ASYNC_PIECES_MAX];
	unsigned n = cut(pieces, a->npieces, buf, len, offset, piece_min);
	ssize_t total = 0;
	int err = kind == ASYNC_AIO ? run_aio(a, write, fd, pieces, n)
				    : run_uring(a, write, fd, pieces, n);

	if (err)
		return err;
	for (unsigned i = 0; i < n; i++) {
		if (a->results[i] < 0)
			return a->results[i];
		total += a->results[i];
		if ((size_t)a->results[i] != pieces[i].len)
			return total;
	}
	return total;
}
