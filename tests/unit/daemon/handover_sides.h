/* handover_sides.h - two filesystems without a server: one that has inodes and handles, and one that
 * takes them. */
#ifndef RMEMFS_TESTS_HANDOVER_SIDES_H
#define RMEMFS_TESTS_HANDOVER_SIDES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "daemon/file/handle.h"
#include "daemon/file/inherited.h"
#include "daemon/handover/describe.h"
#include "daemon/handover/state.h"
#include "daemon/op/fs_parts.h"
#include "daemon/remote/remote_private.h"
#include "daemon/request/io_thread_private.h"
#include "daemon/serve/fs.h"
#include "daemon/serve/fs_block.h"
#include "daemon/serve/threads.h"

enum {
	THREADS = 2,
	FILE_INO = 71,
	ORPHAN_INO = 72,
	DIR_INO = 73,
	FIFO_INO = 74,
	RETURNED_INO = 75
};

struct side {
	struct fs_block block;
	struct session session;
	struct remote remotes[THREADS];
	struct io_threads *group;
};
static struct side old, new;
static uint8_t *data;
static size_t len;
static char why[256];

static inline struct fs *fs_of(struct side *side)
{
	return &side->block.fs;
}

static inline struct io_thread *threads_of(struct side *side)
{
	return io_threads_thread(side->group, 0);
}

static bool sides_share;

static inline int side_init(struct side *side)
{
	const struct fs_options options = {
		.session = {.io_threads = THREADS, .sharing = sides_share}};
	struct spinning none = {0};

	*side = (struct side){0};
	if (fs_init(&side->block, &options) || io_threads_new(THREADS, 1, &none, &side->group))
		return -1;
	fs_of(side)->session = &side->session;
	side->session.nchannels = THREADS;
	side->session.sharing = sides_share;
	pthread_mutex_init(&side->session.lock, NULL);
	atomic_init(&side->session.owner.fd, -1);
	for (unsigned i = 0; i < THREADS; i++) {
		struct remote *r = &side->remotes[i];

		*r = (struct remote){.thread = &threads_of(side)[i], .session = &side->session};
		slots_init(r);
		transfers_init(r);
		threads_of(side)[i].fs = fs_of(side);
		threads_of(side)[i].remote = r;
		fs_thread_prepare(fs_of(side), &threads_of(side)[i]);
	}
	return 0;
}

static inline void side_fini(struct side *side)
{
	fs_fini(fs_of(side));
	io_threads_delete(side->group);
}

static inline struct inode *add_inode(uint64_t ino, uint32_t mode, uint64_t nlookup)
{
	struct inode *inode = inode_get(fs_of(&old), ino);

	inode->type = mode & S_IFMT;
	inode->attr = (struct attr){.ino = ino, .size = 5000, .npages = 2, .mode = mode};
	inode->attr_valid = true;
	inode->nlookup = nlookup;
	return inode;
}

static inline struct handle *open_file(struct inode *inode, uint32_t flags, enum open_kind kind)
{
	struct handle *handle = handle_new(inode->fs);

	handle->inode = inode;
	handle->kind = kind;
	handle->writes = (flags & O_ACCMODE) != O_RDONLY;
	handle->appends = flags & O_APPEND;
	list_add_tail(&inode->handles, &handle->link);
	inode->nopen++;
	return handle;
}

/* The session of a mount that was attached once. */
static inline void make_session(struct session *s)
{
	s->id = 9;
	s->instance = 10;
	s->info = (struct session_info){.npages = 1000, .lease_ms = 20000};
	s->limits = (struct io_limits){16, 16, 1 << 20};
	memset(s->token, 't', sizeof(s->token));
	memset(s->owner.id, 'o', sizeof(s->owner.id));
	memset(s->store_id, 's', sizeof(s->store_id));
	for (unsigned i = 0; i < THREADS; i++) {
		struct remote *r = &old.remotes[i];

		r->nslots = 32;
		r->nreserved = 4;
		r->free_slots = UINT32_MAX;
		for (unsigned n = 0; n < r->nslots; n++)
			r->slots[n].seq = 100 * i + n;
	}
}

static inline int describe(void)
{
	int owner;

	free(data);
	return describe_mount(fs_of(&old), threads_of(&old), &data, &len, &owner, why, sizeof(why));
}

static inline int adopt(const uint8_t *bytes, size_t n)
{
	return describe_adopt(fs_of(&new), threads_of(&new), bytes, n, -1, why, sizeof(why));
}

static inline struct inode *taken(uint64_t ino)
{
	struct inode *inode = inode_find(fs_of(&new), ino);

	assert_non_null(inode);
	inode_put(inode);
	return inode;
}

#endif
