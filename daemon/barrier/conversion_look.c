/* conversion_look.c - what the admin is told of conversions; see conversion.h. */
#include "common/base/clock.h"
#include "daemon/barrier/conversion.h"
#include "daemon/kcache/kernel_pages.h"
#include "daemon/op/fs_parts.h"

/* The server asks each second, as long as another mount waits. */
enum { KEEPS_OUT_MS = 3000 };

void conversion_look(struct fs *fs, struct conversion_view *view)
{
	struct conversion *c = fs->conversion;
	int64_t kept_ms = atomic_load(&c->kept_out_ms);

	*view = (struct conversion_view){
		.nbegun = atomic_load(&c->nbegun),
		.nended = atomic_load(&c->nended),
		.under_way = conversion_is_under_way(fs),
	};
	if (kept_ms && now_ms() - kept_ms < KEEPS_OUT_MS)
		view->nkeep_out = kernel_pages_writers(fs);
}

void conversion_note_renewal(struct fs *fs)
{
	if (!atomic_load(&fs->sharing))
		atomic_fetch_add(&fs->conversion->nbegun, 1);
}
