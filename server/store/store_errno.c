/* store_errno.c - results of LMDB as errno. */
#include <errno.h>
#include <lmdb.h>

#include "server/store/store_internal.h"

int store_errno(int rc)
{
	switch (rc) {
	case MDB_SUCCESS:
		return 0;
	case MDB_NOTFOUND:
		return -ENOENT;
	case MDB_KEYEXIST:
		return -EEXIST;
	case MDB_MAP_FULL:
	case MDB_TXN_FULL:
		return -ENOSPC;
	case MDB_CORRUPTED:
	case MDB_PAGE_NOTFOUND:
	case MDB_INVALID:
	case MDB_VERSION_MISMATCH:
	case MDB_INCOMPATIBLE:
		return -EBADMSG;
	default:
		return rc > 0 ? -rc : -EIO;
	}
}
