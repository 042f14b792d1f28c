/* lock_twins.c - the same random work with locks is done on two files: one on a filesystem where
 * the kernel keeps the locks, and its twin, which may have several paths (mounts). The result of
 * each call, the waiting callers, the next owner and the locked bytes must be the same.
 *
 *     lock_twins SEED STEPS WAITING REFERENCE PATH...
 *
 * Each worker is two processes, one for either file, that do as they are told. At most one worker
 * waits at a time, since the order of several waiting workers is undefined; a second one that would
 * wait is interrupted. WAITING is a command that prints the number of waits that the twin's server
 * knows of. The next worker's turn comes only when that is the kernel's number.
 *
 * A close on one mount may release its locks on another mount a little later. So the twin has time
 * to become the same.
 *
 * In one case the twin may know better. The kernel looks for a circle along the first conflicting
 * lock only, and overlooks one along another lock; then the twin's EDEADLK must be right.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/util.h"

/* The probers take no locks. They look at the locks of the actors. */
enum { ACTORS = 3, PROBERS = 2, WORKERS = ACTORS + PROBERS };
enum { FILES = 2, BYTES = 20, BYTES_LOCKED = 40, LATE_MS = 20000, AGAIN_MS = 5 };

enum op { SET, GET, WHOLE, REOPEN, DUPLICATE, FORK, NOPS };

/* A command to a worker; both its processes get the same. */
struct command {
	enum op op;
	int file;
	int cmd; /* of fcntl(2), or flock(2)'s operation */
	short type;
	off_t start, len;
};

struct answer {
	int error;
	struct flock found; /* GET */
};

struct process {
	pid_t pid;
	int to, from;
};

enum { REFERENCE, TWIN, WORLDS };

static struct {
	struct process processes[WORLDS];
	const char *paths[WORLDS];
	/* F_RDLCK, F_WRLCK or F_UNLCK of each byte, for each owner: see owner_of() */
	char records[1 + FILES][BYTES_LOCKED];
} workers[WORKERS];

static int waiter = -1; /* index in workers, or -1 */
static struct command waits_for;

static const char *waiting;
static unsigned first_seed, seed, step;

/* ---- what workers do ------------------------------------------------------------------------- */

static int opened(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

static int close_in_child(int fd)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		close(fd);
		_exit(0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return 0;
}

static int run(const struct command *c, int *fds, const char *path, struct flock *found)
{
	int *fd = &fds[c->file];

	*found = (struct flock){.l_type = c->type, .l_start = c->start, .l_len = c->len};
	switch (c->op) {
	case SET:
	case GET:
		return fcntl(*fd, c->cmd, found);
	case WHOLE:
		return flock(*fd, c->cmd);
	case REOPEN:
		close(*fd);
		*fd = opened(path);
		return 0;
	case DUPLICATE:
		return close(dup(*fd));
	case FORK:
		return close_in_child(*fd);
	case NOPS:
		break;
	}
	return -1;
}

static bool get(int fd, void *to, size_t len)
{
	ssize_t n;

	while ((n = read(fd, to, len)) < 0 && errno == EINTR)
		;
	return n == (ssize_t)len;
}

static void put(int fd, const void *from, size_t len)
{
	ssize_t n;

	while ((n = write(fd, from, len)) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)len)
		err(1, "a pipe");
}

static void does_nothing(int sig)
{
}

static void work(int from, int to, const char *path)
{
	const struct sigaction action = {.sa_handler = does_nothing};
	struct command c;
	int fds[FILES];

	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < FILES; i++)
		fds[i] = opened(path);
	while (get(from, &c, sizeof(c))) {
		struct answer a = {0};

		if (run(&c, fds, path, &a.found) < 0)
			a.error = errno;
		put(to, &a, sizeof(a));
	}
	_exit(0);
}

/* ---- commands -------------------------------------------------------------------------------- */

static void start(unsigned w, int world)
{
	struct process *p = &workers[w].processes[world];
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		err(1, "pipe2");
	fflush(stdout);
	p->pid = fork();
	if (p->pid == 0) {
		close(to[1]);
		for (unsigned i = 0; i < WORKERS; i++)
			for (int k = 0; k < WORLDS; k++)
				if (workers[i].processes[k].to)
					close(workers[i].processes[k].to);
		work(to[0], from[1], workers[w].paths[world]);
	}
	p->to = to[1];
	p->from = from[0];
	close(to[0]);
	close(from[1]);
}

static void end(unsigned w, int world)
{
	struct process *p = &workers[w].processes[world];
	int status;

	kill(p->pid, SIGKILL);
	waitpid(p->pid, &status, 0);
	close(p->to);
	close(p->from);
	p->to = 0;
}

static void tell(unsigned w, int world, const struct command *c)
{
	put(workers[w].processes[world].to, c, sizeof(*c));
}

static bool has_answered(unsigned w, int world, int ms)
{
	struct pollfd p = {.fd = workers[w].processes[world].from, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

static void name(const struct command *c, char *text, size_t len)
{
	static const char *const ops[] = {"set", "get", "flock", "reopen", "dup", "fork"};

	snprintf(text, len, "%s file %d cmd %d type %d start %lld len %lld", ops[c->op], c->file,
		c->cmd, c->type, (long long)c->start, (long long)c->len);
}

static void end_all(void)
{
	for (unsigned w = 0; w < WORKERS; w++)
		for (int world = 0; world < WORLDS; world++)
			if (workers[w].processes[world].to)
				end(w, world);
}

__attribute__((noreturn, format(printf, 3, 4))) static void differ(
	unsigned w, const struct command *c, const char *format, ...)
{
	char text[128];
	va_list args;

	name(c, text, sizeof(text));
	printf("seed %u step %u worker %u: %s: ", first_seed, step, w, text);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	puts("");
	if (waiter >= 0) {
		name(&waits_for, text, sizeof(text));
		printf("worker %d waits: %s\n", waiter, text);
	}
	end_all();
	exit(1);
}

static struct answer answer_of(unsigned w, int world, const struct command *c)
{
	struct answer a;

	if (!has_answered(w, world, LATE_MS))
		differ(w, c, "no answer of %s", world == TWIN ? "the twin" : "the reference");
	if (!get(workers[w].processes[world].from, &a, sizeof(a)))
		differ(w, c, "it has ended");
	return a;
}

/* Is it in flock(2) or fcntl(2)? There the reference only waits for another owner's lock. */
static bool sleeps_in_lock(pid_t pid)
{
	char path[64], line[128] = "";
	long number = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fgets(line, sizeof(line), f) && line[0] != 'r')
		number = strtol(line, NULL, 10);
	fclose(f);
	return number == SYS_fcntl || number == SYS_flock;
}

static bool reference_waits(unsigned w)
{
	while (!has_answered(w, REFERENCE, 0))
		if (sleeps_in_lock(workers[w].processes[REFERENCE].pid) &&
			!has_answered(w, REFERENCE, 0))
			return true;
	return false;
}

static unsigned count_waits(void)
{
	unsigned n = 0;
	FILE *f = popen(waiting, "re");

	if (!f || fscanf(f, "%u", &n) != 1)
		errx(1, "'%s' prints no number", waiting);
	pclose(f);
	return n;
}

static int64_t now_in_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

/* ---- record locks ---------------------------------------------------------------------------- */

static void range_of(const struct command *c, int *first, int *end)
{
	*first = (int)(c->len < 0 ? c->start + c->len : c->start);
	*end = (int)(c->len < 0 ? c->start : c->len ? c->start + c->len : BYTES_LOCKED);
}

/* Returns 0 for the process, 1 + the file for one of its open files. */
static int owner_of(const struct command *c)
{
	return c->cmd == F_SETLK || c->cmd == F_SETLKW ? 0 : 1 + c->file;
}

static void forget_records(unsigned w, int owner)
{
	memset(workers[w].records[owner], F_UNLCK, BYTES_LOCKED);
}

static void note_done(unsigned w, const struct command *c)
{
	int first, end;

	if (c->op == REOPEN || c->op == DUPLICATE)
		forget_records(w, 0);
	if (c->op == REOPEN)
		forget_records(w, 1 + c->file);
	if (c->op != SET)
		return;
	range_of(c, &first, &end);
	memset(workers[w].records[owner_of(c)] + first, c->type, (size_t)(end - first));
}

static bool wants_from(const struct command *c, unsigned holder, int owner)
{
	int i, end;

	for (range_of(c, &i, &end); i < end; i++) {
		char held = workers[holder].records[owner][i];

		if (held == F_WRLCK || (held == F_RDLCK && c->type == F_WRLCK))
			return true;
	}
	return false;
}

static bool is_circle(unsigned w, const struct command *c)
{
	return waiter >= 0 && c->op == SET && waits_for.op == SET &&
	       wants_from(c, (unsigned)waiter, owner_of(&waits_for)) &&
	       wants_from(&waits_for, w, owner_of(c));
}

/* Returns false if the twin has refused a circle that the reference does not see. */
static bool until_twins_wait(unsigned w, const struct command *c, unsigned n)
{
	int64_t until = now_in_ms() + LATE_MS;

	while (count_waits() != n) {
		if (has_answered(w, TWIN, 0)) {
			int error = answer_of(w, TWIN, c).error;

			if (error == EDEADLK && is_circle(w, c))
				return false;
			differ(w, c, "the reference waits, the twin: %s", strerror(error));
		}
		if (now_in_ms() > until)
			differ(w, c, "the reference waits, the twin's server knows of %u waits",
				count_waits());
	}
	return true;
}

/* ---- the same -------------------------------------------------------------------------------- */

static bool same_process(const struct flock *reference, const struct flock *twin)
{
	/* The kernel does not tell FUSE that a lock belongs to an open file. */
	if (reference->l_pid == -1 || twin->l_pid == -1 || twin->l_pid == 0)
		return true;
	for (unsigned i = 0; i < WORKERS; i++)
		if (workers[i].processes[REFERENCE].pid == reference->l_pid)
			return workers[i].processes[TWIN].pid == twin->l_pid;
	return false;
}

/* If several shared locks conflict, the two may name different ones. */
static bool same_found(const struct flock *reference, const struct flock *twin)
{
	if (reference->l_type != twin->l_type || reference->l_type != F_WRLCK)
		return reference->l_type == twin->l_type;
	return reference->l_start == twin->l_start && reference->l_len == twin->l_len &&
	       same_process(reference, twin);
}

static void compare(
	unsigned w, const struct command *c, struct answer reference, struct answer twin)
{
	if (reference.error != twin.error)
		differ(w, c, "%s, the twin: %s", strerror(reference.error), strerror(twin.error));
	if (!twin.error)
		note_done(w, c);
	if (c->op == GET && !same_found(&reference.found, &twin.found))
		differ(w, c, "found type %d %lld+%lld pid %d, the twin: type %d %lld+%lld pid %d",
			reference.found.l_type, (long long)reference.found.l_start,
			(long long)reference.found.l_len, reference.found.l_pid, twin.found.l_type,
			(long long)twin.found.l_start, (long long)twin.found.l_len,
			twin.found.l_pid);
}

static struct answer ask(unsigned w, int world, const struct command *c)
{
	tell(w, world, c);
	return answer_of(w, world, c);
}

static void both(unsigned w, const struct command *c)
{
	struct answer reference = ask(w, REFERENCE, c);

	compare(w, c, reference, ask(w, TWIN, c));
}

/* Probes each byte and then the whole file, as a process without locks sees them. */
static struct command probe_of(int i)
{
	if (i < BYTES)
		return (struct command){GET, .cmd = F_GETLK, .type = F_WRLCK, .start = i, .len = 1};
	return (struct command){WHOLE, .cmd = (i == BYTES ? LOCK_SH : LOCK_EX) | LOCK_NB};
}

static const struct command let_go = {WHOLE, .cmd = LOCK_UN};

static bool seen_same(unsigned prober, int i)
{
	struct command c = probe_of(i);
	struct answer reference = ask(prober, REFERENCE, &c), twin = ask(prober, TWIN, &c);

	both(prober, &let_go);
	return reference.error == twin.error &&
	       (c.op != GET || same_found(&reference.found, &twin.found));
}

static void all_the_same(unsigned prober, int64_t patience_ms)
{
	int64_t until = now_in_ms() + patience_ms;

	for (int i = 0; i < BYTES + 2; i++) {
		struct command c = probe_of(i);

		while (!seen_same(prober, i))
			if (now_in_ms() >= until)
				differ(prober, &c, "what is locked differs");
	}
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int one_of(const int *values, size_t n)
{
	return values[(size_t)rand_r(&seed) % n];
}

#define ONE_OF(...) one_of((const int[]){__VA_ARGS__}, ARRAY_SIZE(((const int[]){__VA_ARGS__})))

static struct command draw_records(bool wait)
{
	struct command c = {SET, .start = rand_r(&seed) % BYTES, .len = rand_r(&seed) % 12};
	/* The kernel detects no circle of open files' locks: they would wait for each other for
	 * ever. */
	bool open_file = rand_r(&seed) % 3 == 0 && !(wait && waiter >= 0);

	if (wait)
		c.cmd = open_file ? F_OFD_SETLKW : F_SETLKW;
	else
		c.cmd = open_file ? F_OFD_SETLK : F_SETLK;
	c.type = (short)(wait ? ONE_OF(F_RDLCK, F_WRLCK) : ONE_OF(F_RDLCK, F_WRLCK, F_UNLCK));
	if (rand_r(&seed) % 4 == 0)
		c.len = -c.len;
	if (c.start + c.len < 0)
		c.len = -c.start;
	return c;
}

static struct command draw(bool *wait)
{
	int kind = rand_r(&seed) % 100;
	struct command c = {0};

	*wait = kind < 10 && (waiter < 0 || kind < 5);
	if (kind < 50)
		c = draw_records(*wait);
	else if (kind < 82)
		c = (struct command){
			WHOLE, .cmd = ONE_OF(LOCK_SH, LOCK_SH, LOCK_EX, LOCK_UN) | LOCK_NB};
	else if (kind < 85 && waiter < 0)
		c = (struct command){WHOLE, .cmd = ONE_OF(LOCK_SH, LOCK_EX)};
	else if (kind < 92)
		c = (struct command){GET, .cmd = ONE_OF(F_GETLK, F_OFD_GETLK),
			.type = (short)ONE_OF(F_RDLCK, F_WRLCK), .start = rand_r(&seed) % BYTES,
			.len = 1};
	else
		c = (struct command){(enum op)ONE_OF(REOPEN, DUPLICATE, FORK)};
	*wait |= c.op == WHOLE && !(c.cmd & (LOCK_NB | LOCK_UN));
	c.file = rand_r(&seed) % FILES;
	return c;
}

static struct answer interrupted(unsigned w, int world, const struct command *c)
{
	do
		kill(workers[w].processes[world].pid, SIGUSR1);
	while (!has_answered(w, world, AGAIN_MS));
	return answer_of(w, world, c);
}

static void interrupt_both(unsigned w, const struct command *c)
{
	struct answer reference = interrupted(w, REFERENCE, c);

	compare(w, c, reference, interrupted(w, TWIN, c));
}

static void wait_both(unsigned w, const struct command *c)
{
	tell(w, REFERENCE, c);
	if (!reference_waits(w)) {
		compare(w, c, answer_of(w, REFERENCE, c), ask(w, TWIN, c));
		return;
	}
	tell(w, TWIN, c);
	if (!until_twins_wait(w, c, waiter < 0 ? 1 : 2)) {
		interrupted(w, REFERENCE, c);
	} else if (waiter < 0) {
		waiter = (int)w;
		waits_for = *c;
	} else {
		interrupt_both(w, c);
	}
}

/* The waiter of the twin has its lock if, and only if, the one of the reference has. */
static void look_at_waiter(void)
{
	unsigned w = (unsigned)waiter;

	if (waiter < 0)
		return;
	if (reference_waits(w)) {
		if (has_answered(w, TWIN, 0))
			differ(w, &waits_for, "the twin does not wait any more");
		return;
	}
	waiter = -1;
	compare(w, &waits_for, answer_of(w, REFERENCE, &waits_for), answer_of(w, TWIN, &waits_for));
}

static void kill_both(unsigned w)
{
	if (waiter == (int)w)
		waiter = -1;
	for (int owner = 0; owner <= FILES; owner++)
		forget_records(w, owner);
	for (int world = 0; world < WORLDS; world++) {
		end(w, world);
		start(w, world);
	}
}

/* Returns true if something was closed. */
static bool act(void)
{
	unsigned w = (unsigned)rand_r(&seed) % ACTORS;
	struct command c;
	bool wait;

	if (rand_r(&seed) % 80 == 0) {
		kill_both(w);
		return true;
	}
	if (waiter == (int)w) {
		if (rand_r(&seed) % 2)
			return false;
		waiter = -1;
		interrupt_both(w, &waits_for);
		return false;
	}
	c = draw(&wait);
	if (wait)
		wait_both(w, &c);
	else
		both(w, &c);
	return c.op == REOPEN;
}

static void run_steps(unsigned steps)
{
	for (step = 0; step < steps; step++) {
		bool closed = act();

		look_at_waiter();
		if (!closed && step % 4)
			continue;
		for (unsigned i = ACTORS; i < WORKERS; i++)
			all_the_same(i, closed ? LATE_MS : 0);
		look_at_waiter();
	}
}

int main(int argc, char **argv)
{
	if (argc < 6)
		errx(2, "see the head of lock_twins.c");
	first_seed = seed = (unsigned)strtoul(argv[1], NULL, 10);
	waiting = argv[3];
	signal(SIGPIPE, SIG_IGN);
	for (unsigned w = 0; w < WORKERS; w++) {
		workers[w].paths[REFERENCE] = argv[4];
		for (int owner = 0; owner <= FILES; owner++)
			forget_records(w, owner);
		workers[w].paths[TWIN] = argv[5 + w % (unsigned)(argc - 5)];
		for (int world = 0; world < WORLDS; world++)
			start(w, world);
	}
	run_steps((unsigned)strtoul(argv[2], NULL, 10));
	end_all();
	printf("%u steps with seed %u: the same\n", step, first_seed);
	return 0;
}
