/* store.c - see store.h. LMDB runs without syncing and writes through the map. A kill loses nothing
 * that was committed, since the map is the kernel's memory. The two meta pages make commits atomic.
 */
#include "server/store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/conf/conf.h"
#include "common/base/crash_point.h"
#include "common/base/log.h"
#include "common/base/util.h"
#include "server/store/store_format.h"
#include "server/store/store_internal.h"
#include "server/store/store_verify.h"

enum { TELL_AGAIN_MS = 60000 };

/* LMDB's table of readers. */
enum { LOCK_BYTES = 16384 };

int store_fail(struct store *s, int err)
{
	if (!s->failed)
		s->failed = err;
	return err;
}

/* The result of an access to a record. */
static int accessed(struct store *s, int rc)
{
	int err = store_errno(rc);

	return err && err != -ENOENT ? store_fail(s, err) : err;
}

/* ---- opening --------------------------------------------------------------------------------- */

int store_refuse_room(const char *path, int fd, uint64_t bytes, int err, char *why, size_t whylen)
{
	struct statvfs vfs = {0};
	char need[32], have[32];

	fstatvfs(fd, &vfs);
	size_format(bytes, need, sizeof(need));
	size_format((uint64_t)vfs.f_bavail * vfs.f_frsize, have, sizeof(have));
	snprintf(why, whylen,
		"the store %s: %s: needed %s, free %s; make the exports smaller or the memory "
		"larger",
		path, errno_text(err), need, have);
	return err;
}

/* Takes all of the file's memory now: in the map of a sparse file a write would end in SIGBUS when
 * the tmpfs is full. The size stays, since LMDB takes a file of size 0 for a new one. */
static int allocate_file(const char *path, uint64_t *bytes, char *why, size_t whylen)
{
	autoclose int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;
	int err;

	if (fd < 0 || fstat(fd, &st) < 0) {
		err = -errno;
		snprintf(why, whylen, "cannot open the store %s: %s", path, errno_text(err));
		return err;
	}
	if ((uint64_t)st.st_size > *bytes)
		*bytes = (uint64_t)st.st_size;
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)*bytes) == 0)
		return 0;
	err = store_refuse_room(path, fd, *bytes, -errno, why, whylen);
	if (st.st_size == 0)
		unlink(path);
	return err;
}

/* LMDB would make it sparse: see allocate_file(). */
static int allocate_lock(const char *path)
{
	autoclose int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	return fallocate(fd, 0, 0, LOCK_BYTES) ? -errno : 0;
}

static int set_up_env(struct store *s, const char *path, uint64_t bytes)
{
	unsigned flags =
		s->read_only ? MDB_RDONLY | MDB_NOLOCK : MDB_NOSYNC | MDB_WRITEMAP | MDB_NOTLS;
	int rc = mdb_env_create(&s->env);

	if (rc)
		return store_errno(rc);
	rc = mdb_env_set_maxdbs(s->env, STORE_TABLES);
	if (!rc)
		rc = mdb_env_set_mapsize(s->env, bytes);
	if (!rc)
		rc = mdb_env_open(s->env, path, MDB_NOSUBDIR | MDB_NORDAHEAD | flags, 0600);
	if (!rc)
		return 0;
	mdb_env_close(s->env);
	s->env = NULL;
	return store_errno(rc);
}

/* All readers are in this process. So once the table of readers is open it needs no name, and no
 * later start finds it. */
static int open_env(struct store *s, const char *path, uint64_t bytes)
{
	autofree char *lock = NULL;
	int err;

	if (s->read_only)
		return set_up_env(s, path, bytes);
	if (asprintf(&lock, "%s-lock", path) < 0)
		return -ENOMEM;
	err = allocate_lock(lock);
	if (!err)
		err = set_up_env(s, path, bytes);
	unlink(lock);
	return err;
}

/* LMDB does not tell where its map is. But pages of a shared mapping are locked for all
 * mappings. */
static void lock_map(struct store *s)
{
	MDB_envinfo info;
	int fd;

	mdb_env_info(s->env, &info);
	s->map_pages = info.me_mapsize / PAGE_BYTES;
	mdb_env_get_fd(s->env, &fd);
	s->locked = mmap(NULL, info.me_mapsize, PROT_READ, MAP_SHARED, fd, 0);
	if (s->locked != MAP_FAILED && mlock(s->locked, info.me_mapsize) == 0)
		return;
	log_info("the store is not locked in memory and may be swapped out: %s (RLIMIT_MEMLOCK)",
		errno_text(errno));
}

static void unlock_map(struct store *s)
{
	if (s->locked != MAP_FAILED)
		munmap(s->locked, s->map_pages * PAGE_BYTES);
}

/* A start that was killed leaves tables without records: such a store is new, too. */
static int open_tables(struct store *s, bool *is_new)
{
	MDB_stat stat;
	size_t records = 0;
	bool make;
	int err = s->read_only ? store_begin_read(s) : store_begin(s);

	if (err)
		return err;
	err = store_errno(mdb_stat(s->txn, MAIN_TABLE, &stat));
	make = stat.ms_entries == 0;
	if (!err && make && s->read_only) {
		*is_new = true;
		store_abort(s);
		return 0;
	}
	for (unsigned i = 0; !err && i < STORE_TABLES; i++) {
		unsigned flags = make ? MDB_CREATE : 0;

		if (i < STORE_PAIRS)
			flags |= MDB_INTEGERKEY;
		err = store_errno(mdb_dbi_open(s->txn, store_table_names[i], flags, &s->dbi[i]));
		if (!err)
			err = store_errno(mdb_stat(s->txn, s->dbi[i], &stat));
		records += stat.ms_entries;
	}
	if (err) {
		store_abort(s);
		return err == -ENOENT ? -EBADMSG : err;
	}
	*is_new = records == 0;
	return store_commit(s);
}

/* Called before anything is changed. -ENOENT: there is nothing yet. */
static int check_file(const char *path, char *why, size_t whylen)
{
	char text[256] = "";
	int err = store_verify(path, text, sizeof(text));

	if (!err || err == -ENOENT)
		return err;
	snprintf(why, whylen, "the store %s %s: %s", path,
		err == -EBADMSG ? "is damaged" : "can't be used", text[0] ? text : errno_text(err));
	return err;
}

int store_open(const char *path, uint64_t bytes, struct store **out, bool *is_new, char *why,
	size_t whylen)
{
	struct store *s;
	int err = check_file(path, why, whylen);

	if (err && err != -ENOENT)
		return err;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	bytes = div_round_up(bytes, PAGE_BYTES) * PAGE_BYTES;
	err = allocate_file(path, &bytes, why, whylen);
	if (err)
		goto err_free;
	err = open_env(s, path, bytes);
	if (err) {
		snprintf(why, whylen, "cannot open the store %s: %s", path,
			err == -EBADMSG ? "it is damaged or of another version" : errno_text(err));
		goto err_free;
	}
	lock_map(s);
	CRASH_POINT("store.allocated");
	err = open_tables(s, is_new);
	if (err) {
		snprintf(why, whylen, "cannot open the tables of the store %s: %s", path,
			err == -EBADMSG ? "it is damaged" : errno_text(err));
		goto err_env;
	}
	*out = s;
	return 0;

err_env:
	unlock_map(s);
	mdb_env_close(s->env);
err_free:
	free(s);
	return err;
}

int store_open_read(const char *path, struct store **out, char *why, size_t whylen)
{
	bool is_new = false;
	struct store *s;
	struct stat st;
	int err = check_file(path, why, whylen);

	if (err)
		return err;
	if (stat(path, &st) != 0)
		return -errno;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->read_only = true;
	s->locked = MAP_FAILED;
	err = open_env(s, path, (uint64_t)st.st_size);
	if (err)
		goto err_free;
	err = open_tables(s, &is_new);
	if (err)
		goto err_env;
	if (is_new) {
		err = -ENOENT;
		goto err_env;
	}
	*out = s;
	return 0;

err_env:
	mdb_env_close(s->env);
err_free:
	if (err != -ENOENT)
		snprintf(why, whylen, "cannot open the store %s: %s", path, errno_text(err));
	free(s);
	return err;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	store_abort(s);
	unlock_map(s);
	mdb_env_close(s->env);
	free(s);
}

/* ---- transactions ---------------------------------------------------------------------------- */

static int store_begin_flags(struct store *s, unsigned flags)
{
	MDB_envinfo info;
	int err;

	assert(!s->txn);
	s->failed = 0;
	err = store_errno(mdb_txn_begin(s->env, NULL, flags, &s->txn));
	if (err)
		return err;
	mdb_env_info(s->env, &info);
	s->available = s->map_pages - min_u64(s->map_pages, info.me_last_pgno + 1);
	s->planned = 0;
	s->exact = false;
	s->charged = NULL;
	return 0;
}

int store_begin(struct store *s)
{
	return store_begin_flags(s, 0);
}

int store_begin_read(struct store *s)
{
	return store_begin_flags(s, MDB_RDONLY);
}

static void close_cursors(struct store *s)
{
	for (unsigned i = 0; i < STORE_TABLES; i++) {
		if (s->cursor[i])
			mdb_cursor_close(s->cursor[i]);
		s->cursor[i] = NULL;
	}
}

int store_commit(struct store *s)
{
	int err;

	assert(s->txn);
	if (s->failed) {
		err = s->failed;
		store_abort(s);
		return err;
	}
	close_cursors(s);
	err = store_errno(mdb_txn_commit(s->txn));
	s->txn = NULL;
	return err;
}

void store_abort(struct store *s)
{
	if (!s->txn)
		return;
	close_cursors(s);
	mdb_txn_abort(s->txn);
	s->txn = NULL;
}

bool store_in_transaction(const struct store *s)
{
	return s->txn != NULL;
}

int store_failed(const struct store *s)
{
	return s->failed;
}

int store_damaged(struct store *s, enum store_table table, struct store_key key)
{
	static struct log_ratelimit limit;
	bool again = s->told && s->told_table == table && s->told_key.hi == key.hi &&
		     s->told_key.lo == key.lo;

	if (s->read_only)
		return -EBADMSG;
	/* A request that meets the record once is likely to meet it again and again. */
	if (!again || log_ratelimit_ok(&limit, TELL_AGAIN_MS))
		log_error("store: damaged record %" PRIx64 "/%" PRIx64
			  " in table %s: stop the server and "
			  "check it (rmemfs-server --check)",
			key.hi, key.lo, store_table_names[table]);
	if (!again)
		log_ratelimit_ok(&limit, TELL_AGAIN_MS);
	s->told = true;
	s->told_table = table;
	s->told_key = key;
	return store_fail(s, -EBADMSG);
}

/* ---- records --------------------------------------------------------------------------------- */

static MDB_val pack_key(enum store_table table, const struct store_key *key, uint64_t buf[2])
{
	return (MDB_val){store_key_pack(table, key, buf), buf};
}

static int take_val(struct store *s, enum store_table table, const struct store_key *key,
	const MDB_val *v, struct store_val *val)
{
	*val = (struct store_val){v->mv_data, v->mv_size};
	return store_val_check(table, key, val) ? 0 : store_damaged(s, table, *key);
}

int store_get(struct store *s, enum store_table table, struct store_key key, struct store_val *val)
{
	uint64_t buf[2];
	MDB_val k = pack_key(table, &key, buf), v;
	int err = accessed(s, mdb_get(s->txn, s->dbi[table], &k, &v));

	return err ? err : take_val(s, table, &key, &v, val);
}

static uint64_t pages_before(struct store *s, enum store_table table)
{
	return s->charged && table != STORE_META ? store_pages_of(s, s->dbi[table]) : 0;
}

static void charge(struct store *s, enum store_table table, uint64_t before)
{
	if (s->charged && table != STORE_META)
		*s->charged += (int64_t)(store_pages_of(s, s->dbi[table]) - before);
}

/* Returns LMDB's result. */
static int cursor_of(struct store *s, enum store_table table, MDB_cursor **c)
{
	int rc = 0;

	if (!s->cursor[table])
		rc = mdb_cursor_open(s->txn, s->dbi[table], &s->cursor[table]);
	*c = s->cursor[table];
	return rc;
}

/* Writes the value where it is to stay, and its sum after it. From where the table's cursor is LMDB
 * finds a place nearby at once: most keys were looked for just before. */
static int store_put_record(struct store *s, enum store_table table, const struct store_key *key,
	const void *data, size_t len, unsigned flags)
{
	uint64_t buf[2];
	MDB_val k = pack_key(table, key, buf), v = {len + STORE_SUM_BYTES, NULL};
	uint32_t sum = store_sum(table, key, data, len);
	uint64_t before = pages_before(s, table);
	MDB_cursor *c;
	int rc = cursor_of(s, table, &c);

	if (!rc)
		rc = mdb_cursor_put(c, &k, &v, flags | MDB_RESERVE);
	if (rc)
		return rc;
	charge(s, table, before);
	memcpy(v.mv_data, data, len);
	memcpy((char *)v.mv_data + len, &sum, sizeof(sum));
	return 0;
}

int store_put(
	struct store *s, enum store_table table, struct store_key key, const void *data, size_t len)
{
	return accessed(s, store_put_record(s, table, &key, data, len, 0));
}

int store_append(
	struct store *s, enum store_table table, struct store_key key, const void *data, size_t len)
{
	int rc = store_put_record(s, table, &key, data, len, MDB_APPEND);

	if (rc == MDB_KEYEXIST) /* not the greatest key */
		rc = store_put_record(s, table, &key, data, len, 0);
	return accessed(s, rc);
}

int store_add(
	struct store *s, enum store_table table, struct store_key key, const void *data, size_t len)
{
	int rc = store_put_record(s, table, &key, data, len, MDB_APPEND);

	if (rc == MDB_KEYEXIST) /* not the greatest key */
		rc = store_put_record(s, table, &key, data, len, MDB_NOOVERWRITE);
	return rc == MDB_KEYEXIST ? store_damaged(s, table, key) : accessed(s, rc);
}

int store_del(struct store *s, enum store_table table, struct store_key key)
{
	uint64_t buf[2];
	MDB_val k = pack_key(table, &key, buf);
	uint64_t before = pages_before(s, table);
	int err = accessed(s, mdb_del(s->txn, s->dbi[table], &k, NULL));

	if (!err)
		charge(s, table, before);
	return err;
}

static int store_move(struct store *s, enum store_table table, MDB_val *k, MDB_cursor_op op,
	struct store_key *found, struct store_val *val)
{
	struct store_key key;
	MDB_cursor *c;
	MDB_val v;
	int rc = cursor_of(s, table, &c);
	int err = accessed(s, rc ? rc : mdb_cursor_get(c, k, &v, op));

	if (err)
		return err;
	key = store_key_unpack(table, k->mv_data);
	if (found)
		*found = key;
	return val ? take_val(s, table, &key, &v, val) : 0;
}

int store_seek(struct store *s, enum store_table table, struct store_key key,
	struct store_key *found, struct store_val *val)
{
	uint64_t buf[2];
	MDB_val k = pack_key(table, &key, buf);

	return store_move(s, table, &k, MDB_SET_RANGE, found, val);
}

int store_seek_back(struct store *s, enum store_table table, struct store_key key,
	struct store_key *found, struct store_val *val)
{
	struct store_key at;
	uint64_t buf[2];
	MDB_val k = pack_key(table, &key, buf);
	int err = store_move(s, table, &k, MDB_SET_RANGE, &at, NULL);

	if (err == -ENOENT)
		return store_move(s, table, &k, MDB_LAST, found, val);
	if (err)
		return err;
	return store_move(s, table, &k,
		at.hi == key.hi && at.lo == key.lo ? MDB_GET_CURRENT : MDB_PREV, found, val);
}

int store_here(struct store *s, enum store_table table, struct store_val *val)
{
	MDB_val k;

	return store_move(s, table, &k, MDB_GET_CURRENT, NULL, val);
}

int store_next(
	struct store *s, enum store_table table, struct store_key *found, struct store_val *val)
{
	MDB_val k;

	return store_move(s, table, &k, MDB_NEXT, found, val);
}
