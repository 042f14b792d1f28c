#include "daemon/metrics/html.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "common/base/printable.h"

static const char *escape_of(uint32_t code)
{
	switch (code) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

/* U+FFFE and U+FFFF are no characters of XML. */
static void put_text(FILE *out, const char *text)
{
	size_t len = strlen(text);

	while (len) {
		struct printable_char c = printable_char(text, len);
		const char *escape = escape_of(c.code);

		if (c.bad || c.code == 0xfffe || c.code == 0xffff)
			fputc('?', out);
		else if (escape)
			fputs(escape, out);
		else
			fwrite(text, 1, c.len, out);
		text += c.len;
		len -= c.len;
	}
}

void html_put(FILE *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	for (; *format; format++) {
		if (*format != '%') {
			fputc(*format, out);
			continue;
		}
		format++;
		assert(*format == 's' || *format == 'u' || *format == '%');
		if (*format == 's')
			put_text(out, va_arg(args, const char *));
		else if (*format == 'u')
			fprintf(out, "%u", va_arg(args, unsigned));
		else
			fputc('%', out);
	}
	va_end(args);
}
