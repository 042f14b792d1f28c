# shellcheck shell=bash disable=SC2034,SC2154 # what helpers and mounts have
# wire.bash - mounts that reach the server over tcp, each by a wire of its own from a network namespace. A
# wire can be cut, or hold what the mount sends.
#
#     wires N... ; start_server "${listens[@]}" ; mount_number N ... ; wire_cut N ... ; wires_end
#
# Some kernels lack netem; a token bucket without tokens does the same.

listens=() wires=()

# Prints the address of one end of a wire, in the test's own network, 10.100 to 10.139.
wire_address() {
	echo "10.$((100 + (port - 20000) / 256)).$((port % 256)).$((4 * $1 + $2))"
}

wire_space() {
	echo "rmemfs-$port-$1"
}

# wire_device N END: prints the device at the server's end (s) or at the mount's (m).
wire_device() {
	echo "rw$port-$1$2"
}

wires() {
	local n
	for n in "$@"; do
		ip netns add "$(wire_space "$n")"
		wires+=("$n")
		ip link add "$(wire_device "$n" s)" type veth peer name "$(wire_device "$n" m)" \
			netns "$(wire_space "$n")"
		ip addr add "$(wire_address "$n" 1)/30" dev "$(wire_device "$n" s)"
		ip link set "$(wire_device "$n" s)" up
		ip -n "$(wire_space "$n")" addr add "$(wire_address "$n" 2)/30" dev "$(wire_device "$n" m)"
		ip -n "$(wire_space "$n")" link set "$(wire_device "$n" m)" up
		within[n]="nsenter --net=/run/netns/$(wire_space "$n")"
		source_of[n]="$(wire_address "$n" 1):/default"
		listens+=(--listen "tcp:$(wire_address "$n" 1):$port")
	done
}

wires_end() {
	local n
	for n in "${wires[@]}"; do
		ip netns del "$(wire_space "$n")"
	done
}

# Changes the queue at the mount's end.
wire_qdisc() {
	local n=$1
	shift
	tc -n "$(wire_space "$n")" qdisc "$1" dev "$(wire_device "$n" m)" root "${@:2}"
}

# No packet passes either way: even the shortest is longer than the bucket.
wire_cut() {
	wire_qdisc "$1" replace tbf rate 8kbit burst 10 limit 10
	tc qdisc replace dev "$(wire_device "$1" s)" root tbf rate 8kbit burst 10 limit 10
}

wire_mend() {
	wire_qdisc "$1" del
	tc qdisc del dev "$(wire_device "$1" s)" root
}

# A few packets pass, so that a request begins; the next one passes only after a minute.
wire_hold() {
	wire_qdisc "$1" replace tbf rate 200bit burst 6000 limit 100000000
}

# Prints the bytes that are held.
wire_held() {
	tc -j -s -n "$(wire_space "$1")" qdisc show dev "$(wire_device "$1" m)" | jq '.[0].backlog'
}

wire_holds() {
	[ "$(wire_held "$1")" -ge "$2" ]
}

wire_is_empty() {
	[ "$(wire_held "$1")" -eq 0 ]
}

# The held bytes go on, behind a packet that makes the kernel look at the queue.
wire_release() {
	wire_qdisc "$1" change tbf rate 1gbit burst 1000000 limit 100000000
	# shellcheck disable=SC2086 # a command and its arguments
	${within[$1]} bash -c "echo >/dev/udp/$(wire_address "$1" 1)/9"
	until_true 10 wire_is_empty "$1"
}
