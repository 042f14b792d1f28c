/* protection.c - see protection.h. */
#include "common/transport/protection.h"

const struct word protection_words[] = {
	{"best", PROTECTION_BEST},
	{"all", PROTECTION_ALL},
	{0},
};

const char *protection_name(enum protection wanted)
{
	return protection_words[wanted].text;
}

bool protection_allows(enum protection wanted, enum channel_protection has)
{
	return wanted == PROTECTION_BEST || has == CHANNEL_ALL || has == CHANNEL_LOCAL;
}

bool protection_allows_kind(enum protection wanted, enum transport_kind kind)
{
	return wanted == PROTECTION_BEST || kind != TRANSPORT_VERBS;
}
