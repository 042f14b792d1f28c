/* written.h - text that a module of rmemfs-metrics has written to a stream, and whether it is
 * well-formed XML. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *written;
static size_t written_len;
static FILE *written_to;

/* Begins a new text. */
static inline FILE *write_anew(void)
{
	free(written);
	written = NULL;
	written_to = open_memstream(&written, &written_len);
	assert_non_null(written_to);
	return written_to;
}

static inline const char *end_writing(void)
{
	assert_int_equal(fclose(written_to), 0);
	return written;
}

static inline int drop_written(void **state)
{
	free(written);
	written = NULL;
	return 0;
}

static inline void assert_says(const char *part)
{
	if (!strstr(written, part))
		fail_msg("no '%s' in\n%s", part, written);
}

static inline void assert_says_not(const char *part)
{
	if (strstr(written, part))
		fail_msg("'%s' in\n%s", part, written);
}

/* ---- XML ------------------------------------------------------------------------------------- */

enum { XML_DEPTH = 32 };

/* One of the five entities of XML, or a number. */
static inline bool is_entity(const char *at)
{
	static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};

	for (unsigned i = 0; i < 5; i++)
		if (strncmp(at, entities[i], strlen(entities[i])) == 0)
			return true;
	return false;
}

/* NAME="VALUE"...; returns what is behind them. */
static inline const char *skip_attributes(const char *at)
{
	while (isspace((unsigned char)*at)) {
		at += strspn(at, " \n\t");
		at += strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789");
		if (strncmp(at, "=\"", 2) != 0)
			return at;
		for (at += 2; *at && *at != '"'; at++)
			if (*at == '<' || (*at == '&' && !is_entity(at)))
				fail_msg("an attribute has '%.20s'", at);
		at += *at == '"';
	}
	return at;
}

/* Elements are closed in the order of their depth, attributes are in quotes, and no text has a
 * character that would be markup. */
static inline void assert_well_formed(const char *text)
{
	char open[XML_DEPTH][32], name[32];
	unsigned depth = 0;

	if (strncmp(text, "<!DOCTYPE html>", 15) == 0)
		text += 15;
	for (const char *at = text; *at; at++) {
		bool closes = at[1] == '/';
		int len = 0;

		if (*at == '&' && !is_entity(at))
			fail_msg("text has '%.20s'", at);
		if (*at != '<')
			continue;
		if (sscanf(at + 1 + closes, "%31[a-zA-Z0-9]%n", name, &len) != 1)
			fail_msg("no element: '%.20s'", at);
		at += 1 + closes + len;
		if (closes) {
			if (!depth || strcmp(open[--depth], name) != 0)
				fail_msg("</%s> closes <%s>", name, depth ? open[depth] : "");
			assert_int_equal(*at, '>');
			continue;
		}
		at = skip_attributes(at);
		if (strncmp(at, "/>", 2) == 0) {
			at++;
			continue;
		}
		if (*at != '>')
			fail_msg("<%s has '%.20s'", name, at);
		assert_true(depth < XML_DEPTH);
		strcpy(open[depth++], name);
	}
	if (depth)
		fail_msg("<%s> is not closed", open[depth - 1]);
}
