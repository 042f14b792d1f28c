/* protection.c - see protection.h. */
#include "common/transport/protection.h"

const struct word protection_words[] = {
	{"best", PROTECTION_BEST},
	{"all", PROTECTION_ALL},
	{"messages", PROTECTION_MESSAGES},
	{0},
};

const char *protection_name(enum protection wanted)
{
	return protection_words[wanted].text;
}

bool protection_allows(
	enum protection wanted, enum transport_kind kind, enum channel_protection has)
{
	if (has == CHANNEL_ALL || has == CHANNEL_LOCAL)
		return true;
	switch (wanted) {
	case PROTECTION_BEST:
		return has == CHANNEL_PLAIN || kind == TRANSPORT_VERBS;
	case PROTECTION_ALL:
		return false;
	case PROTECTION_MESSAGES:
		return has == CHANNEL_MESSAGES;
	}
	return false;
}

bool protection_allows_kind(enum protection wanted, enum transport_kind kind)
{
	return wanted != PROTECTION_ALL || kind != TRANSPORT_VERBS;
}
