#include "daemon/ops/change_here.h"

#include <errno.h>
#include <inttypes.h>

#include "common/base/log.h"
#include "daemon/file/inode.h"
#include "daemon/file/inode_return.h"
#include "daemon/lease/local_answer.h"
#include "daemon/op/fs_parts.h"

enum { REFUSED_LOG_MS = 1000, REFUSED_LOG_BURST = 20 };

/* Nothing that is known of the directory is believed any more. */
static void doubt_directory(struct inode *dir, const char *name, int status)
{
	pthread_mutex_lock(&dir->lock);
	dir->attr_valid = false;
	dir->names_error = status;
	dir_names_forget(&dir->names, &dir->fs->inodes->names);
	pthread_mutex_unlock(&dir->lock);
	local_answer_forget_name(dir, name);
}

static void doubt_inode(struct inode *inode, bool has_lost_name)
{
	pthread_mutex_lock(&inode->lock);
	if (has_lost_name) {
		inode->orphan = inode->returned = false;
		inode->commit.ended = NULL;
	}
	inode->attr_valid = false;
	dir_names_forget(&inode->names, &inode->fs->inodes->names);
	pthread_mutex_unlock(&inode->lock);
}

/* The session's end is no refusal of the server's, and is logged as such. */
static void log_refused(const struct inode *inode, const struct name_change *one, int status)
{
	static const char *const what[][2] = {
		[NAME_REMOVE] = {"remove", "removed"},
		[NAME_MKDIR] = {"make", "made"},
		[NAME_MOVE] = {"rename", "renamed"},
		[NAME_SET] = {"change", "changed"},
		[NAME_SYMLINK] = {"make", "made"},
		[NAME_LINK] = {"link", "linked"},
	};
	static struct log_ratelimit limit = {.burst = REFUSED_LOG_BURST};

	if (log_ratelimit_ok(&limit, REFUSED_LOG_MS))
		log_error("server %s: it did not %s inode %" PRIu64 ", which a program has %s: %s",
			session_server(inode->fs->session), what[one->kind][0], inode->ino,
			what[one->kind][1], errno_text(status));
}

static void doubt_set(struct inode *inode, struct inode *teller, int status)
{
	pthread_mutex_lock(&inode->lock);
	inode->attr_valid = false;
	pthread_mutex_unlock(&inode->lock);
	if (!teller)
		teller = inode;
	pthread_mutex_lock(&teller->lock);
	teller->names_error = status;
	pthread_mutex_unlock(&teller->lock);
}

static void refused(struct inode *inode, const struct name_change *one, int status)
{
	log_refused(inode, one, status);
	if (one->kind == NAME_SET) {
		doubt_set(inode, one->teller, status);
		return;
	}
	doubt_inode(inode, one->kind == NAME_REMOVE);
	if (one->replaced)
		doubt_inode(one->replaced, true);
	doubt_directory(one->dir, one->name, status);
	if (one->new_dir)
		doubt_directory(one->new_dir, one->text, status);
}

const struct name_hooks change_here_hooks = {
	.gives_up_locked = inode_return_gives_up_locked,
	.settle = inode_return_settle_removed,
	.refused = refused,
};
