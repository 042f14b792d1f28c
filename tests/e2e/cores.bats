#!/usr/bin/env bats
# cores.bats - core dumps of both programs hold no key and no bytes of files.
bats_require_minimum_version 1.5.0

# gcore(1) leaves out what the kernel does: by coredump_filter and MADV_DONTDUMP. A sanitizer's heap is its
# own.
# bats file_tags=unsanitized

# shellcheck disable=SC2154 # what helpers set
load helpers

setup() {
	setup_rmem
	# Sixteen random bytes, over and over, without an end.
	pattern=$(head -c 16 /dev/urandom | hex)
}

teardown() {
	rm -f "$mnt/on"
	[ -z "${load:-}" ] || wait "$load" || true
	teardown_rmem
}

patterned() {
	perl -e '$p = pack("H*", $ARGV[0]) x 65536; print $p for 1 .. $ARGV[1]' "$pattern" "$1"
}

# holds HEX: the last core's memory has these bytes. Registers are no memory: the CPU copies by them.
holds() {
	# shellcheck disable=SC2016 # perl's variables
	perl -e '
		my ($file, $hex) = @ARGV;
		my $bytes = pack("H*", $hex);
		open(my $f, "<:raw", $file) or die;
		read($f, my $head, 64);
		my ($at, $n) = (unpack("x32 Q", $head), unpack("x56 S", $head));
		for my $i (0 .. $n - 1) {
			seek($f, $at + 56 * $i, 0);
			read($f, my $segment, 56);
			my ($type, $from, $address, $len) = unpack("L x4 Q Q x8 Q", $segment);
			next if $type != 1;
			seek($f, $from, 0);
			read($f, my $memory, $len);
			my $place = index($memory, $bytes);
			next if $place < 0;
			printf "%s is in %x of %s\n", $hex, $address + $place, $file;
			exit 0;
		}
		exit 1' "$core" "$1"
}

# dump PID NAME
dump() {
	gcore -o "$dir/$2" "$1" >"$dir/gcore.log" 2>&1 3>&- || {
		cat "$dir/gcore.log"
		return 1
	}
	core=$dir/$2.$1
	[ "$(head -c 4 "$core")" = $'\x7fELF' ]
}

hex() {
	od -An -v -tx1 | tr -d ' \n'
}

# core_is_clean TEXT: the last core has the text, as memory of other kinds is there, and no secret.
core_is_clean() {
	local line
	holds "$(printf %s "$1" | hex)" >/dev/null
	run ! holds "$pattern"
	[ -n "$key_file" ] || return 0
	line=$(cut -d: -f3 "$key_file")
	run ! holds "$(printf %s "$line" | hex)"
	run ! holds "$(base64 -d <<<"$line" | head -c 32 | hex)"
}

@test "core dumps under load hold neither keys nor bytes of files" {
	local snapshot
	start_server
	mount_rmem
	patterned 24 >"$dir/data"
	cp "$dir/data" "$mnt/data"
	touch "$mnt/on"
	while [ -e "$mnt/on" ]; do
		dd if="$dir/data" of="$mnt/copy" bs=64k conv=fsync oflag=direct status=none
		dd if="$mnt/copy" of=/dev/null bs=1M iflag=direct status=none
		cmp "$dir/data" "$mnt/copy"
	done 3>&- &
	load=$!
	until_true 20 test -s "$mnt/copy"
	rmemfsctl snapshot default "$dir/image" "$socket" >/dev/null 3>&- &
	snapshot=$!
	dump "$daemon_pid" daemon
	core_is_clean "$mnt"
	dump "$server_pid" server
	core_is_clean "$memory"
	rm "$mnt/on"
	wait "$load"
	wait "$snapshot"
}
