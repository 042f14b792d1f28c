#include "daemon/ctl/doctor/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "common/base/log.h"
#include "common/base/util.h"
#include "daemon/ctl/doctor/procfile.h"

/* ---- modules --------------------------------------------------------------------------------- */

static void judge_module(
	bool there, enum verdict without, const char *name, const char *cause, struct report *r)
{
	if (there)
		return;
	report_found(r, without, "the kernel's module %s is not loaded", name);
	report_cause(r, "%s", cause);
	report_remedy(r, "modprobe %s; at each boot: echo %s >/etc/modules-load.d/%s.conf", name,
		name, name);
}

/* The packages load it at each boot. Nothing helps where the kernel has none, so that is a note. */
static void judge_tls(const struct kernel_modules *modules, struct report *r)
{
	if (modules->tls)
		return;
	report_found(r, modules->no_tls ? VERDICT_NOTE : VERDICT_WARNING,
		modules->no_tls ? "this kernel has no module tls"
				: "the kernel's module tls is not loaded");
	report_cause(r, "without it the programs encrypt over tcp themselves, which is slower");
	if (!modules->no_tls)
		report_remedy(r, "modprobe tls; /usr/lib/modules-load.d/rmemfs.conf does it at "
				 "each boot");
}

void kernel_judge_modules(const struct kernel_modules *modules, struct report *r)
{
	unsigned first = r->n;

	judge_module(modules->fuse, VERDICT_FAILURE, "fuse", "each mount needs it", r);
	judge_tls(modules, r);
	if (modules->rdma) {
		judge_module(modules->verbs, VERDICT_FAILURE, "ib_uverbs",
			"programs reach an RDMA device by it", r);
		judge_module(modules->cm, VERDICT_FAILURE, "rdma_ucm",
			"connections over verbs are made by it", r);
	}
	if (r->n == first)
		report_found(r, VERDICT_OK, "fuse and tls%s are loaded",
			modules->rdma ? ", ib_uverbs and rdma_ucm" : "");
}

/* Whether one of the parts between separators is this text. */
static bool lists(const char *path, const char *text, const char *separators)
{
	char all[8192], *save;

	procfile_text(path, all, sizeof(all));
	for (char *at = strtok_r(all, separators, &save); at;
		at = strtok_r(NULL, separators, &save))
		if (strcmp(at, text) == 0)
			return true;
	return false;
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

/* Whether a list of this kernel's modules, "kernel/net/tls/tls.ko.xz: ...", has it. Without lists
 * nobody knows. */
static bool lacks_tls(void)
{
	struct utsname name;
	char path[128], line[1024];
	bool lacks = false;
	FILE *f;

	if (uname(&name) != 0)
		return false;
	snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", name.release);
	f = fopen(path, "re");
	if (!f)
		return false;
	for (lacks = true; lacks && fgets(line, sizeof(line), f);)
		lacks = !strstr(line, "/tls.ko");
	fclose(f);
	return lacks;
}

void kernel_check_modules(struct doctor *d)
{
	const struct kernel_modules modules = {
		.fuse = lists("/proc/filesystems", "fuse", " \t\n"),
		.tls = lists("/proc/sys/net/ipv4/tcp_available_ulp", "tls", " \n"),
		.rdma = procfile_entries("/sys/class/infiniband") > 0,
		.verbs = exists("/sys/class/infiniband_verbs"),
		.cm = exists("/sys/class/misc/rdma_cm") || exists("/dev/infiniband/rdma_cm"),
		.no_tls = lacks_tls(),
	};

	kernel_judge_modules(&modules, &d->report);
}

/* ---- /dev/fuse ------------------------------------------------------------------------------- */

void kernel_judge_fuse(const struct kernel_fuse *fuse, struct report *r)
{
	if (!fuse->err) {
		bool all = (fuse->mode & 0006) == 0006;

		report_found(r, VERDICT_OK, "this user can open /dev/fuse; its mode is %04o: %s",
			fuse->mode & 07777u, all ? "all users can mount" : "not all users can");
		return;
	}
	report_found(
		r, VERDICT_FAILURE, "this user can't open /dev/fuse: %s", errno_text(fuse->err));
	if (!fuse->there || fuse->err == -ENODEV || fuse->err == -ENXIO) {
		report_cause(r,
			"the kernel's module fuse is not loaded, or this container lacks the "
			"device");
		report_remedy(r, "modprobe fuse; for a container: --device /dev/fuse");
	} else if (fuse->err == -EACCES) {
		report_cause(r, "its mode is %04o", fuse->mode & 07777u);
		report_remedy(r, "chmod 666 /dev/fuse, as the rules of package fuse3 do");
	} else {
		report_cause(r, "the control group of this container or unit forbids it");
		report_remedy(r, "for a container: --device /dev/fuse; in a unit: "
				 "DeviceAllow=/dev/fuse rw");
	}
}

void kernel_check_fuse(struct doctor *d)
{
	autoclose int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	struct kernel_fuse fuse = {.err = fd < 0 ? -errno : 0, .user = geteuid()};
	struct stat st;

	fuse.there = stat("/dev/fuse", &st) == 0;
	fuse.mode = fuse.there ? st.st_mode : 0;
	kernel_judge_fuse(&fuse, &d->report);
}

/* ---- fusermount3 ----------------------------------------------------------------------------- */

void kernel_judge_fusermount(const struct kernel_fusermount *fusermount, struct report *r)
{
	const char *others = fusermount->allow_other ? "may" : "may not";

	if (fusermount->path[0] && fusermount->set_user_id) {
		report_found(r, VERDICT_OK,
			"%s: users other than root can mount; they %s use allow_other "
			"(/etc/fuse.conf)",
			fusermount->path, others);
		return;
	}
	/* Root mounts without it. */
	if (!fusermount->path[0]) {
		report_found(r, fusermount->user ? VERDICT_FAILURE : VERDICT_NOTE,
			"fusermount3 is not installed: only root can mount");
		report_cause(r, "neither /usr/bin nor /usr/local/bin has it");
		report_remedy(r, "apt-get install fuse3");
		return;
	}
	report_found(r, fusermount->user ? VERDICT_FAILURE : VERDICT_NOTE,
		"%s is not set-user-id root: only root can mount", fusermount->path);
	report_cause(r, "its owner or mode was changed");
	report_remedy(r, "chown root %s; chmod 4755 %s", fusermount->path, fusermount->path);
}

static bool find_program(const char *name, char path[PATH_MAX])
{
	static const char *const places[] = {"/usr/bin", "/bin", "/usr/local/bin"};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(path, PATH_MAX, "%s/%s", places[i], name);
		if (access(path, X_OK) == 0)
			return true;
	}
	path[0] = '\0';
	return false;
}

void kernel_check_fusermount(struct doctor *d)
{
	struct kernel_fusermount fusermount = {
		.allow_other = lists("/etc/fuse.conf", "user_allow_other", "\n"),
		.user = geteuid()};
	struct stat st;

	if (find_program("fusermount3", fusermount.path) && stat(fusermount.path, &st) == 0)
		fusermount.set_user_id = st.st_uid == 0 && (st.st_mode & S_ISUID);
	kernel_judge_fusermount(&fusermount, &d->report);
}
