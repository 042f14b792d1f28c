#!/usr/bin/env bats
# databases.bats - databases in the mount, while they, the server or the daemon are killed and
# restarted. The tests record outside the mount which transactions a database has reported as
# committed. These must be there, and the database's own checker must find no damage.
#
# Tests with the tag "long" run nightly (see run.sh).

load helpers

setup() {
	# shellcheck disable=SC2034 # the helpers take it
	test_seconds=600
	setup_rmem
	# This configuration reuses freed pages soon after a restart.
	server_conf=$dir/server.conf
	export_size=160MiB
	! at_full_size || export_size=512MiB
	cat >"$server_conf" <<-END
		lease_time = 1;
		exports = ({ name = "default"; size = "$export_size"; });
	END
	start_server
	mount_rmem -o allow_other
}

teardown() {
	[ -z "${postgres_pid:-}" ] || kill -QUIT "$postgres_pid" || true
	teardown_rmem
}

# ---- SQLite --------------------------------------------------------------------------------------

# Each row is one transaction, which also changes the sum of all rows in another table. SQLite
# prints the row's number when it goes on to the next one, so after the commit.
sqlite_statements() {
	local n=$1
	echo "PRAGMA synchronous = FULL;"
	echo ".timeout 10000"
	while :; do
		n=$((n + 1))
		echo "BEGIN IMMEDIATE;"
		echo "INSERT INTO t VALUES ($n, hex(randomblob(abs(random()) % 3000)));"
		echo "UPDATE sum SET n = n + $n;"
		((n % 7)) || echo "DELETE FROM t WHERE n = $((n - 5)); UPDATE sum SET n = n - $((n - 5));"
		echo "COMMIT;"
		echo ".print $n"
	done
}

# sqlite_begin NUMBER: starts a process that inserts rows after that number until it is killed.
sqlite_begin() {
	stdbuf -oL sqlite3 -bail "$mnt/db" < <(sqlite_statements "$1" 2>/dev/null) >>"$dir/committed" \
		2>>"$dir/sqlite.log" 3>&- &
	sqlite_pid=$!
}

sqlite_last() {
	tail -n 1 "$dir/committed"
}

sqlite_reached() {
	[ "$(sqlite_last)" -ge "$1" ]
}

# sqlite_go_on COUNT: waits until so many more rows are committed.
sqlite_go_on() {
	until_true 60 sqlite_reached $(($(sqlite_last) + $1)) || die "nothing is committed"
}

# A process that has mapped a file waits for the server before it ends: the kernel writes back
# first.
sqlite_ended() {
	exit_status "$sqlite_pid" 60 || [ $? -eq 137 ]
	[ ! -s "$dir/sqlite.log" ]
}

# sqlite_check MODE: the database is whole and in that mode, and has all committed rows. It may have
# one more: the transaction that was running at the kill.
sqlite_check() {
	local last there sum
	last=$(sqlite_last)
	[ "$(sqlite3 "$mnt/db" 'PRAGMA journal_mode')" = "$1" ]
	[ "$(sqlite3 "$mnt/db" 'PRAGMA integrity_check')" = ok ]
	there=$(sqlite3 "$mnt/db" 'SELECT max(n) FROM t')
	[ "$there" -eq "$last" ] || [ "$there" -eq $((last + 1)) ] ||
		die "row $last was committed, $there is there"
	sum=$(sqlite3 "$mnt/db" 'SELECT (SELECT sum(n) FROM t) - (SELECT n FROM sum)')
	[ "$sum" -eq 0 ]
	[ "$(sqlite3 "$mnt/db" 'SELECT count(*) FROM t')" -eq $((there - there / 7)) ]
	row=$there
}

alone_is_killed() {
	kill -KILL "$sqlite_pid"
}

is_killed_after_the_server() {
	crash_server
	sqlite_go_on 10
	kill -KILL "$sqlite_pid"
}

is_killed_with_the_server() {
	crash_server
	sqlite_go_on 10
	kill_server
	kill -KILL "$sqlite_pid"
	start_server
}

# This is a crash of the client's machine: changes that the daemon has not sent to the server are
# lost.
is_killed_with_the_daemon() {
	local pid=$daemon_pid
	daemon_pid=''
	kill -KILL "$sqlite_pid" "$pid"
	exit_status "$pid" 20 || [ $? -eq 137 ]
	umount -l "$mnt"
	mount_rmem -o allow_other
}

# sqlite_rounds MODE: ends SQLite in each of the ways, one after the other.
sqlite_rounds() {
	local n rounds=4 row=0
	local ends=(alone_is_killed is_killed_after_the_server is_killed_with_the_server is_killed_with_the_daemon)
	! at_full_size || rounds=12
	echo 0 >"$dir/committed"
	[ "$(sqlite3 "$mnt/db" "PRAGMA journal_mode = $1")" = "$1" ]
	sqlite3 "$mnt/db" 'CREATE TABLE t (n INTEGER PRIMARY KEY, pad TEXT); CREATE INDEX i ON t (pad);
		CREATE TABLE sum (n); INSERT INTO sum VALUES (0)'
	for ((n = 0; n < rounds; n++)); do
		sqlite_begin $row
		sqlite_go_on $((20 + RANDOM % 60))
		"${ends[n % 4]}"
		sqlite_ended
		sqlite_check "$1"
	done
	remount
	sqlite_check "$1"
}

# bats test_tags=long
@test "SQLite with a journal: what was committed is there when it, the server, or the daemon is killed" {
	sqlite_rounds delete
}

@test "SQLite with a write-ahead log: what was committed is there when it, the server, or the daemon is killed" {
	sqlite_rounds wal
}

# ---- PostgreSQL ----------------------------------------------------------------------------------

# postgres_init: initdb and the server refuse to run as root. The server's socket is outside the
# mount.
postgres_init() {
	chmod 711 "$dir"
	mkdir "$dir/pg" "$mnt/data"
	chown postgres: "$dir/pg" "$mnt/data"
	as_postgres=(setpriv --reuid=postgres --regid=postgres --clear-groups
		env -C "$dir/pg" PGHOST="$dir/pg" PGDATABASE=postgres
		PATH="$(echo /usr/lib/postgresql/*/bin):$PATH")
	"${as_postgres[@]}" initdb -k -A trust -D "$mnt/data" >"$dir/initdb.log" 2>&1
	cat >>"$mnt/data/postgresql.conf" <<-END
		listen_addresses = ''
		unix_socket_directories = '$dir/pg'
		dynamic_shared_memory_type = mmap
		max_wal_size = 64MB
		checkpoint_timeout = 30s
	END
}

psql_says() {
	"${as_postgres[@]}" psql -XqAt -v ON_ERROR_STOP=1 -c "$1"
}

postgres_answers() {
	! alive "$postgres_pid" || "${as_postgres[@]}" pg_isready -q
}

postgres_start() {
	"${as_postgres[@]}" postgres -D "$mnt/data" </dev/null >>"$dir/postgres.log" 2>&1 3>&- &
	postgres_pid=$!
	until_true 100 postgres_answers || die "PostgreSQL does not answer"
	alive "$postgres_pid" || die "PostgreSQL ended at its start"
}

none_alive() {
	! kill -0 "$@" 2>/dev/null
}

# Kills all processes at once: the first one, once stopped, starts no more of them.
postgres_kill() {
	kill -STOP "$postgres_pid"
	mapfile -t killed_pids < <(pgrep -P "$postgres_pid")
	[ ${#killed_pids[@]} -ge 5 ]
	kill -KILL "$postgres_pid" "${killed_pids[@]}"
}

postgres_ended() {
	exit_status "$postgres_pid" 60 || [ $? -eq 137 ]
	postgres_pid=''
	until_true 60 none_alive "${killed_pids[@]}" || die "PostgreSQL is still there"
}

postgres_stop() {
	kill -INT "$postgres_pid"
	exit_status "$postgres_pid" 60
	postgres_pid=''
}

clients=4

# Outside the mount pgbench logs each acknowledged transaction. It ends when its server ends.
pgbench_begin() {
	"${as_postgres[@]}" pgbench -n -c $clients -j 2 -T 600 -l --log-prefix="$dir/pg/log.$1" \
		>>"$dir/pgbench.log" 2>&1 3>&- &
	pgbench_pid=$!
}

pgbench_ended() {
	exit_status "$pgbench_pid" 60 || [ $? -eq 2 ]
}

history_reached() {
	[ "$(psql_says 'SELECT count(*) FROM pgbench_history')" -ge "$1" ]
}

# pgbench_go_on COUNT: waits until so many more transactions are committed.
pgbench_go_on() {
	local now
	now=$(psql_says 'SELECT count(*) FROM pgbench_history')
	until_true 100 history_reached $((now + $1)) || die "nothing is committed"
}

# postgres_check KILLS: all acknowledged transactions are there. Each that was running at a kill may
# be there or not. All accounts agree, and each index agrees with its table.
postgres_check() {
	local acknowledged there
	acknowledged=$(cat "$dir"/pg/log.* | wc -l)
	there=$(psql_says 'SELECT count(*) FROM pgbench_history')
	echo "$acknowledged acknowledged, $there there"
	[ "$there" -ge "$acknowledged" ]
	[ "$there" -le $((acknowledged + clients * $1)) ]
	[ "$(psql_says 'SELECT (SELECT sum(delta) FROM pgbench_history) = ALL (VALUES
		((SELECT sum(abalance) FROM pgbench_accounts)), ((SELECT sum(bbalance) FROM pgbench_branches)),
		((SELECT sum(tbalance) FROM pgbench_tellers)))')" = t ]
	"${as_postgres[@]}" pg_amcheck --heapallindexed --parent-check --rootdescend -j 2
}

# bats test_tags=long
@test "PostgreSQL: what was committed is there when it, or the server, is killed" {
	local n
	postgres_init
	postgres_start
	psql_says 'CREATE EXTENSION amcheck'
	"${as_postgres[@]}" pgbench -q -i -s 4 >"$dir/pgbench.log" 2>&1
	for n in 1 2 3 4; do
		pgbench_begin $n
		pgbench_go_on 1000
		if [ $((n % 2)) -eq 0 ]; then
			crash_server
			pgbench_go_on 1000
		fi
		[ $n -ne 4 ] || kill_server
		postgres_kill
		[ $n -ne 4 ] || start_server
		postgres_ended
		pgbench_ended
		postgres_start
		postgres_check $n
	done
	postgres_stop
	remount -o allow_other
	"${as_postgres[@]}" pg_checksums --check -D "$mnt/data"
	postgres_start
	postgres_check "$n"
	postgres_stop
	grep -q 'database system was not properly shut down' "$dir/postgres.log"
	[ "$(grep -cE 'PANIC|corrupt|invalid page|could not (read|write|fsync|open)' "$dir/postgres.log")" -eq 0 ]
}
