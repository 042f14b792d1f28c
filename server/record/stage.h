/* stage.h - the first parts of a long value, kept until the request with the last part comes.
 *
 * Each session has its own stages, under numbers of its choice, STAGES_MAX at a time. They end with
 * the session at the latest.
 *
 * THREADS  The metadata thread, in a transaction.
 * ERRORS   The store failed.
 */
#ifndef RMEMFS_SERVER_RECORD_STAGE_H
#define RMEMFS_SERVER_RECORD_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/store/store.h"

/* A record is a piece. Its key is the session, and one number with the stage in its upper half and
 * the offset in its lower half. All pieces of a stage but the last are whole; longer ones would
 * need pages in a row. */
enum { STAGE_PIECE_BYTES = 1900, STAGE_SHIFT = 32 };

/* The stage's length in bytes; 0: there is no such stage. */
int stage_len(struct store *s, uint64_t session, uint32_t stage, uint32_t *len);
int stage_count(struct store *s, uint64_t session, unsigned *n);
/* len: the stage's whole length. */
int stage_read(struct store *s, uint64_t session, uint32_t stage, void *buf, uint32_t len);

/* Store pages that adding or dropping so many bytes may touch. */
uint64_t stage_room(uint32_t len);
/* offset: where the stage ends. */
int stage_add(struct store *s, uint64_t session, uint32_t stage, uint32_t offset, const void *data,
	uint32_t len);
int stage_drop(struct store *s, uint64_t session, uint32_t stage);

/* Drops up to nrecords of all that the session has. */
int stage_drain(struct store *s, uint64_t session, unsigned nrecords, bool *done);

#endif
