/* conf_text.h - reads the text of a configuration file and refuses what libconfig would misread.
 *
 * libconfig's scanner (1.5) silently cuts an integer without L to 32 bits. It takes the text before
 * a NUL for the whole file. It ends the process on a read error, which a directory gives. An
 * @include would bring in unchecked text and is refused.
 *
 * OWNERSHIP  The text is malloced; the caller frees it.
 * ERRORS     0, or -errno with a line in why: from open(2) and read(2), -EFBIG, -EINVAL.
 */
#ifndef RMEMFS_COMMON_CONF_CONF_TEXT_H
#define RMEMFS_COMMON_CONF_CONF_TEXT_H

#include <stddef.h>

int conf_text_load(const char *path, char **text, char *why, size_t whylen);

#endif
