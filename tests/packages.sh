#!/bin/bash
# packages.sh [BUILD] - makes the packages of a build folder (build/dev), for Debian and RPM, and checks them: what is
# in them, against `cmake --install`; configuration files, dependencies, symbols, scripts, and all that lintian knows;
# TAP on standard output. No package goes into the build folder.
set -euo pipefail

cd "$(dirname "$0")/.."
# shellcheck source=tests/tap.bash
. tests/tap.bash
build=${1:-build/dev}
work=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-packages.XXXXXX")
trap 'rm -rf "$work"' EXIT
names=(rmemfs rmemfs-server rmemfs-doc rmemfs-dbg)

complain() {
	echo "$*"
	return 1
}

# deb NAME: prints the path of its package.
deb() {
	printf '%s\n' "$work/packages/$1"_*.deb
}

# rpm_file NAME: the same.
rpm_file() {
	printf '%s\n' "$work/packages/$1"-[0-9]*.rpm
}

# The packages have the modes that policy asks for under any umask.
make_packages() {
	local name
	(
		umask 077
		cpack --config "$build/CPackConfig.cmake" -G "DEB;RPM" -B "$work/packages"
	) || return
	for name in "${names[@]}"; do
		dpkg-deb -x "$(deb "$name")" "$work/$name" || return
		dpkg-deb -e "$(deb "$name")" "$work/control.$name" || return
	done
	DESTDIR=$work/installed cmake --install "$build"
}

# entries FOLDER: type, mode, path and link of all that is in it, but for its own folders.
entries() {
	(cd "$1" && find . ! -type d -printf '%M %P %l\n' -o -empty -printf '%M %P\n') | sed 's/ *$//' | LC_ALL=C sort
}

# ---- what is in them -----------------------------------------------------------------------------

# The documents of rmemfs-doc are the rest of what is installed.
contents() {
	entries "$work/rmemfs" >"$work/found"
	diff - "$work/found" <<-END || return
		-rw-r--r-- etc/rmemfs/client.conf
		-rw-r--r-- usr/lib/modules-load.d/rmemfs.conf
		-rw-r--r-- usr/lib/systemd/system/rmemfs-metrics.service
		-rw-r--r-- usr/lib/systemd/system/rmemfs@.service
		-rw-r--r-- usr/lib/sysusers.d/rmemfs-mounts.conf
		-rw-r--r-- usr/lib/tmpfiles.d/rmemfs-mounts.conf
		-rw-r--r-- usr/share/bash-completion/completions/rmemfs
		-rw-r--r-- usr/share/doc/rmemfs/changelog.Debian.gz
		-rw-r--r-- usr/share/doc/rmemfs/changelog.gz
		-rw-r--r-- usr/share/doc/rmemfs/copyright
		-rw-r--r-- usr/share/doc/rmemfs/example.env
		-rw-r--r-- usr/share/lintian/overrides/rmemfs
		-rw-r--r-- usr/share/man/man5/rmemfs.conf.5.gz
		-rw-r--r-- usr/share/man/man7/rmemfs-guide.7.gz
		-rw-r--r-- usr/share/man/man8/rmemfs-metrics.8.gz
		-rw-r--r-- usr/share/man/man8/rmemfs.8.gz
		-rw-r--r-- usr/share/man/man8/rmemfsctl.8.gz
		-rw-r--r-- usr/share/zsh/vendor-completions/_rmemfs
		-rwxr-xr-x usr/bin/rmemfs-metrics
		-rwxr-xr-x usr/bin/rmemfsctl
		-rwxr-xr-x usr/sbin/rmemfs
		drwxr-x--- etc/rmemfs/keys
		drwxr-xr-x etc/rmemfs/mounts
		lrwxrwxrwx usr/sbin/mount.fuse.rmemfs rmemfs
		lrwxrwxrwx usr/sbin/mount.rmemfs rmemfs
		lrwxrwxrwx usr/share/bash-completion/completions/rmemfs-server rmemfs
		lrwxrwxrwx usr/share/bash-completion/completions/rmemfsctl rmemfs
		lrwxrwxrwx usr/share/man/man8/mount.fuse.rmemfs.8.gz rmemfs.8.gz
		lrwxrwxrwx usr/share/man/man8/mount.rmemfs.8.gz rmemfs.8.gz
	END
	entries "$work/rmemfs-server" >"$work/found"
	diff - "$work/found" <<-END || return
		-rw-r--r-- etc/rmemfs/server.conf
		-rw-r--r-- usr/lib/systemd/system/rmemfs-metrics.service.d/server.conf
		-rw-r--r-- usr/lib/systemd/system/rmemfs-server.service
		-rw-r--r-- usr/lib/sysusers.d/rmemfs.conf
		-rw-r--r-- usr/lib/tmpfiles.d/rmemfs.conf
		-rw-r--r-- usr/share/doc/rmemfs-server/changelog.Debian.gz
		-rw-r--r-- usr/share/doc/rmemfs-server/changelog.gz
		-rw-r--r-- usr/share/doc/rmemfs-server/copyright
		-rw-r--r-- usr/share/lintian/overrides/rmemfs-server
		-rw-r--r-- usr/share/man/man8/rmemfs-server.8.gz
		-rwxr-xr-x usr/sbin/rmemfs-server
		drwxr-xr-x etc/rmemfs/exports.d
	END
	only rmemfs-doc 'usr/share/doc/rmemfs' || return
	only rmemfs-dbg 'usr/lib/debug/.build-id'
}

# only NAME FOLDER: the package has nothing outside of it, but what each package has.
only() {
	entries "$work/$1" | grep -vE "^-rw-r--r-- ($2/|usr/share/doc/$1/|usr/share/lintian/overrides/$1$)" >"$work/found" || true
	[ ! -s "$work/found" ] || complain "$1 has more than $2: $(cat "$work/found")"
}

# dpkg refuses to unpack a file that another package has.
in_one_package() {
	local name
	for name in "${names[@]}"; do
		(cd "$work/$name" && find . ! -type d)
	done | sort | uniq -d >"$work/twice"
	[ ! -s "$work/twice" ] || complain "in two packages: $(cat "$work/twice")"
}

# unpacked FOLDER: all packages as one tree, without what only packages have.
unpacked() {
	local name page target
	mkdir "$1"
	for name in rmemfs rmemfs-server rmemfs-doc; do
		cp -a "$work/$name/." "$1"
		rm "$1/usr/share/doc/$name"/{copyright,changelog.gz,changelog.Debian.gz} "$1/usr/share/lintian/overrides/$name"
		rmdir --ignore-fail-on-non-empty "$1/usr/share/doc/$name"
	done
	rm -r "$1/usr/share/lintian"
	for page in "$1"/usr/share/man/man?/*.gz; do
		if [ -L "$page" ]; then
			target=$(readlink "$page")
			ln -s "${target%.gz}" "${page%.gz}"
			rm "$page"
		else
			gzip -d "$page"
		fi
	done
}

build_id() {
	readelf -n "$1" | sed -n 's/.*Build ID: //p'
}

programs=(usr/sbin/rmemfs usr/sbin/rmemfs-server usr/bin/rmemfsctl usr/bin/rmemfs-metrics)

# Places, names and arguments of the probes for tracers.
probes_of() {
	readelf -n "$1" | sed -n '/stapsdt/,$p'
}

# Programs differ in their symbols only.
as_installed() {
	local program
	unpacked "$work/unpacked"
	diff <(entries "$work/installed") <(entries "$work/unpacked") || return
	for program in "${programs[@]}"; do
		[ -n "$(build_id "$work/unpacked/$program")" ] &&
			[ "$(build_id "$work/unpacked/$program")" = "$(build_id "$work/installed/$program")" ] ||
			complain "$program is another build" || return
		diff <(probes_of "$work/installed/$program") <(probes_of "$work/unpacked/$program") || return
		rm "$work/unpacked/$program" "$work/installed/$program"
	done
	diff -r --no-dereference "$work/installed" "$work/unpacked"
}

# A debugger finds symbols by the build id.
symbols() {
	local program id
	for program in "${programs[@]}"; do
		id=$(build_id "$work/rmemfs/$program" 2>/dev/null || build_id "$work/rmemfs-server/$program")
		readelf -S "$work/rmemfs-dbg/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" | grep -q debug_info ||
			complain "$program has no symbols for $id" || return
	done
}

# ---- what dpkg is told ---------------------------------------------------------------------------

# dpkg keeps an administrator's changes of a conffile only.
conffiles() {
	local name
	for name in "${names[@]}"; do
		diff <(cat "$work/control.$name/conffiles" 2>/dev/null) \
			<(cd "$work/$name" && find etc -type f -printf '/%p\n' 2>/dev/null | sort) || return
	done
	cmp config/client.conf "$work/rmemfs/etc/rmemfs/client.conf" || return
	cmp config/server.conf "$work/rmemfs-server/etc/rmemfs/server.conf"
}

# depends NAME: the packages that it depends on, one per line.
depends() {
	dpkg-deb -f "$(deb "$1")" Depends | sed 's/, */\n/g'
}

# Each library comes from a package that the program's package depends on. The server's reload, and mounts on
# its own machine, need the other package in the same version.
dependencies() {
	local program name library owner version machine
	machine=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
	version=$(dpkg-deb -f "$(deb rmemfs)" Version)
	for program in "${programs[@]}"; do
		name=rmemfs
		[ -e "$work/rmemfs/$program" ] || name=rmemfs-server
		while read -r library; do
			owner=$(dpkg-query -S "*/$machine/$library" | sed -n '1s/:.*//p')
			grep -qE "^$owner( |$)" < <(depends "$name") ||
				complain "$name does not depend on $owner, which has $library" || return
		done < <(objdump -p "$work/$name/$program" | sed -n 's/^ *NEEDED *//p')
	done
	depends rmemfs-server | grep -qxF "rmemfs (= $version)" || complain "rmemfs-server: another rmemfs would do" || return
	depends rmemfs-server | grep -q 'systemd-sysusers' || complain "rmemfs-server: nothing makes its user"
}

# An upgrade of the system to the next release replaces the packages.
versions() {
	local name version='' next
	for name in "${names[@]}"; do
		version+=$(dpkg-deb -f "$(deb "$name")" Version)$'\n'
	done
	[ "$(printf %s "$version" | sort -u | wc -l)" -eq 1 ] || complain "versions differ: $version" || return
	version=${version%%$'\n'*}
	[[ $version == "$(sed -nE 's/^project\(.* VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)"-1~?* ]] ||
		complain "the version is $version" || return
	# shellcheck source=/dev/null
	next=$(. /etc/os-release && echo "${ID/debian/deb}$((${VERSION_ID%%.*} + 1))")
	dpkg --compare-versions "$version" lt "${version%~*}~$next"
}

# ---- maintainer scripts --------------------------------------------------------------------------

# script NAME SCRIPT [ARGUMENT]...: runs a copy of the script of the Debian package, or, if its name begins with %, of
# the RPM package, as under systemd. Files are in $work/system instead of their places. Commands are stand-ins that note their calls in $work/calls, and fail if $fails matches the call. The new
# version speaks wire version 8; the server's status has the versions of $spoken.
script() {
	local name=$1 script=$2 place places=''
	shift 2
	for place in /run/systemd/system /run/rmemfs-mounts /etc /dev/shm /var/lib /proc/self; do
		places+="s#(^|[ \"])$place#\1$work/system$place#g;"
	done
	mkdir -p "$work/system/run/systemd/system"
	if [[ $script == %* ]]; then
		rpm -qp --qf "%{${script#%}}\n" "$(rpm_file "$name")"
	else
		cat "$work/control.$name/$script"
	fi | sed -E "$places" >"$work/script"
	! sed "s#$work/system/##g" "$work/script" | grep -E '/(etc|dev/shm|var/lib|proc/self|run/(systemd|rmemfs-mounts))' ||
		complain "$name: $script would change this machine" || return
	: >"$work/calls"
	PATH=$work/stand-ins:$PATH calls=$work/calls fails=${fails:-none} spoken=${spoken:-8} sh "$work/script" "$@" >"$work/said" 2>&1 ||
		complain "$name: $script $* fails: $(cat "$work/said")"
}

stand_ins() {
	local command
	mkdir -p "$work/stand-ins"
	# shellcheck disable=SC2016 # the stand-in's
	for command in systemctl deb-systemd-invoke deb-systemd-helper systemd-sysusers systemd-tmpfiles modprobe \
		rmemfsctl rmemfs-server; do
		printf '%s\n' '#!/bin/bash' 'call="${0##*/} $*"' 'echo "$call" >>"$calls"' \
			'[[ $call != $fails ]] || exit' \
			'case $call in' \
			'"rmemfsctl status --json") printf "\"wire_version\": %s,\n" $spoken; echo "\"client\": \"web:/mnt (pid 1)\"," ;;' \
			'"rmemfs-server --version") echo "rmemfs-server 0.2.0 (wire protocol 8)" ;;' \
			'esac' >"$work/stand-ins/$command"
		chmod 755 "$work/stand-ins/$command"
	done
}

called() {
	grep -qE -e "$1" "$work/calls"
}

# metrics_follow COMMAND: after the manager knows the units, rmemfs-metrics gets the user of its new drop-in, if it runs.
metrics_follow() {
	[ "$(grep -E 'daemon-reload|metrics' "$work/calls" | tail -n 2 | sed 's/.*daemon-reload/reload/')" = \
		$'reload\n'"$1 try-restart rmemfs-metrics.service" ] ||
		complain "rmemfs-metrics keeps the user from before: $(cat "$work/calls")"
}

# begins WORD...: the installation says where to begin, with these words.
begins() {
	grep -q 'man rmemfs-guide' "$work/said" && grep -q -e "$*" "$work/said" ||
		complain "it does not say where to begin: $(cat "$work/said")"
}

# mount_here: a mount by hand, and a filesystem of another kind.
mount_here() {
	mkdir -p "$work/system/proc/self"
	cat >"$work/system/proc/self/mountinfo" <<-'END'
		22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw
		23 22 0:50 / /mnt/a\040b rw,nosuid shared:2 master:1 - fuse.rmemfs host:/data rw,user_id=0
	END
}

# named TEXT: the removal has said so.
named() {
	grep -qxF -e "$1" "$work/said" || complain "not named: $1: $(cat "$work/said")"
}

# Nothing is started; a server runs again after an upgrade, if its mounts can go on.
script_installs() {
	local fails spoken
	stand_ins
	fails='deb-systemd-helper --quiet was-enabled *'
	script rmemfs postinst configure && begins rmemfsctl doctor || return
	called '^systemd-sysusers rmemfs-mounts.conf' && called '^systemd-tmpfiles --create rmemfs-mounts.conf' ||
		complain "the installation of rmemfs lacks: $(cat "$work/calls")" || return
	script rmemfs-server postinst configure && begins --check-config || return
	called '^systemd-sysusers rmemfs.conf' && called '^systemd-tmpfiles --create rmemfs.conf' &&
		called '^systemctl .*daemon-reload' || complain "the installation lacks: $(cat "$work/calls")" || return
	! called 'invoke (re)?start|enable |restart rmemfs-server' ||
		complain "the installation starts or enables: $(cat "$work/calls")" || return
	metrics_follow 'deb-systemd-invoke' || return
	fails=none
	for spoken in '8' '8 8 7' '7'; do
		script rmemfs-server postinst configure 0.0.9-1 || return
		called '^deb-systemd-invoke try-restart rmemfs-server.service' ||
			complain "the old server goes on, with wire versions $spoken" || return
	done
	spoken='8 6 8'
	script rmemfs-server postinst configure 0.0.9-1 || return
	! called 'invoke.*-server' || complain "a mount of wire version 6 loses its server" || return
	grep -q 'rmemfsctl status shows them' "$work/said" || complain "not told: $(cat "$work/said")" || return
	spoken=8
	for fails in 'systemctl --quiet is-active *' 'rmemfsctl status *' 'rmemfs-server --check-config'; do
		script rmemfs-server postinst configure 0.0.9-1 || return
		! called 'invoke.*-server' || complain "the server is started again though this failed: $fails" || return
	done
	grep -q 'systemctl restart rmemfs-server' "$work/said" || complain "the remedy is missing: $(cat "$work/said")"
}

# The client's upgrade ends no mount, and neither does the server's before the new one is there.
script_upgrades() {
	local name
	stand_ins
	for name in rmemfs rmemfs-server; do
		script "$name" prerm upgrade 0.2.0-1 || return
		! called . || complain "$name: an upgrade begins with: $(cat "$work/calls")" || return
		script "$name" postrm upgrade 0.2.0-1 || return
		! called . || complain "$name: an upgrade goes on with: $(cat "$work/calls")" || return
	done
	script rmemfs postinst configure 0.0.9-1 || return
	! begins . >/dev/null || complain "an upgrade says where to begin" || return
	[ "$(grep invoke "$work/calls")" = "deb-systemd-invoke try-restart rmemfs-metrics.service" ] ||
		complain "rmemfs: an upgrade calls: $(cat "$work/calls")"
}

# Keys and files of exports.d go with a purge; memory and snapshots are named, and stay.
script_removals() {
	local system=$work/system
	stand_ins
	mkdir -p "$system"/etc/rmemfs/{keys,mounts,exports.d} "$system"/{dev/shm,var/lib}/rmemfs
	touch "$system"/etc/rmemfs/keys/web.key "$system/etc/rmemfs/exports.d/a.conf" "$system/dev/shm/rmemfs/region"
	mount_here
	script rmemfs-server prerm remove && named 'web:/mnt (pid 1)' &&
		called '^deb-systemd-invoke stop rmemfs-server.service' &&
		script rmemfs prerm remove && named '/mnt/a\040b' && called '^deb-systemd-invoke stop rmemfs@\*.service rmemfs-metrics.service' ||
		complain "not stopped by a removal: $(cat "$work/calls")" || return
	script rmemfs-server postrm remove && metrics_follow 'deb-systemd-invoke' && script rmemfs postrm remove || return
	[ -e "$system/etc/rmemfs/keys/web.key" ] && [ -e "$system/etc/rmemfs/exports.d/a.conf" ] ||
		complain "a removal takes keys or exports" || return
	script rmemfs-server postrm purge || return
	grep -q "rm -r .*/dev/shm/rmemfs" "$work/said" || complain "the purge is silent: $(cat "$work/said")" || return
	[ -e "$system/dev/shm/rmemfs/region" ] && [ ! -e "$system/var/lib/rmemfs" ] ||
		complain "the purge took files of exports, or left an empty folder" || return
	script rmemfs postrm purge || return
	[ ! -e "$system/etc/rmemfs" ] || complain "the purge left $(find "$system/etc/rmemfs")"
}

# ---- RPM -----------------------------------------------------------------------------------------

# rpm_entries NAME: mode, path and link of all that is in the package.
rpm_entries() {
	rpm -qp --qf '[%{FILEMODES:perms} %{FILENAMES} %{FILELINKTOS}\n]' "$(rpm_file "$1")" | sed -E 's, /, ,; s/ *$//'
}

# The same as in the Debian packages, but for the documents that Debian's policy asks for, and the license's place.
# They have no folder of another package's.
rpm_contents() {
	local name
	for name in rmemfs rmemfs-server rmemfs-doc; do
		rpm_entries "$name" | sed 's, usr/share/licenses/rmemfs/LICENSE$, usr/share/doc/rmemfs/copyright,' |
			grep -v '^d' | LC_ALL=C sort >"$work/found"
		diff <(entries "$work/$name" | grep -v '^d' |
			grep -vE "usr/share/(lintian/|doc/$name/changelog)|usr/share/doc/rmemfs-.*/copyright$") "$work/found" || return
		rpm_entries "$name" | grep '^d' | grep -vE ' (etc/rmemfs(/.*)?|.*/rmemfs.*)$' >"$work/found" || true
		[ ! -s "$work/found" ] || complain "$name has folders of others: $(cat "$work/found")" || return
	done
	rpm_entries rmemfs | grep -qxF 'drwxr-x--- etc/rmemfs/keys' || complain "all may read the keys' names" || return
	diff <(rpm_entries rmemfs-debuginfo | grep -o '[^/]*/[^/]*\.debug$' | sort) \
		<(cd "$work/rmemfs-dbg/usr/lib/debug/.build-id" && find . -name '*.debug' -printf '%P\n' | sort)
}

# An upgrade keeps an administrator's changes. All belongs to root.
rpm_metadata() {
	local name version
	version=$(sed -nE 's/^project\(.* VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)-1
	for name in rmemfs rmemfs-server rmemfs-doc rmemfs-debuginfo; do
		[ "$(rpm -qp --qf '%{VERSION}-%{RELEASE} %{LICENSE}' "$(rpm_file "$name")")" = "$version BSD-2-Clause" ] ||
			complain "$name: version or license" || return
		rpm -qp --qf '[%{FILEUSERNAME}:%{FILEGROUPNAME}\n]' "$(rpm_file "$name")" | sort -u | diff - <(echo root:root) ||
			return
		diff <(rpm -qp --qf '[%{FILEFLAGS:fflags} %{FILENAMES}\n]' "$(rpm_file "$name")" | sed -n 's/^cn //p') \
			<(cat "$work/control.$name/conffiles" 2>/dev/null) || return
	done
	rpm -qpR "$(rpm_file rmemfs-server)" | grep -qxF "rmemfs = $version" ||
		complain "rmemfs-server: another rmemfs would do" || return
	rpm -qpR "$(rpm_file rmemfs)" | grep -qxF fuse3 || complain "rmemfs: users can't mount"
}

# The numbers are of the versions that are there afterwards.
rpm_scripts() {
	local name spoken=8 fails=none system=$work/system
	stand_ins
	script rmemfs %POSTIN 1 && begins rmemfsctl doctor || return
	called '^systemd-sysusers rmemfs-mounts.conf' && called '^systemd-tmpfiles --create rmemfs-mounts.conf' ||
		complain "the installation of rmemfs lacks: $(cat "$work/calls")" || return
	script rmemfs-server %POSTIN 1 && begins --check-config || return
	called '^systemd-sysusers rmemfs.conf' && called '^systemd-tmpfiles --create rmemfs.conf' &&
		called '^systemctl daemon-reload' || complain "the installation lacks: $(cat "$work/calls")" || return
	! called ' start|enable |restart rmemfs-server' ||
		complain "the installation starts or enables: $(cat "$work/calls")" || return
	metrics_follow systemctl || return
	script rmemfs %POSTIN 2 && ! begins . >/dev/null && called '^systemctl try-restart rmemfs-metrics.service' ||
		complain "an upgrade leaves the old rmemfs-metrics: $(cat "$work/calls")" || return
	script rmemfs-server %POSTIN 2 && called '^systemctl try-restart rmemfs-server.service' ||
		complain "an upgrade leaves the old server: $(cat "$work/calls")" || return
	spoken='8 6'
	script rmemfs-server %POSTIN 2 || return
	! called 'try-restart .*-server' || complain "a mount of wire version 6 loses its server" || return
	for name in rmemfs rmemfs-server; do
		script "$name" %PREUN 1 && script "$name" %POSTUN 1 || return
		! called 'stop|disable' || complain "an upgrade ends what runs: $(cat "$work/calls")" || return
	done
	mount_here
	script rmemfs-server %PREUN 0 && named 'web:/mnt (pid 1)' &&
		called '^systemctl .*disable --now rmemfs-server.service' &&
		script rmemfs %PREUN 0 && named '/mnt/a\040b' && called '^systemctl stop rmemfs@\*.service' ||
		complain "not stopped by a removal: $(cat "$work/calls")" || return
	mkdir -p "$system"/etc/rmemfs/keys "$system/dev/shm/rmemfs"
	touch "$system/etc/rmemfs/keys/web.key" "$system/dev/shm/rmemfs/region"
	script rmemfs-server %POSTUN 0 && metrics_follow systemctl || return
	grep -q "rm -r .*/dev/shm/rmemfs" "$work/said" || complain "the removal is silent: $(cat "$work/said")" || return
	script rmemfs %POSTUN 0 || return
	[ -e "$system/etc/rmemfs/keys/web.key" ] && [ -e "$system/dev/shm/rmemfs/region" ] ||
		complain "a removal takes keys, or files of exports"
}

# With an error or a warning it fails; it shows the rest, too.
lint() {
	local debs=() name
	for name in "${names[@]}"; do
		debs+=("$(deb "$name")")
	done
	lintian --allow-root --fail-on error,warning "${debs[@]}"
}

check "packages are made" make_packages
[ "$failed" -eq 0 ] || check_end
check "what is in them" contents
check "each file is in one package" in_one_package
check "together they are what cmake --install installs" as_installed
check "symbols of the programs" symbols
check "configuration files" conffiles
check "dependencies" dependencies
check "versions" versions
check "installation: what the scripts do" script_installs
check "upgrade: what the scripts do" script_upgrades
check "removal and purge: what the scripts do" script_removals
check "RPM: what is in them" rpm_contents
check "RPM: versions, owners, configuration files, dependencies" rpm_metadata
check "RPM: installation, upgrade, removal: what the scripts do" rpm_scripts
check "lintian" lint
check_end
