/* store_view.c - a view: another thread reads the records as they were when it was opened. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "server/store/store_format.h"
#include "server/store/store_internal.h"

int store_view_open(struct store *s, struct store_view **out)
{
	struct store_view *v;
	int err;

	if (s->view)
		return -EBUSY;
	v = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	err = store_errno(mdb_txn_begin(s->env, NULL, MDB_RDONLY, &v->txn));
	if (err) {
		free(v);
		return err;
	}
	v->store = s;
	pthread_mutex_init(&v->lock, NULL);
	s->view = v;
	*out = v;
	return 0;
}

void store_view_drop(struct store_view *v)
{
	pthread_mutex_lock(&v->lock);
	if (v->cursor)
		mdb_cursor_close(steal_ptr(&v->cursor));
	if (v->txn)
		mdb_txn_abort(steal_ptr(&v->txn));
	pthread_mutex_unlock(&v->lock);
}

void store_view_close(struct store_view *v)
{
	if (!v)
		return;
	store_view_drop(v);
	v->store->view = NULL;
	pthread_mutex_destroy(&v->lock);
	free(v);
}

static int view_cursor(struct store_view *v, enum store_table table)
{
	if (v->cursor && v->cursor_table == table)
		return 0;
	if (v->cursor)
		mdb_cursor_close(steal_ptr(&v->cursor));
	v->cursor_table = table;
	return store_errno(mdb_cursor_open(v->txn, v->store->dbi[table], &v->cursor));
}

static int view_seek(struct store_view *v, enum store_table table, struct store_key key,
	struct store_key *found, void *buf, size_t buflen, size_t *len)
{
	uint64_t packed[2];
	MDB_val k = {store_key_pack(table, &key, packed), packed}, val;
	struct store_val stored;
	int err = v->txn ? view_cursor(v, table) : -ESTALE;

	if (!err)
		err = store_errno(mdb_cursor_get(v->cursor, &k, &val, MDB_SET_RANGE));
	if (err)
		return err;
	*found = store_key_unpack(table, k.mv_data);
	stored = (struct store_val){val.mv_data, val.mv_size};
	if (!store_val_check(table, found, &stored))
		return -EBADMSG;
	if (stored.len > buflen)
		return -EMSGSIZE;
	memcpy(buf, stored.data, stored.len);
	*len = stored.len;
	return 0;
}

int store_view_seek(struct store_view *v, enum store_table table, struct store_key key,
	struct store_key *found, void *buf, size_t buflen, size_t *len)
{
	int err;

	pthread_mutex_lock(&v->lock);
	err = view_seek(v, table, key, found, buf, buflen, len);
	pthread_mutex_unlock(&v->lock);
	return err;
}
