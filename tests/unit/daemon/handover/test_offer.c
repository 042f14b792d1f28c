/* The first message of a mount's daemon to a new one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/handover/offer.h"

static struct offer offer, got;
static uint8_t data[OFFER_BYTES_MAX + 1];
static size_t len;

static int setup(void **state)
{
	struct sockaddr_in *in = (void *)&offer.address.addr;

	offer = (struct offer){
		.version = "1.2",
		.argc = 3,
		.argv = {"rmemfs", "host:/x", "/mnt"},
		.mountpoint = "/mnt",
		.connection = 47,
		.io_threads = 2,
		.read_only = true,
		.address = {.kind = TRANSPORT_TCP, .addrlen = sizeof(*in)},
		.verbs = {true, 120000, 90000, "protection"},
		.notify = "/run/systemd/notify",
		.unit = "rmemfs@x.service",
		.limit_ms = 180000,
	};
	*in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(7470)};
	return offer_put(&offer, data, sizeof(data), &len);
}

static void get__what_was_put(void **state)
{
	assert_int_equal(offer_get(data, len, &got), 0);
	assert_string_equal(got.version, "1.2");
	assert_int_equal(got.argc, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(got.argv[i], offer.argv[i]);
	assert_null(got.argv[3]);
	assert_string_equal(got.mountpoint, "/mnt");
	assert_int_equal(got.connection, 47);
	assert_int_equal(got.io_threads, 2);
	assert_true(got.read_only);
	assert_int_equal(got.address.kind, TRANSPORT_TCP);
	assert_int_equal(got.address.addrlen, sizeof(struct sockaddr_in));
	assert_memory_equal(&got.address.addr, &offer.address.addr, sizeof(struct sockaddr_in));
	assert_true(got.verbs.refused);
	assert_int_equal(got.verbs.penalty_ms, 120000);
	assert_int_equal(got.verbs.again_ms, 90000);
	assert_string_equal(got.verbs.why, "protection");
	assert_string_equal(got.notify, offer.notify);
	assert_string_equal(got.unit, offer.unit);
	assert_int_equal(got.limit_ms, 180000);
}

static void get__cut_or_longer__is_refused(void **state)
{
	for (size_t n = 0; n < len; n++) {
		uint8_t *copy = malloc(n + 1); /* of that length, for asan */

		memcpy(copy, data, n);
		assert_int_equal(offer_get(copy, n, &got), -EPROTO);
		free(copy);
	}
	assert_int_equal(offer_get(data, len + 1, &got), -EPROTO);
}

static void get__of_another_version__names_it(void **state)
{
	data[0]++;
	assert_int_equal(offer_get(data, len, &got), -EPROTONOSUPPORT);
	assert_string_equal(got.version, "1.2");
}

static int put_and_get(void)
{
	int err = offer_put(&offer, data, sizeof(data), &len);

	return err ? err : offer_get(data, len, &got);
}

static void get__values_out_of_range__is_refused(void **state)
{
	offer.argc = 0;
	assert_int_equal(put_and_get(), -EPROTO);
	setup(state);
	offer.io_threads = 17;
	assert_int_equal(put_and_get(), -EPROTO);
	offer.io_threads = 0;
	assert_int_equal(put_and_get(), -EPROTO);
	setup(state);
	offer.connection = 0;
	assert_int_equal(put_and_get(), -EPROTO);
	setup(state);
	offer.address.kind = (enum transport_kind)3;
	assert_int_equal(put_and_get(), -EPROTO);
}

static void get__a_string_with_a_nul__is_refused(void **state)
{
	uint8_t *at = memmem(data, len, "/mnt", 4);

	at[2] = '\0';
	assert_int_equal(offer_get(data, len, &got), -EPROTO);
}

/* Of verbs there is room for the longest reason, and no more. */
static void get__a_reason_that_is_too_long__is_refused(void **state)
{
	char *why = offer.verbs.why;
	uint8_t *at;

	memset(why, 'y', sizeof(offer.verbs.why) - 1);
	assert_int_equal(put_and_get(), 0);
	assert_string_equal(got.verbs.why, why);
	/* The byte behind the reason becomes a part of it. */
	at = memmem(data, len, why, sizeof(offer.verbs.why) - 1);
	at[-2] = 0x00; /* 512, the lower byte first */
	at[-1] = 0x02;
	at[sizeof(offer.verbs.why) - 1] = 'y';
	assert_int_equal(offer_get(data, len, &got), -EPROTO);
}

static void put__what_is_too_long__is_refused(void **state)
{
	static char text[60000];

	memset(text, 'x', sizeof(text) - 1);
	offer.argv[1] = offer.argv[2] = text;
	assert_int_equal(offer_put(&offer, data, OFFER_BYTES_MAX, &len), -EMSGSIZE);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup(test, setup)
	const struct CMUnitTest tests[] = {
		CASE(get__what_was_put),
		CASE(get__cut_or_longer__is_refused),
		CASE(get__of_another_version__names_it),
		CASE(get__values_out_of_range__is_refused),
		CASE(get__a_string_with_a_nul__is_refused),
		CASE(get__a_reason_that_is_too_long__is_refused),
		CASE(put__what_is_too_long__is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
