#include "common/base/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
/* The place in our source says nothing to users. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>
#include <unistd.h>

#include "common/base/printable.h"
#include "common/base/util.h"

/* A longer value is cut. */
enum { VALUE_BYTES = 2048, FIELDS = 10 /* below */ };

struct entry {
	char text[FIELDS][VALUE_BYTES];
	struct iovec iov[FIELDS];
	int n;
};

static void add(struct entry *e, const char *name, const char *value)
{
	char *text = e->text[e->n];

	if (!value)
		return;
	snprintf(text, VALUE_BYTES, "%s=%s", name, value);
	printable_clean_string(text);
	e->iov[e->n++] = (struct iovec){text, strlen(text)};
}

static void add_number(struct entry *e, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	add(e, name, text);
}

int journal_send(const char *program, enum log_level level, const char *text,
	const struct log_fields *fields)
{
	struct entry e = {.n = 0};

	/* sd_journal_sendv() would tell of success. */
	if (access("/run/systemd/journal/socket", W_OK) != 0)
		return -ENOENT;
	add(&e, "MESSAGE", text);
	add_number(&e, "PRIORITY", level);
	add(&e, "SYSLOG_IDENTIFIER", program);
	add(&e, "RMEMFS_EVENT", fields->event);
	add(&e, "RMEMFS_EXPORT", fields->export);
	add(&e, "RMEMFS_HOLDER", fields->holder);
	add(&e, "RMEMFS_KEY", fields->key);
	add(&e, "RMEMFS_PEER", fields->peer);
	add(&e, "RMEMFS_REASON", fields->reason);
	if (fields->session)
		add_number(&e, "RMEMFS_SESSION", fields->session);
	return sd_journal_sendv(e.iov, e.n);
}
