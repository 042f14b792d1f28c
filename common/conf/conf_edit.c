/* conf_edit.c - see conf_edit.h. It knows libconfig's grammar as far as it needs: settings, groups,
 * lists, and scalars, which stay as they are written. */
#include "common/conf/conf_edit.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/util.h"

enum { DEPTH_MAX = 16 };

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_STRING, TOKEN_MARK };

struct token {
	enum token_kind kind;
	const char *begin, *end;
};

struct edit {
	const struct conf_place *place;
	struct token token;      /* the one that is looked at */
	const char *begin, *end; /* of the value that was sought; NULL: not found yet */
};

/* ---- tokens ---------------------------------------------------------------------------------- */

static const char *skip_blank(const char *p)
{
	for (;;) {
		p += strspn(p, " \t\r\n\f\v");
		if (*p == '#' || (p[0] == '/' && p[1] == '/')) {
			p += strcspn(p, "\n");
		} else if (p[0] == '/' && p[1] == '*') {
			const char *end = strstr(p + 2, "*/");

			p = end ? end + 2 : p + strlen(p);
		} else {
			return p;
		}
	}
}

static const char *string_end(const char *p)
{
	for (p++; *p && *p != '"'; p++)
		if (*p == '\\' && p[1])
			p++;
	return *p ? p + 1 : p;
}

static void advance(struct edit *e)
{
	const char *p = skip_blank(e->token.end), *end = p;

	while (isalnum((unsigned char)*end) || (*end && strchr("_-*.+", *end)))
		end++;
	if (end > p)
		e->token = (struct token){TOKEN_WORD, p, end};
	else if (*p == '"')
		e->token = (struct token){TOKEN_STRING, p, string_end(p)};
	else
		e->token = (struct token){*p ? TOKEN_MARK : TOKEN_END, p, *p ? p + 1 : p};
}

static bool is_mark(const struct edit *e, const char *marks)
{
	return e->token.kind == TOKEN_MARK && strchr(marks, *e->token.begin);
}

static bool take_mark(struct edit *e, const char *marks)
{
	if (!is_mark(e, marks))
		return false;
	advance(e);
	return true;
}

static bool is_text(const struct token *t, const char *text, size_t len)
{
	return len == strlen(text) && memcmp(t->begin, text, len) == 0;
}

static bool is_word(const struct token *t, const char *text)
{
	return t->kind == TOKEN_WORD && is_text(t, text, (size_t)(t->end - t->begin));
}

/* Without escapes, which names have not. */
static bool is_string(const struct token *t, const char *text)
{
	const struct token inner = {TOKEN_STRING, t->begin + 1, t->end - 1};

	return t->kind == TOKEN_STRING && t->end - t->begin >= 2 &&
	       is_text(&inner, text, (size_t)(inner.end - inner.begin));
}

/* ---- values ---------------------------------------------------------------------------------- */

static int skip_value(struct edit *e, unsigned depth);

/* NAME = VALUE; *name: its name. The value is next. */
static int take_name(struct edit *e, struct token *name)
{
	*name = e->token;
	if (name->kind != TOKEN_WORD)
		return -EINVAL;
	advance(e);
	return take_mark(e, "=:") ? 0 : -EINVAL;
}

/* Neighbouring strings are one. */
static void skip_scalar(struct edit *e, const char **end)
{
	enum token_kind kind = e->token.kind;

	do {
		*end = e->token.end;
		advance(e);
	} while (kind == TOKEN_STRING && e->token.kind == TOKEN_STRING);
}

static int skip_group(struct edit *e, unsigned depth)
{
	struct token name;
	int err = 0;

	while (!err && !take_mark(e, "}")) {
		err = take_name(e, &name);
		if (!err)
			err = skip_value(e, depth);
		take_mark(e, ";,");
	}
	return err;
}

static int skip_list(struct edit *e, const char *close, unsigned depth)
{
	int err = 0;

	while (!err && !take_mark(e, close)) {
		err = skip_value(e, depth);
		take_mark(e, ",");
	}
	return err;
}

static int skip_value(struct edit *e, unsigned depth)
{
	const char *end;

	if (!depth)
		return -EINVAL;
	if (take_mark(e, "{"))
		return skip_group(e, depth - 1);
	if (take_mark(e, "("))
		return skip_list(e, ")", depth - 1);
	if (take_mark(e, "["))
		return skip_list(e, "]", depth - 1);
	if (e->token.kind != TOKEN_WORD && e->token.kind != TOKEN_STRING)
		return -EINVAL;
	skip_scalar(e, &end);
	return 0;
}

/* ---- the place ------------------------------------------------------------------------------- */

/* A group of the list, from behind its brace on. */
static int search_group(struct edit *e)
{
	const char *begin = NULL, *end = NULL;
	bool found = false;
	int err = 0;

	while (!err && !take_mark(e, "}")) {
		struct token name, value;

		err = take_name(e, &name);
		if (err)
			break;
		value = e->token;
		found |= is_word(&name, e->place->id_key) && is_string(&value, e->place->id);
		if (is_word(&name, e->place->key) && value.kind != TOKEN_MARK &&
			value.kind != TOKEN_END) {
			begin = value.begin;
			skip_scalar(e, &end);
		} else {
			err = skip_value(e, DEPTH_MAX);
		}
		take_mark(e, ";,");
	}
	if (found && begin && !e->begin) {
		e->begin = begin;
		e->end = end;
	}
	return err;
}

static int search_list(struct edit *e)
{
	int err = 0;

	while (!err && !take_mark(e, ")")) {
		err = take_mark(e, "{") ? search_group(e) : skip_value(e, DEPTH_MAX);
		take_mark(e, ",");
	}
	return err;
}

static int search(struct edit *e)
{
	struct token name;
	int err = 0;

	advance(e);
	while (!err && e->token.kind != TOKEN_END) {
		err = take_name(e, &name);
		if (err)
			break;
		if (is_word(&name, e->place->list) && take_mark(e, "("))
			err = search_list(e);
		else
			err = skip_value(e, DEPTH_MAX);
		take_mark(e, ";,");
	}
	return err;
}

int conf_edit(const char *text, const struct conf_place *place, const char *value, char **out)
{
	struct edit e = {.place = place, .token = {TOKEN_WORD, text, text}};
	int err = search(&e);

	if (err)
		return err;
	if (!e.begin)
		return -ENOENT;
	return asprintf(out, "%.*s\"%s\"%s", (int)(e.begin - text), text, value, e.end) < 0
		       ? -ENOMEM
		       : 0;
}
