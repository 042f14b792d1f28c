/* reap_record.c - see reap_record.h. */
#include "server/record/reap_record.h"

#include <errno.h>

#include "common/rpc/wire.h"

enum { REAP_BYTES = 16 };

int reap_record_decode(
	struct volume *v, uint64_t key, const struct store_val *val, struct reap_record *out)
{
	struct wire_in r;

	wire_in_init(&r, val->data, val->len);
	out->cut = wire_get_u64(&r);
	out->npages = wire_get_u64(&r);
	if (r.truncated || wire_in_left(&r))
		return store_damaged(v->store, STORE_REAP, STORE_KEY(key));
	return 0;
}

int reap_record_load(struct volume *v, uint64_t key, struct reap_record *out)
{
	struct store_val val;
	int err;

	*out = (struct reap_record){0};
	err = store_get(v->store, STORE_REAP, STORE_KEY(key), &val);
	if (err)
		return err == -ENOENT ? store_damaged(v->store, STORE_REAP, STORE_KEY(key)) : err;
	return reap_record_decode(v, key, &val, out);
}

int reap_record_put(struct volume *v, uint64_t key, const struct reap_record *record)
{
	uint8_t buf[REAP_BYTES];
	struct wire_out w;

	wire_out_init(&w, buf, sizeof(buf));
	wire_put_u64(&w, record->cut);
	wire_put_u64(&w, record->npages);
	return store_put(v->store, STORE_REAP, STORE_KEY(key), buf, sizeof(buf));
}

int reap_record_save(struct volume *v, uint64_t key, const struct reap_record *record)
{
	struct reap_record before = {0};
	struct store_val val;
	int err = store_get(v->store, STORE_REAP, STORE_KEY(key), &val);

	if (!err)
		err = reap_record_decode(v, key, &val, &before);
	if (err && err != -ENOENT)
		return err;
	if (err == -ENOENT) {
		v->now.reap_files++;
		retry_now(&v->reap_retry);
	}
	err = reap_record_put(v, key, record);
	if (!err)
		v->now.reap_pages += record->npages - before.npages;
	return err;
}
