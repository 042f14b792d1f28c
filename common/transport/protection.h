/* protection.h - how much of what passes on the network has to be protected: the word that an
 * export has, and a mount.
 *
 *     best       as much as the transport can: all over tcp, messages over verbs. Without a key:
 *                nothing
 *     all        all bytes, or no channel. Verbs can't give that
 *     messages   messages at least. Over tcp no more, if both sides say so: for networks that
 *                encrypt by themselves. A mount asks for it (channel_ask_messages_only), and an
 *                export that says something else refuses it, so that the mount connects again
 *                without
 *
 * Each side refuses a channel that its own word does not allow, whatever the other side says. A
 * mount's request for less is in both hellos, and the keys of the channel are bound to these:
 * nobody between can make or drop it. Over shm no byte leaves the machine, which every word allows.
 *
 * THREADS    Any.
 */
#ifndef RMEMFS_COMMON_TRANSPORT_PROTECTION_H
#define RMEMFS_COMMON_TRANSPORT_PROTECTION_H

#include <stdbool.h>

#include "common/base/word.h"
#include "common/transport/transport.h"

enum protection { PROTECTION_BEST, PROTECTION_ALL, PROTECTION_MESSAGES };

/* "best", "all", "messages". */
extern const struct word protection_words[];
const char *protection_name(enum protection wanted);

/* Whether a channel of this kind that has this protection is enough. */
bool protection_allows(
	enum protection wanted, enum transport_kind kind, enum channel_protection has);
/* Whether a channel of this kind could be enough, if its peers prove a key. */
bool protection_allows_kind(enum protection wanted, enum transport_kind kind);

#endif
