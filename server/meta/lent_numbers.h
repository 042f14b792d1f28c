/* lent_numbers.h - inode numbers that a session was lent, to make files by itself (enum rpc_numbers).
 *
 * They are part of the session's record, so a server that is started again knows them, and they end
 * with the session. A number is used once. One that is not used is nobody's.
 *
 * THREADS    The metadata thread, in a batch.
 * ERRORS     0 or -errno, of store.h.
 */
#ifndef RMEMFS_SERVER_META_LENT_NUMBERS_H
#define RMEMFS_SERVER_META_LENT_NUMBERS_H

#include "common/rpc/rpc.h"
#include "server/meta/session_codec.h"

/* The record of the session that has them, or is to get some. Changes are in force with
 * session_codec_put(). */
int lent_numbers_load(struct meta *m, uint64_t session, struct session_record *rec);

/* Whether the session was lent the number, and has not used it. */
bool lent_numbers_has(const struct session_record *rec, uint64_t ino);
/* It is used. */
void lent_numbers_take(struct session_record *rec, uint64_t ino);
/* Lends NUMBERS_LENT of the export's numbers. anew: none that was lent before counts any more.
 * False: too many are lent already, and nothing has changed. */
bool lent_numbers_lend(
	struct session_record *rec, bool anew, struct volume *v, struct rpc_lent *lent);

#endif
