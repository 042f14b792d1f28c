/* html.h - writes HTML that is well-formed XML, too. All text that is put in is escaped: names come
 * from files, users and peers. */
#ifndef RMEMFS_DAEMON_METRICS_HTML_H
#define RMEMFS_DAEMON_METRICS_HTML_H

#include <stdio.h>

/* As fprintf(), of which it knows %s, %u and %% alone, without flags. The format is markup. A text
 * behind %s becomes text of an element, or of an attribute in quotes: characters that mean
 * something in either are escaped, and those that are not to be shown become '?' (printable.h). */
void html_put(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
