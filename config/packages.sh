# shellcheck shell=bash disable=SC2034
# packages.sh - Debian packages for the quick start and the tests; sourced. Installs only missing
# packages, and keeps the services in them from starting.

PACKAGES_BUILD=(gcc libc6-dev cmake ninja-build pkg-config libibverbs-dev librdmacm-dev libfuse3-dev
	libconfig-dev libssl-dev liblmdb-dev libxxhash-dev libjansson-dev libsystemd-dev libseccomp-dev libmicrohttpd-dev
	systemtap-sdt-dev)
# ibverbs-providers: the devices' drivers; without them no RDMA device is found.
PACKAGES_RUN=(fuse3 ibverbs-providers)

packages_missing() {
	local package installed
	installed=$(dpkg-query -W -f='${Package}=${db:Status-Status}\n' "$@" 2>/dev/null) || true
	for package in "$@"; do
		[[ $'\n'$installed$'\n' == *$'\n'"$package=installed"$'\n'* ]] || echo "$package"
	done
}

# Debian asks /usr/sbin/policy-rc.d before it starts a service; 101 forbids it. An existing file is
# put back afterwards.
packages_install_quietly() {
	local policy=/usr/sbin/policy-rc.d kept='' status=0
	if [ -e $policy ] || [ -L $policy ]; then
		kept=$policy.rmemfs-kept
		mv -f $policy $kept
	fi
	printf '#!/bin/sh\nexit 101\n' >$policy
	chmod 755 $policy
	apt-get -q -y --no-install-recommends install "$@" || status=$?
	rm -f $policy
	[ -z "$kept" ] || mv -f $kept $policy
	return $status
}

# packages_install PACKAGE...: installs those that are missing.
packages_install() {
	local missing log
	mapfile -t missing < <(packages_missing "$@")
	[ ${#missing[@]} -gt 0 ] || return 0
	echo "installing ${missing[*]}"
	if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
		echo "can't install them: that takes root and apt-get" >&2
		return 1
	fi
	log=$(mktemp)
	if (
		export DEBIAN_FRONTEND=noninteractive
		apt-get -q update && packages_install_quietly "${missing[@]}"
	) </dev/null >"$log" 2>&1; then
		rm -f "$log"
	else
		cat "$log" >&2
		rm -f "$log"
		echo "installing packages failed" >&2
		return 1
	fi
}
