/* ordered.c - makes and removes files and their names, and gives folders other owners and names, in
 * an order that a seed tells, and finds out afterwards how far that has come. For mounts whose
 * daemon or server dies meanwhile.
 *
 *     ordered run DIR LOG SEED STEPS [large]
 *         changes DIR step by step, until all are done or one fails. LOG, on another filesystem,
 *         tells how far it is
 *     ordered check DIR LOG SEED [large]
 *         DIR has to be as it was after one of the steps: after the last one that made all before
 * it durable, or a later one, up to the one that was under way. Prints which
 *
 * A file has the number of the step that made it, and so has a symbolic link as its target. With
 * `large` a file has that again and again in some files, up to LARGE_BYTES. A folder's owner is the
 * number of the step that gave it away. The close of a file and fsync of the folder are steps that
 * make all before them durable; UNLINK, RENAME, MKDIR, SYMLINK, LINK, RMDIR and SETATTR of a folder
 * are not. It needs root.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES = 150, FOLDERS = 3, BURST = 70 };
enum { LARGE_EACH = 16, LARGE_BYTES = 320 << 10, TEXT_BYTES = 24 };

struct progress {
	uint64_t begun, ended, durable; /* numbers of steps */
};

enum kind { MAKE, LINK, REMOVE, RENAME, NAME_AGAIN, TOGGLE_FOLDER, MOVE_FOLDER, GIVE_FOLDER, SYNC };

struct step {
	enum kind kind;
	unsigned name, to;
};

/* The state after some steps, and what chooses the next one. */
struct tree {
	uint64_t random, step;
	uint64_t made_by[NAMES]; /* the step that made the file; 0: there is none */
	uint64_t given_by[FOLDERS];
	enum { NO_FOLDER, FOLDER, MOVED_FOLDER } folder;
	enum kind burst;
	unsigned left; /* steps of the burst */
};

/* ---- steps ----------------------------------------------------------------------------------- */

static unsigned random_below(struct tree *t, unsigned n)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return (unsigned)(t->random >> 11) % n;
}

/* A name that is there, or is not, from a random one on. NAMES: none. */
static unsigned find_name(struct tree *t, bool there)
{
	unsigned first = random_below(t, NAMES);

	for (unsigned i = 0; i < NAMES; i++)
		if (!t->made_by[(first + i) % NAMES] == !there)
			return (first + i) % NAMES;
	return NAMES;
}

static bool needs_other(enum kind kind)
{
	return kind == RENAME || kind == NAME_AGAIN;
}

static struct step choose(struct tree *t)
{
	static const struct step sync_all = {.kind = SYNC};
	struct step s;

	if (!t->left) {
		t->burst = random_below(t, 2) ? MAKE : REMOVE;
		t->left = 1 + random_below(t, BURST);
	}
	t->left--;
	s = (struct step){.kind = t->burst};
	switch (random_below(t, 60)) {
	case 0:
		return sync_all;
	case 1:
	case 3:
	case 4:
		s.kind = TOGGLE_FOLDER;
		return s;
	case 8:
	case 9:
	case 10:
		s.kind = GIVE_FOLDER;
		s.name = random_below(t, FOLDERS);
		return s;
	case 11:
	case 12:
	case 13:
		s.kind = t->folder ? MOVE_FOLDER : TOGGLE_FOLDER;
		return s;
	case 14:
	case 15:
	case 16:
		s.kind = LINK;
		break;
	case 17:
	case 18:
	case 19:
		s.kind = NAME_AGAIN;
		break;
	case 2:
	case 5:
	case 6:
	case 7:
		s.kind = RENAME;
		break;
	default:
		break;
	}
	s.name = find_name(t, s.kind != MAKE && s.kind != LINK);
	s.to = find_name(t, false);
	if (s.name == NAMES || (needs_other(s.kind) && s.to == NAMES))
		return sync_all;
	return s;
}

/* Takes the step in the tree alone. */
static void take(struct tree *t, const struct step *s)
{
	t->step++;
	switch (s->kind) {
	case MAKE:
	case LINK:
		t->made_by[s->name] = t->step;
		break;
	case REMOVE:
		t->made_by[s->name] = 0;
		break;
	case RENAME:
		t->made_by[s->to] = t->made_by[s->name];
		t->made_by[s->name] = 0;
		break;
	case NAME_AGAIN:
		t->made_by[s->to] = t->made_by[s->name];
		break;
	case TOGGLE_FOLDER:
		t->folder = t->folder ? NO_FOLDER : FOLDER;
		break;
	case MOVE_FOLDER:
		t->folder = t->folder == FOLDER ? MOVED_FOLDER : FOLDER;
		break;
	case GIVE_FOLDER:
		t->given_by[s->name] = t->step;
		break;
	case SYNC:
		break;
	}
}

static struct tree tree_of(const char *seed)
{
	return (struct tree){.random = strtoull(seed, NULL, 10) * 2654435761u + 88172645463325252u};
}

static const char *path_of(unsigned name, char *path, size_t len)
{
	snprintf(path, len, "%u/file.%u", name % FOLDERS, name);
	return path;
}

/* ---- contents -------------------------------------------------------------------------------- */

static bool large;
static char content[LARGE_BYTES], found[LARGE_BYTES + 1];

/* Fills `content`, and returns its length. */
static size_t content_of(uint64_t step)
{
	bool is_large = large && step % LARGE_EACH == 0;
	size_t len = (size_t)snprintf(
		content, TEXT_BYTES, is_large ? "%llu " : "%llu", (unsigned long long)step);

	if (!is_large)
		return len;
	for (size_t i = len; i < LARGE_BYTES; i++)
		content[i] = content[i % len];
	return LARGE_BYTES;
}

/* ---- run ------------------------------------------------------------------------------------- */

static int make(const char *path, uint64_t step)
{
	size_t len = content_of(step);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), r;

	if (fd < 0)
		return -1;
	r = write(fd, content, len) == (ssize_t)len ? 0 : -1;
	return close(fd) == 0 ? r : -1;
}

static int make_link(const char *path, uint64_t step)
{
	char target[TEXT_BYTES];

	snprintf(target, sizeof(target), "%llu", (unsigned long long)step);
	return symlink(target, path);
}

/* The names of the folder that comes and goes. */
static const char *const folder_names[] = {[FOLDER] = "folder", [MOVED_FOLDER] = "moved"};

static int toggle_folder(const struct tree *t)
{
	return t->folder ? rmdir(folder_names[t->folder]) : mkdir(folder_names[FOLDER], 0755);
}

static int move_folder(const struct tree *t)
{
	bool back = t->folder == MOVED_FOLDER;

	return rename(folder_names[t->folder], folder_names[back ? FOLDER : MOVED_FOLDER]);
}

static int sync_folder(void)
{
	int fd = open("0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -1 : fsync(fd);

	if (fd >= 0)
		close(fd);
	return r;
}

static int give(unsigned folder, uint64_t step)
{
	const char name[] = {(char)('0' + folder), '\0'};

	return chown(name, (uid_t)step, (gid_t)-1);
}

/* The folder may be missing if the daemon has died before the first step. */
static uint64_t given_by(unsigned folder)
{
	const char name[] = {(char)('0' + folder), '\0'};
	struct stat st;

	if (stat(name, &st) == 0)
		return st.st_uid;
	if (errno != ENOENT)
		err(2, "%s", name);
	return 0;
}

static int carry_out(const struct tree *t, const struct step *s)
{
	char path[64], to[64];

	path_of(s->name, path, sizeof(path));
	switch (s->kind) {
	case MAKE:
		return make(path, t->step + 1);
	case LINK:
		return make_link(path, t->step + 1);
	case REMOVE:
		return unlink(path);
	case RENAME:
		return rename(path, path_of(s->to, to, sizeof(to)));
	case NAME_AGAIN:
		return link(path, path_of(s->to, to, sizeof(to)));
	case TOGGLE_FOLDER:
		return toggle_folder(t);
	case MOVE_FOLDER:
		return move_folder(t);
	case GIVE_FOLDER:
		return give(s->name, t->step + 1);
	case SYNC:
		return sync_folder();
	}
	return -1;
}

static struct progress *map_log(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0644);
	struct progress *p;

	if (fd < 0 || (flags & O_CREAT && ftruncate(fd, sizeof(*p)) < 0))
		err(2, "%s", path);
	p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		err(2, "%s", path);
	close(fd);
	return p;
}

/* They may be there from before, and are empty then. */
static bool has_folders(void)
{
	for (unsigned i = 0; i < FOLDERS; i++) {
		char name[] = {(char)('0' + i), '\0'};

		if (mkdir(name, 0755) < 0 && errno != EEXIST)
			return false;
	}
	return true;
}

static bool is_durable(const struct step *s)
{
	return s->kind == MAKE || s->kind == SYNC;
}

static int run(const char *dir, const char *log, const char *seed, uint64_t nsteps)
{
	volatile struct progress *p = map_log(log, O_RDWR | O_CREAT | O_TRUNC);
	struct tree t = tree_of(seed);

	/* The daemon may have died by what another one has done. */
	if (chdir(dir) < 0) {
		warn("%s", dir);
		return 1;
	}
	if (!has_folders()) {
		warn("%s: its folders", dir);
		return 1;
	}
	while (t.step < nsteps) {
		struct step s = choose(&t);
		bool durable;

		p->begun = t.step + 1;
		if (carry_out(&t, &s) < 0) {
			warn("step %llu of kind %d", (unsigned long long)t.step + 1, s.kind);
			return 1;
		}
		durable = is_durable(&s);
		take(&t, &s);
		p->ended = t.step;
		if (durable)
			p->durable = t.step;
	}
	return 0;
}

/* ---- check ----------------------------------------------------------------------------------- */

/* The step of a file with so many bytes; UINT64_MAX: no step has made it so. */
static uint64_t step_of(size_t nbytes)
{
	char text[TEXT_BYTES];
	uint64_t step;

	snprintf(text, sizeof(text), "%.*s", (int)nbytes, found);
	step = strtoull(text, NULL, 10);
	if (content_of(step) == nbytes && !memcmp(content, found, nbytes))
		return step;
	return UINT64_MAX;
}

/* 0: there is none; UINT64_MAX: it is empty, or has not all that it was to have. */
static uint64_t made_by(unsigned name)
{
	char path[64];
	ssize_t n = readlink(path_of(name, path, sizeof(path)), found, TEXT_BYTES - 1);
	size_t have = 0;
	int fd;

	if (n > 0) {
		found[n] = '\0';
		return strtoull(found, NULL, 10);
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		if (errno != ENOENT)
			err(2, "%s", path);
		return 0;
	}
	while ((n = read(fd, found + have, sizeof(found) - have)) > 0)
		have += (size_t)n;
	if (n < 0)
		err(2, "%s", path);
	close(fd);
	return step_of(have);
}

static struct tree look(void)
{
	struct tree t = {0};

	for (unsigned i = 0; i < NAMES; i++)
		t.made_by[i] = made_by(i);
	for (unsigned i = 0; i < FOLDERS; i++)
		t.given_by[i] = given_by(i);
	for (unsigned i = FOLDER; i <= MOVED_FOLDER; i++)
		t.folder += access(folder_names[i], F_OK) == 0 ? i : 0;
	return t;
}

static unsigned count_differences(const struct tree *a, const struct tree *b)
{
	unsigned n = a->folder != b->folder;

	for (unsigned i = 0; i < NAMES; i++)
		n += a->made_by[i] != b->made_by[i];
	for (unsigned i = 0; i < FOLDERS; i++)
		n += a->given_by[i] != b->given_by[i];
	return n;
}

/* The file of the step that was under way may be there, without some of its bytes. */
static void forgive_unfinished(
	struct tree *now, const struct tree *before, const struct progress *p)
{
	struct tree next = *before;
	struct step s;

	if (p->begun == p->ended || before->step != p->ended)
		return;
	s = choose(&next);
	if (s.kind == MAKE && now->made_by[s.name] == UINT64_MAX)
		now->made_by[s.name] = before->made_by[s.name];
}

static int check(const char *dir, const char *log, const char *seed)
{
	const struct progress *p = map_log(log, O_RDWR);
	struct tree t = tree_of(seed), now;
	unsigned best = UINT_MAX;

	if (chdir(dir) < 0)
		err(2, "%s", dir);
	for (now = look();;) {
		struct tree seen = now;
		unsigned n;
		struct step s;

		forgive_unfinished(&seen, &t, p);
		n = count_differences(&seen, &t);
		if (t.step >= p->durable && !n) {
			printf("as after step %llu; durable: %llu, begun: %llu\n",
				(unsigned long long)t.step, (unsigned long long)p->durable,
				(unsigned long long)p->begun);
			return 0;
		}
		if (t.step >= p->durable && n < best)
			best = n;
		if (t.step == p->begun)
			break;
		s = choose(&t);
		take(&t, &s);
	}
	printf("as after no step from %llu to %llu: %u names differ at least\n",
		(unsigned long long)p->durable, (unsigned long long)p->begun, best);
	return 1;
}

int main(int argc, char **argv)
{
	large = argc > 4 && !strcmp(argv[argc - 1], "large");
	if (large)
		argc--;
	if (argc == 6 && !strcmp(argv[1], "run"))
		return run(argv[2], argv[3], argv[4], strtoull(argv[5], NULL, 10));
	if (argc == 5 && !strcmp(argv[1], "check"))
		return check(argv[2], argv[3], argv[4]);
	errx(2, "usage: ordered run DIR LOG SEED STEPS [large] | ordered check DIR LOG SEED [large]");
}
