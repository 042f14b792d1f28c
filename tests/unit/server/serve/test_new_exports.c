/* test_new_exports.c - a thread makes the memory of exports that come, and takes it back. */
#include "tests/unit/server/serve_fixture.h"

#include <fcntl.h>
#include <pthread.h>

#include "common/base/log.h"

enum { REGION_BYTES = 2 << 20, NREGIONS = 16 };

static char name[] = "more";
static struct export_config export = {.name = name, .size = NREGIONS * REGION_BYTES};

static int set_up(void **state)
{
	serve_set_up(state, &export, REGION_BYTES);
	config.metadata_reserve *= 2;
	assert_int_equal(new_exports_plan(&new, &export, why, sizeof(why)), 0);
	return 0;
}

static int tear_down(void **state)
{
	serve_drop();
	return serve_tear_down(state);
}

static unsigned files(void)
{
	return serve_files(name);
}

static off_t store_bytes(void)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/store.mdb", fx.dir);
	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static void begin(void)
{
	assert_int_equal(new_exports_begin(&new, why, sizeof(why)), 0);
}

static void make__waits_for_the_caller(void **state)
{
	struct export *made;

	begin();
	serve_wait_for(NEW_EXPORTS_MADE);
	assert_int_equal(files(), NREGIONS);
	made = new.exports.v[0];
	new.exports.n = 0;
	assert_int_equal(store_grow(fx.m->store, &new.growth), 0);
	new_exports_settle(&new);
	serve_wait_for(NEW_EXPORTS_ENDED);
	assert_int_equal(new_exports_end(&new, why, sizeof(why)), 0);
	assert_int_equal(files(), NREGIONS);
	assert_int_equal(store_bytes(), config.metadata_reserve);
	export_discard_new(made);
	export_delete(made);
}

/* The thread does it, and tells when it is done. */
static void settle__takes_back_what_nobody_took(void **state)
{
	off_t before = store_bytes();

	begin();
	serve_wait_for(NEW_EXPORTS_MADE);
	assert_int_equal(store_bytes(), config.metadata_reserve);
	new_exports_settle(&new);
	serve_wait_for(NEW_EXPORTS_ENDED);
	assert_int_equal(files(), 0);
	assert_int_equal(store_bytes(), before);
	assert_int_equal(new.exports.n, 0);
	assert_int_equal(new_exports_end(&new, why, sizeof(why)), 0);
}

/* Not before the caller says so: it may still be refused. */
static void settle__frees_what_was_removed(void **state)
{
	begin();
	serve_wait_for(NEW_EXPORTS_MADE);
	assert_int_equal(exports_reserve(&new.gone, 1), 0);
	exports_append(&new.gone, new.exports.v[0]);
	new.exports.n = 0;
	assert_int_equal(files(), NREGIONS);
	new_exports_settle(&new);
	serve_wait_for(NEW_EXPORTS_ENDED);
	assert_int_equal(files(), 0);
	assert_int_equal(new.gone.n, 0);
	assert_int_equal(new_exports_end(&new, why, sizeof(why)), 0);
}

static void drop__in_any_state_leaves_nothing(void **state)
{
	begin();
	serve_wait_for(NEW_EXPORTS_MADE);
	new_exports_drop(&new);
	assert_int_equal(files(), 0);
	assert_int_equal(new_exports_plan(&new, &export, why, sizeof(why)), 0);
	begin();
	new_exports_drop(&new);
	assert_int_equal(files(), 0);
}

static void make_file(const char *file)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fx.dir, file);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "old", 3), 3);
	close(fd);
}

static void unlink_file(const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", fx.dir, file);
	unlink(path);
}

/* Standard error is a pipe without room: a thread that logs stands still there. */
static void hold_log(int ends[2], int *stderr_fd)
{
	char page[PAGE_BYTES] = {0};

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	while (write(ends[1], page, sizeof(page)) > 0)
		;
	assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
	*stderr_fd = dup(STDERR_FILENO);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
}

static void release_log(const int ends[2], int stderr_fd)
{
	char page[PAGE_BYTES];

	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	close(ends[1]);
	assert_true(read(ends[0], page, sizeof(page)) > 0);
	/* The line may still be on its way: without a reader it would be a SIGPIPE. */
	serve_wait_for(NEW_EXPORTS_ENDED);
	close(ends[0]);
}

/* The thread comes no further than to the line about the file that it removes. */
static void cancel__ends_the_work(void **state)
{
	int ends[2], stderr_fd;

	make_file("more.0000");
	hold_log(ends, &stderr_fd);
	begin();
	new_exports_cancel(&new);
	release_log(ends, stderr_fd);
	assert_int_equal(new_exports_end(&new, why, sizeof(why)), -ECANCELED);
	assert_string_equal(why, "the server is stopping");
	unlink_file("more.0000");
	assert_int_equal(files(), 0);
}

static void make__removes_files_of_a_killed_server(void **state)
{
	/* Not from the first one on: that was removed before the kill. */
	make_file("more.0003");
	make_file("more.0040");
	begin();
	serve_wait_for(NEW_EXPORTS_MADE);
	assert_int_equal(files(), NREGIONS);
	assert_true(new.exports.v[0]->regions[3]->made);
}

/* Its sessions and files are those of an earlier run. */
static void plan__what_the_store_has_takes_a_start(void **state)
{
	static char known[] = "default";
	const struct export_config stored = {.name = known, .size = REGION_BYTES};

	assert_int_equal(new_exports_plan(&new, &stored, why, sizeof(why)), -EEXIST);
	assert_non_null(strstr(why, "export 'default' is in "));
	assert_non_null(strstr(why, "write it into the configuration and restart the server"));
	assert_int_equal(new.exports.n, 1);
}

static void *log_other(void *arg)
{
	log_error("of another thread");
	return NULL;
}

static void fail__tells_its_own_reason(void **state)
{
	pthread_t thread;
	char path[128];

	snprintf(path, sizeof(path), "%s/gone", fx.dir);
	snprintf(server.dir.regions, sizeof(server.dir.regions), "%s", path);
	begin();
	assert_int_equal(pthread_create(&thread, NULL, log_other, NULL), 0);
	pthread_join(thread, NULL);
	serve_wait_for(NEW_EXPORTS_ENDED);
	assert_int_equal(new_exports_end(&new, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "can't read "));
}

/* A folder is where the second export is to have a file. */
static void fail__takes_back_what_was_made_before(void **state)
{
	static char second[] = "second";
	const struct export_config next = {.name = second, .size = REGION_BYTES};
	off_t before = store_bytes();
	char path[128];

	snprintf(path, sizeof(path), "%s/second.0000", fx.dir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(new_exports_plan(&new, &next, why, sizeof(why)), 0);
	begin();
	serve_wait_for(NEW_EXPORTS_ENDED);
	assert_int_equal(new_exports_end(&new, why, sizeof(why)), -EISDIR);
	assert_non_null(strstr(why, "second.0000: Is a directory"));
	assert_int_equal(files(), 0);
	assert_int_equal(new.exports.n, 0);
	assert_int_equal(store_bytes(), before);
	assert_int_equal(rmdir(path), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(make__waits_for_the_caller),
		TEST(settle__takes_back_what_nobody_took),
		TEST(settle__frees_what_was_removed),
		TEST(drop__in_any_state_leaves_nothing),
		TEST(cancel__ends_the_work),
		TEST(make__removes_files_of_a_killed_server),
		TEST(plan__what_the_store_has_takes_a_start),
		TEST(fail__tells_its_own_reason),
		TEST(fail__takes_back_what_was_made_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
