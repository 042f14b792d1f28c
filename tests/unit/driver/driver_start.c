/* driver_start.c - conditions in which a server starts, and those in which it refuses to. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/base/types.h"
#include "common/base/util.h"
#include "tests/unit/own_mounts.h"
#include "tests/unit/driver/client.h"
#include "tests/unit/driver/driver.h"
#include "tests/unit/emulated.h"

static struct test_server server;
static struct rpc_client client;

static struct rpc_str str(const char *s)
{
	return (struct rpc_str){s, (uint16_t)strlen(s)};
}

static void start__second_server_on_a_directory_is_refused(void **state)
{
	server_refuses(&server, server.export, "is in use by another server");
}

static void start__directory_that_others_can_change_is_refused(void **state)
{
	server_stop(&server);
	assert_int_equal(chmod(server.memory, 0777), 0);
	server_refuses(&server, server.export, "everybody can write");
	assert_int_equal(chmod(server.memory, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(server.memory, 12345, 0), 0);
		server_refuses(&server, server.export, "belongs to user 12345");
		assert_int_equal(chown(server.memory, 0, 0), 0);
	}
	server_start(&server);
}

/* 32 GiB are more than any machine has set aside. */
static void start__too_few_huge_pages_are_named(void **state)
{
	char regions[128];

	if (geteuid() != 0) {
		print_message("only root may mount hugetlbfs\n");
		return;
	}
	snprintf(regions, sizeof(regions), "%s/regions", server.memory);
	server_stop(&server);
	/* The mount is in this process's own namespace, so it ends with the process at the
	 * latest. */
	assert_true(own_mounts());
	assert_int_equal(mount("none", regions, "hugetlbfs", 0, NULL), 0);
	server_refuses(&server, "default:32GiB", "huge pages (vm.nr_hugepages)");
	assert_int_equal(umount(regions), 0);
	server_start(&server);
}

/* Returns the KiB of the server's memory that are mapped by huge pages. */
static unsigned long long huge_kib(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%d/smaps_rollup", server.pid);
	f = fopen(line, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "ShmemPmdMapped: %llu kB", &kib) == 1)
			break;
	fclose(f);
	return kib;
}

/* If the kernel gives no huge pages, the server runs with small ones. */
static void start__kernel_without_huge_pages_is_no_obstacle(void **state)
{
	skip_if_emulated();
	assert_false(server_logged(&server, "not all regions are on huge pages"));
	assert_int_equal(huge_kib(), 64 << 10);
	server_stop(&server);
	assert_int_equal(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
	snprintf(server.export, sizeof(server.export), "default:96MiB");
	server_start(&server);
	assert_int_equal(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
	server_logs(&server, "not all regions are on huge pages");
}

static void start__part_of_a_region_more_or_less_is_refused_and_harms_nothing(void **state)
{
	struct rpc_request mkdir = {.op = RPC_MKDIR,
		.create = {.parent = ROOT_INO, .mode = S_IFDIR | 0755, .name = str("kept")}};
	struct rpc_request lookup = {.op = RPC_LOOKUP, .name = {ROOT_INO, str("kept")}};
	struct rpc_reply rep;

	client_init(&client, &server, "owner", 1);
	client_begin(&client);
	assert_int_equal(client_call(&client, 0, &mkdir, &rep), 0);
	client_drop(&client);
	server_stop(&server);
	server_refuses(&server, "default:80MiB", "64MiB");
	server_refuses(&server, "default:48MiB", "64MiB");
	server_start(&server);
	client_resume(&client);
	assert_int_equal(client_call(&client, 0, &lookup, &rep), 0);
	client_fini(&client);
}

/* ---- a reload ----------------------------------------------------------------------------------
 */

static void resize(unsigned mib)
{
	server.mib = mib;
	server_configure(&server, "");
	server_reload(&server);
}

static uint64_t total_pages(void)
{
	struct rpc_request req = {.op = RPC_STATFS};
	struct rpc_reply rep;

	assert_int_equal(client_call(&client, 0, &req, &rep), 0);
	return rep.statfs.pages;
}

/* The first page of a grant of all that is free. ngrant 0: nothing is. */
static struct rpc_grant_reply take_all(void)
{
	struct rpc_request req = {.op = RPC_GRANT, .grant = {UINT32_MAX, false}};
	struct rpc_reply rep;
	int status = client_call(&client, 0, &req, &rep);

	if (status == -ENOSPC)
		return (struct rpc_grant_reply){0};
	assert_int_equal(status, 0);
	return rep.grant;
}

static void same_page(uint32_t region, uint64_t offset)
{
	uint8_t bytes[PAGE_BYTES];

	memset(client.memory, 0xa7, PAGE_BYTES);
	memcpy(bytes, client.memory, PAGE_BYTES);
	assert_int_equal(client_transfer(&client, IO_WRITE, region, offset, PAGE_BYTES), 0);
	memset(client.memory, 0, PAGE_BYTES);
	assert_int_equal(client_transfer(&client, IO_READ, region, offset, PAGE_BYTES), 0);
	assert_memory_equal(client.memory, bytes, PAGE_BYTES);
}

/* The channel stays, and gets the keys that it lacks when it asks. */
static void reload__with_a_larger_size_lets_the_export_grow(void **state)
{
	struct rpc_grant_reply grant;
	const struct extent *e = &grant.grant[0];

	server_stop(&server);
	server_configure(&server, "");
	server_start(&server);
	client_init(&client, &server, "owner", 1);
	client_begin(&client);
	client_regions(&client);
	assert_int_equal(client_transfer(&client, IO_READ, 1, 0, PAGE_BYTES), 0);
	while (take_all().ngrant)
		;
	resize(128);
	server_logs(&server, "export 'default' has grown by 64MiB, to 128MiB");
	assert_int_equal(total_pages() * PAGE_BYTES, 128 << 20);
	grant = take_all();
	assert_true(grant.ngrant && e->region >= 2);
	assert_int_equal(client_transfer(&client, IO_READ, e->region, 0, PAGE_BYTES), -EINVAL);
	client.attached.nregions = 4;
	client_regions(&client);
	same_page(e->region, (uint64_t)e->page * PAGE_BYTES);
	same_page(3, (32 << 20) - PAGE_BYTES);
	/* Others are refused, and nothing is lost by it. */
	resize(96);
	server_logs(&server, "it can't be made smaller while it is served");
	resize(150);
	server_logs(&server, "it can have 128MiB or 160MiB, by whole regions of 32MiB");
	assert_int_equal(total_pages() * PAGE_BYTES, 128 << 20);
	server_kill(&server);
	client_drop(&client);
	server.mib = 128;
	server_configure(&server, "");
	server_start(&server);
	client_resume(&client);
	assert_int_equal(client.attached.nregions, 4);
	client_regions(&client);
	assert_int_equal(total_pages() * PAGE_BYTES, 128 << 20);
	same_page(e->region, (uint64_t)e->page * PAGE_BYTES);
	client_fini(&client);
}

static int set_up(void **state)
{
	server_init(&server, driver_kind);
	return 0;
}

static int tear_down(void **state)
{
	server_fini(&server);
	return 0;
}

int driver_run_start(void)
{
#define START_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		START_TEST(start__second_server_on_a_directory_is_refused),
		START_TEST(start__directory_that_others_can_change_is_refused),
		START_TEST(start__too_few_huge_pages_are_named),
		START_TEST(start__kernel_without_huge_pages_is_no_obstacle),
		START_TEST(start__part_of_a_region_more_or_less_is_refused_and_harms_nothing),
		START_TEST(reload__with_a_larger_size_lets_the_export_grow),
	};

	return cmocka_run_group_tests_name("start", tests, NULL, NULL);
}
