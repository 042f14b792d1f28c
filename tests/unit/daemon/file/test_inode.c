/* The client's knowledge of inodes while others are forgotten. */
#include "tests/unit/daemon/inode_table_fixture.h"
#include "daemon/file/inode_names.h"

enum { OTHER = 70, INO = 71, SIZE = 12345 };

static const struct attr file = {.ino = INO, .mode = S_IFREG | 0600, .nlink = 1, .size = SIZE};

/* An inode that this client has changed leaves the table. */
static void forget_changed(struct fs *fs)
{
	struct inode *inode = inode_get(fs, OTHER);

	inode_change_begin(inode);
	inode_change_end(inode, NULL);
	inode_put(inode);
}

static void inode_learn__refuses_what_is_older_than_a_forgotten_change(void **state)
{
	struct fs *fs = *state;
	uint64_t epoch = inode_epoch(fs);
	struct inode *inode;
	struct attr attr;

	forget_changed(fs);
	inode = inode_get(fs, INO);
	assert_false(inode_learn(inode, &file, epoch, NULL));
	assert_false(inode_attr(inode, &attr));
	assert_true(inode_learn(inode, &file, inode_epoch(fs), NULL));
	assert_true(inode_attr(inode, &attr));
	assert_int_equal(attr.size, SIZE);
	inode_put(inode);
}

static void inode_learn_new__takes_it_whatever_is_forgotten(void **state)
{
	struct fs *fs = *state;
	struct inode *inode = inode_get(fs, INO);
	struct attr attr;

	forget_changed(fs);
	inode_learn_new(inode, &file, inode_epoch(fs));
	assert_true(inode_attr(inode, &attr));
	assert_int_equal(attr.mode, file.mode);
	inode_put(inode);
}

static void inode_learn_new__leaves_what_is_known(void **state)
{
	struct fs *fs = *state;
	struct inode *inode = inode_get(fs, INO);
	struct attr newer = file, attr;

	newer.mode = S_IFREG | 0400;
	assert_true(inode_learn(inode, &newer, inode_epoch(fs), NULL));
	inode_learn_new(inode, &file, inode_epoch(fs));
	assert_true(inode_attr(inode, &attr));
	assert_int_equal(attr.mode, newer.mode);
	inode_put(inode);
}

/* ---- of a killed daemon ---------------------------------------------------------------------- */

/* As revive_adopt() makes them: the record tells the type alone. */
static struct inode *bare_inode(struct fs *fs, uint32_t type)
{
	struct inode *inode = inode_get(fs, INO);

	inode_set_type(inode, type);
	return inode;
}

/* It was never forgotten itself. */
static void inode_learn__of_a_bare_one__takes_it_whatever_is_forgotten(void **state)
{
	static const uint32_t types[] = {S_IFREG, S_IFDIR, S_IFLNK};
	struct fs *fs = *state;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct inode *inode = bare_inode(fs, types[i]);
		struct attr answer = file, seen, attr;
		uint64_t epoch = inode_epoch(fs);

		answer.mode = types[i] | 0600;
		answer.atime = 7;
		forget_changed(fs);
		assert_true(inode_learn(inode, &answer, epoch, &seen));
		assert_int_equal(seen.mode, answer.mode);
		assert_int_equal(seen.atime, 7);
		assert_true(inode_attr(inode, &attr));
		assert_int_equal(attr.atime, 7);
		inode_put(inode);
	}
}

/* The kernel would take a mode of 0 for the end of the inode. */
static void inode_learn__of_a_bare_one_while_it_changes__shows_the_answer(void **state)
{
	struct fs *fs = *state;
	struct inode *inode = bare_inode(fs, S_IFREG);
	const struct rpc_entry_reply entry = {.attr = file};
	struct attr seen = {0}, attr;

	inode_change_begin(inode);
	assert_true(inode_learn(inode, &file, inode_epoch(fs), &seen));
	assert_int_equal(seen.mode, file.mode);
	assert_true(inode_learn_entry(inode, &entry, inode_epoch(fs), &seen));
	assert_int_equal(seen.mode, file.mode);
	seen = (struct attr){0};
	inode_see(inode, &file, &seen);
	assert_int_equal(seen.mode, file.mode);
	assert_false(inode->sized);
	inode_change_end(inode, NULL);
	assert_false(inode_attr(inode, &attr));
	assert_true(inode_learn(inode, &file, inode_epoch(fs), NULL));
	assert_true(inode->sized);
	inode_put(inode);
}

/* Its UNLINK was answered while another change of it was on its way. A READ needs its size. */
static void inode_learn__of_a_bare_orphan__takes_it(void **state)
{
	struct fs *fs = *state;
	struct inode *inode = bare_inode(fs, S_IFREG);
	struct attr attr = file;

	attr.nlink = 0;
	inode->orphan = true;
	assert_true(inode_learn(inode, &attr, inode_epoch(fs), NULL));
	assert_true(inode->sized);
	inode_put(inode);
}

static const struct attr directory = {.ino = INO, .mode = S_IFDIR | 0700, .nlink = 2};

static void inode_names_lack__of_a_directory_that_is_new(void **state)
{
	struct fs *fs = *state;
	struct inode *inode = inode_get(fs, INO);

	assert_false(inode_names_lack(inode, "a"));
	inode_learn_new(inode, &directory, inode_epoch(fs));
	assert_true(inode_names_lack(inode, "a"));
	inode_names_add(inode, "a");
	assert_false(inode_names_lack(inode, "a"));
	assert_true(inode_names_lack(inode, "b"));
	inode_names_remove(inode, "a");
	assert_true(inode_names_lack(inode, "a"));
	inode_put(inode);
}

/* The answer about it came late: the inode was found meanwhile, and may have names. */
static void inode_names_lack__not_of_one_that_was_used_before(void **state)
{
	struct fs *fs = *state;
	uint64_t epoch = inode_epoch(fs);
	struct inode *inode = inode_get(fs, INO);

	assert_true(inode_learn(inode, &directory, epoch, NULL));
	inode_learn_new(inode, &directory, epoch);
	assert_false(inode_names_lack(inode, "a"));
	inode_put(inode);

	inode = inode_get(fs, INO);
	inode_change_begin(inode);
	inode_change_end(inode, NULL);
	inode_learn_new(inode, &directory, epoch);
	assert_false(inode_names_lack(inode, "a"));
	inode_put(inode);

	inode = inode_get(fs, INO);
	inode_learn_new(inode, &directory, epoch);
	assert_false(inode_names_lack(inode, "a"));
	inode_put(inode);
}

/* The access time of a directory is in flight, and set by hand meanwhile. The COMMIT that waits
 * behind it has nothing left to tell; the server would refuse it for a directory. */
static void commit_start__tells_nothing_where_nothing_is_left_to_tell(void **state)
{
	struct inode *inode = inode_get(*state, INO);
	struct commit *c = &inode->commit;

	c->running = true;
	c->call.req.commit.flags = COMMIT_ATIME;
	access_time_hold(inode);
	c->running = false;
	assert_false(commit_is_clean_locked(inode));
	commit_start(inode, NULL); /* with no thread to send by */
	assert_false(c->running);
	assert_true(commit_is_clean_locked(inode));
	access_time_release(inode, NULL);
	inode_put(inode);
}

/* A reply does not undo what was set here and is not committed; it updates the rest. */
static void inode_change_end__leaves_what_was_set_here(void **state)
{
	struct inode *inode = inode_get(*state, INO);
	struct attr reply = file, now;

	inode_learn_new(inode, &file, inode_epoch(*state));
	inode->attr.mode = S_IFREG | 0751;
	inode->attr.gid = 7;
	inode->commit.set = SET_MODE | SET_GID;
	reply.uid = 3;
	reply.nlink = 2;
	inode_change_begin(inode);
	inode_change_end(inode, &reply);
	assert_true(inode_attr(inode, &now));
	assert_int_equal(now.mode, S_IFREG | 0751);
	assert_int_equal(now.gid, 7);
	assert_int_equal(now.uid, 3);
	assert_int_equal(now.nlink, 2);
	inode->commit.set = 0;
	inode_change_begin(inode);
	inode_change_end(inode, &reply);
	assert_true(inode_attr(inode, &now));
	assert_int_equal(now.mode, file.mode);
	inode_put(inode);
}

/* The RENAME is answered after a later COMMIT, which has committed what was set. */
static void inode_change_names_end__leaves_what_was_committed_meanwhile(void **state)
{
	struct inode *inode = inode_get(*state, INO);
	struct attr reply = file, now;

	inode_learn_new(inode, &file, inode_epoch(*state));
	inode->attr.mode = S_IFREG | 0751;
	inode->attr.uid = 7;
	inode->attr.gid = 8;
	reply.nlink = 2;
	inode_change_begin(inode);
	inode_change_names_end(inode, &reply);
	assert_true(inode_attr(inode, &now));
	assert_int_equal(now.mode, S_IFREG | 0751);
	assert_int_equal(now.uid, 7);
	assert_int_equal(now.gid, 8);
	assert_int_equal(now.nlink, 2);
	inode_put(inode);
}

/* Attributes of a directory are set only by SETATTR; unknown ones are learned. */
static void inode_change_names_end__takes_all_else(void **state)
{
	struct inode *inode = inode_get(*state, INO);
	struct attr reply = {.ino = INO, .mode = S_IFDIR | 0700, .nlink = 2}, now;

	inode_change_begin(inode);
	inode_change_names_end(inode, &reply);
	assert_true(inode_attr(inode, &now));
	assert_int_equal(now.mode, S_IFDIR | 0700);
	reply.mode = S_IFDIR | 0750;
	inode_change_begin(inode);
	inode_change_names_end(inode, &reply);
	assert_true(inode_attr(inode, &now));
	assert_int_equal(now.mode, S_IFDIR | 0750);
	inode_put(inode);
}

/* One of two answers has capabilities: a write must remove them. */
static void inode_change_end__in_doubt_there_may_be_capabilities(void **state)
{
	struct inode *inode = inode_get(*state, INO);
	struct attr with = file;

	inode_learn_new(inode, &file, inode_epoch(*state));
	assert_false(inode_has_caps(inode));
	with.flags = ATTR_XATTRS | ATTR_CAPS;
	inode_change_begin(inode);
	inode_change_begin(inode);
	inode_change_end(inode, &with);
	inode_change_end(inode, &file);
	assert_true(inode_has_caps(inode));
	assert_true(inode_learn(inode, &file, inode_epoch(*state), NULL));
	assert_false(inode_has_caps(inode));
	inode_put(inode);
}

/* It comes between a LINK at the server and its answer here. */
static void inode_learn_entry__finds_the_name_of_a_nameless_one(void **state)
{
	struct fs *fs = *state;
	struct inode *inode = inode_get(fs, INO);
	struct rpc_entry_reply entry = {.attr = file};

	inode->orphan = inode->nameless = true;
	entry.attr.nlink = 0;
	assert_false(inode_learn_entry(inode, &entry, inode_epoch(fs), NULL));
	entry.attr.nlink = 1;
	assert_true(inode_learn_entry(inode, &entry, inode_epoch(fs), NULL));
	assert_false(inode->orphan);
	/* An inode that has lost its last name has no other. */
	inode->orphan = true;
	assert_false(inode_learn_entry(inode, &entry, inode_epoch(fs), NULL));
	inode_put(inode);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			inode_learn__refuses_what_is_older_than_a_forgotten_change,
			inode_table_setup, inode_table_teardown),
		cmocka_unit_test_setup_teardown(inode_learn_new__takes_it_whatever_is_forgotten,
			inode_table_setup, inode_table_teardown),
		cmocka_unit_test_setup_teardown(inode_learn_new__leaves_what_is_known,
			inode_table_setup, inode_table_teardown),
		cmocka_unit_test_setup_teardown(
			inode_learn__of_a_bare_one__takes_it_whatever_is_forgotten,
			inode_table_setup, inode_table_teardown),
		cmocka_unit_test_setup_teardown(
			inode_learn__of_a_bare_one_while_it_changes__shows_the_answer,
			inode_table_setup, inode_table_teardown),
		cmocka_unit_test_setup_teardown(inode_learn__of_a_bare_orphan__takes_it,
			inode_table_setup, inode_table_teardown),
		cmocka_unit_test_setup_teardown(inode_names_lack__of_a_directory_that_is_new,
			inode_table_setup, inode_table_teardown),
		cmocka_unit_test_setup_teardown(inode_names_lack__not_of_one_that_was_used_before,
			inode_table_setup, inode_table_teardown),
		cmocka_unit_test_setup_teardown(inode_learn_entry__finds_the_name_of_a_nameless_one,
			inode_table_setup, inode_table_teardown),
		cmocka_unit_test_setup_teardown(
			commit_start__tells_nothing_where_nothing_is_left_to_tell,
			inode_table_setup, inode_table_teardown),
		cmocka_unit_test_setup_teardown(inode_change_end__leaves_what_was_set_here,
			inode_table_setup, inode_table_teardown),
		cmocka_unit_test_setup_teardown(
			inode_change_names_end__leaves_what_was_committed_meanwhile,
			inode_table_setup, inode_table_teardown),
		cmocka_unit_test_setup_teardown(inode_change_names_end__takes_all_else,
			inode_table_setup, inode_table_teardown),
		cmocka_unit_test_setup_teardown(
			inode_change_end__in_doubt_there_may_be_capabilities, inode_table_setup,
			inode_table_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
