#include "server/base/squash_text.h"

#include <inttypes.h>
#include <stdio.h>

const struct word squash_text_words[] = {
	{"none", SQUASH_NONE},
	{"root", SQUASH_ROOT},
	{"all", SQUASH_ALL},
	{0},
};

const char *squash_text_kind(const struct squash *squash)
{
	return squash_text_words[squash->kind].text;
}

const char *squash_text_note(const struct squash *squash, char buf[SQUASH_TEXT_BYTES])
{
	buf[0] = '\0';
	if (squash->kind != SQUASH_NONE)
		snprintf(buf, SQUASH_TEXT_BYTES, "%s as %" PRIu32 ":%" PRIu32,
			squash->kind == SQUASH_ROOT ? "root counts" : "all users count",
			squash->anonuid, squash->anongid);
	return buf;
}
