/* inode_table_fixture.h - a filesystem that has inodes and nothing else: no session, no threads. */
#ifndef RMEMFS_TESTS_UNIT_DAEMON_INODE_TABLE_FIXTURE_H
#define RMEMFS_TESTS_UNIT_DAEMON_INODE_TABLE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "daemon/file/inode_return.h"
#include "daemon/op/fs_parts.h"
#include "daemon/serve/fs_block.h"
#include "daemon/serve/inode_parts.h"

static int inode_table_setup(void **state)
{
	struct fs_block *block = calloc(1, sizeof(*block));
	struct fs *fs = &block->fs;

	if (!block)
		return -1;
	fs_wire(fs, &block->parts);
	if (inode_table_init(fs->inodes, &inode_parts_hooks))
		return -1;
	grants_init(fs->grants);
	inode_return_init(fs->returns);
	*state = fs;
	return 0;
}

static int inode_table_teardown(void **state)
{
	struct fs *fs = *state;

	inode_table_fini(fs->inodes);
	inode_return_fini(fs->returns);
	grants_fini(fs->grants);
	free(fs);
	return 0;
}

#endif
