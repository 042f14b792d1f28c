/* test_changes.c - what a reload tells of its changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/rpc/rpc.h"
#include "server/serve/changes.h"

static struct changes changes;

static void assert_text(const char *expected)
{
	char *text = changes_text(&changes);

	assert_string_equal(text, expected);
	free(text);
}

static void text__of_nothing(void **state)
{
	assert_text("{\"changes\":[],\"unlisted\":0}");
	changes_fini(&changes);
}

static void text__has_each_in_its_order(void **state)
{
	changes_tell(&changes, NULL, "%d keys", 2);
	changes_tell(&changes, "b", "export '%s' is added", "b");
	assert_text("{\"changes\":[{\"export\":null,\"text\":\"2 keys\"},"
		    "{\"export\":\"b\",\"text\":\"export 'b' is added\"}],\"unlisted\":0}");
	changes_fini(&changes);
	assert_text("{\"changes\":[],\"unlisted\":0}");
}

/* However many there are, with characters that JSON escapes, the answer is one message. */
static void text__of_many_fits_into_a_message(void **state)
{
	char quotes[300], *text;
	json_t *root;

	memset(quotes, '"', sizeof(quotes) - 1);
	quotes[sizeof(quotes) - 1] = '\0';
	for (unsigned i = 0; i < 1000; i++)
		changes_tell(&changes, "a", "%u %s", i, i % 2 ? quotes : "x");
	text = changes_text(&changes);
	root = json_loads(text, 0, NULL);
	assert_true(strlen(text) > RPC_MSG_BYTES / 2);
	assert_true(strlen(text) + rpc_reply_tail_at(RPC_RELOAD, wire_version()) <= RPC_MSG_BYTES);
	assert_int_equal(json_array_size(json_object_get(root, "changes")) +
				 json_integer_value(json_object_get(root, "unlisted")),
		1000);
	json_decref(root);
	free(text);
	changes_fini(&changes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text__of_nothing),
		cmocka_unit_test(text__has_each_in_its_order),
		cmocka_unit_test(text__of_many_fits_into_a_message),
	};

	log_init("test", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
