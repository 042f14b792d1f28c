#include "server/serve/changes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "common/rpc/rpc.h"

/* The rest of a message is for its header, and for what is around the list. */
enum { LIST_BYTES = RPC_MSG_BYTES - 256 };

/* False: there is no room or no memory for it. */
static bool append(struct changes *c, json_t *change)
{
	autofree char *text = change ? json_dumps(change, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) + 1 : 0;

	if (!c->list)
		c->list = json_array();
	if (!len || c->bytes + len > LIST_BYTES || json_array_append(c->list, change))
		return false;
	c->bytes += len;
	return true;
}

void changes_tell(struct changes *c, const char *export, const char *format, ...)
{
	char text[512];
	va_list args;
	json_t *change;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_event(LOG_LEVEL_NOTICE, &(struct log_fields){.event = "reload", .export = export}, "%s",
		text);
	change = json_pack("{s:s? s:s}", "export", export, "text", text);
	if (!append(c, change))
		c->unlisted++;
	json_decref(change);
}

char *changes_text(const struct changes *c)
{
	json_t *root = json_pack("{s:o s:i}", "changes",
		c->list ? json_incref(c->list) : json_array(), "unlisted", (int)c->unlisted);
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	return text;
}

void changes_fini(struct changes *c)
{
	json_decref(c->list);
	*c = (struct changes){0};
}
