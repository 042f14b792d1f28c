/* Secrets are covered, and all else stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/auth/auth_key.h"
#include "daemon/ctl/survey/redact.h"

#define SECRET "0sE89nwH9zEzWXYlRQCvpab6VpIkoqifrxLzD6dCImtODlil"

static void assert_redacted(const char *text, const char *expected)
{
	char copy[512];

	strcpy(copy, text);
	redact_text(copy, strlen(copy));
	assert_string_equal(copy, expected);
}

static void redact__a_key(void **state)
{
	assert_redacted("a\nkeys = \"RMEMFS-KEY-1:web:" SECRET ":\"\nb",
		"a\nkeys = \"RMEMFS-KEY-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\nb");
	assert_redacted("RMEMFS-KEY-1:w:abc", "RMEMFS-KEY-xxxxxxx");
	assert_redacted("RMEMFS-KEY-", "RMEMFS-KEY-");
}

/* Without the word before it, as after a line that was cut. */
static void redact__a_secret(void **state)
{
	char text[512] = "<" SECRET ">";

	redact_text(text, strlen(text));
	assert_null(strstr(text, "0sE8"));
	assert_int_equal(text[strlen(text) - 1], '>');
}

static void redact__each_key_that_is_made(void **state)
{
	char line[AUTH_KEY_LINE_MAX + 1], *secret;
	struct auth_key key;
	char why[256];

	for (int i = 0; i < 100; i++) {
		char copy[AUTH_KEY_LINE_MAX + 1];

		assert_int_equal(auth_key_generate("web", &key, why, sizeof(why)), 0);
		assert_int_equal(auth_key_format(&key, line), 0);
		secret = strchr(strchr(line, ':') + 1, ':') + 1;
		secret[strcspn(secret, ":")] = '\0';
		strcpy(copy, secret);
		redact_text(copy, strlen(copy));
		assert_int_equal(strspn(copy, "x"), strlen(secret));
		auth_key_clear(&key);
	}
}

/* One of 3,500 is so. */
static void redact__a_secret_without_a_digit(void **state)
{
	char secret[] = "QbWxYzAbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGhIjKlMnOp";

	redact_text(secret, strlen(secret));
	assert_int_equal(strspn(secret, "x"), strlen(secret));
}

static void redact__nothing_else(void **state)
{
	static const char *const texts[] = {"", "x",
		"/usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0",
		"3518c222dc3dadfe2c9cc2cebaa7334335 18c222dc3dadfe2c9cc2cebaa73343",
		"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"/var/lib/rmemfs/snapshots/of/a/very/long/name/without/a/capital",
		"key web-k7q2, fingerprint 0a1b2c3d"};

	for (unsigned i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_redacted(texts[i], texts[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(redact__a_key),
		cmocka_unit_test(redact__a_secret),
		cmocka_unit_test(redact__each_key_that_is_made),
		cmocka_unit_test(redact__a_secret_without_a_digit),
		cmocka_unit_test(redact__nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
