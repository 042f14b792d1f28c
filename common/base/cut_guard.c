/* cut_guard.c - see cut_guard.h.
 *
 * The handler takes a mutex. It can't meet a lock of its own thread: a SIGBUS of this kind comes
 * from an access to memory, and no guarded memory is touched while the mutex is held.
 */
#include "common/base/cut_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/base/nodump.h"
#include "common/base/util.h"

static pthread_mutex_t guards_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list guards = {&guards, &guards};
static struct sigaction former;
static atomic_bool any_struck;

static struct cut_guard *find_locked(const void *addr)
{
	list_for_each (pos, &guards) {
		struct cut_guard *g = list_entry(pos, struct cut_guard, link);

		if ((uintptr_t)addr - (uintptr_t)g->addr < g->len)
			return g;
	}
	return NULL;
}

/* The flags come first: no thread may trust a zero page that it finds there. */
static bool replace_locked(struct cut_guard *g, const void *addr)
{
	uint64_t at = ((uintptr_t)addr - (uintptr_t)g->addr) / g->block * g->block;
	void *page = g->addr + at;
	size_t len;

	atomic_store(&any_struck, true);
	atomic_store(&g->struck, true);
	if (g->also)
		atomic_store(g->also, true);
	len = min_u64(g->block, g->len - at);
	if (mmap(page, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != page)
		return false;
	nodump_exclude(page, len);
	return true;
}

/* If the access can't go on, it meets the former action when it is repeated at the return. */
static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	int saved = errno;
	bool replaced = false;

	(void)context;
	/* Not one that a process has sent. */
	if (info->si_code > 0) {
		pthread_mutex_lock(&guards_lock);
		struct cut_guard *g = find_locked(info->si_addr);

		replaced = g && replace_locked(g, info->si_addr);
		pthread_mutex_unlock(&guards_lock);
	}
	if (!replaced) {
		sigaction(sig, &former, NULL);
		if (info->si_code <= 0)
			raise(sig);
	}
	errno = saved;
}

/* Each time, since a library may have taken the signal meanwhile. */
static void install_locked(void)
{
	struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO}, before;

	sigaction(SIGBUS, &action, &before);
	if (before.sa_sigaction != on_sigbus)
		former = before;
}

int cut_guard_add(struct cut_guard *g, int fd, void *addr, uint64_t len, atomic_bool *also)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -errno;
	*g = (struct cut_guard){
		.addr = addr,
		.len = len,
		.block = max_u64(PAGE_BYTES, (uint64_t)st.st_blksize),
		.also = also,
	};
	pthread_mutex_lock(&guards_lock);
	install_locked();
	list_add_tail(&guards, &g->link);
	pthread_mutex_unlock(&guards_lock);
	return 0;
}

void cut_guard_remove(struct cut_guard *g)
{
	if (!g->addr)
		return;
	pthread_mutex_lock(&guards_lock);
	list_del(&g->link);
	pthread_mutex_unlock(&guards_lock);
	g->addr = NULL;
}

bool cut_guard_have_lost(const struct iovec *iov, int niov)
{
	bool lost = false;

	if (!atomic_load_explicit(&any_struck, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&guards_lock);
	for (int i = 0; i < niov && !lost; i++) {
		const struct cut_guard *g = find_locked(iov[i].iov_base);

		lost = g && cut_guard_is_struck(g);
	}
	pthread_mutex_unlock(&guards_lock);
	return lost;
}
