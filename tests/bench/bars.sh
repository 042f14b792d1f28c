#!/bin/bash
# bars.sh - plots that compare places by ratios. Each is drawn from a small data file, kept beside
# it.
#   bars.sh data RESULTS FOLDER   makes FOLDER/NAME.csv from RESULTS/summary.csv, for each plot below that
#                                 has a work that was measured
#   bars.sh draw FOLDER           draws each FOLDER/NAME.csv as FOLDER/NAME.svg
#
# A data file begins with lines "# KEY: VALUE". KEY is title, caption (one for each line of it), ylabel, or
# scale (linear, or log). A line "work,PLACE,..." follows, and then a line for each work. "; " in a work's name
# starts a new line of its label. A value is a ratio, or a ratio with its lowest and highest ("1.4 1.2 1.5"), or
# "-" where nothing was measured.
set -euo pipefail

usage() {
	echo "usage: bars.sh data RESULTS FOLDER | bars.sh draw FOLDER" >&2
	exit 2
}

# ---- data ----------------------------------------------------------------------------------------

# rows YARDSTICK PLACE=NAME,...: reads lines WORK=LABEL, and writes the data file's rows. A place's ratio is its
# median by the yardstick's median. Its lowest and highest value are divided by the same median.
rows() {
	awk -v yardstick="$1" -v places="$2" '
		BEGIN {
			n = split(places, place, ",")
			header = "work"
			for (p = 1; p <= n; p++) {
				header = header "," after(place[p])
				place[p] = before(place[p])
			}
		}
		FNR == NR {
			split($0, f, ",")
			if (f[2] != "") next
			median[f[1], f[3]] = f[6]; lowest[f[1], f[3]] = f[7]; highest[f[1], f[3]] = f[8]
			next
		}
		{
			work = before($0)
			base = median[work, yardstick]
			if (base <= 0) next
			line = after($0)
			for (p = 1; p <= n; p++) {
				k = work SUBSEP place[p]
				line = line "," (k in median ? \
					sprintf("%.3g %.3g %.3g", median[k] / base, lowest[k] / base, highest[k] / base) : "-")
			}
			if (!found++) print header
			print line
		}
		function before(s) { return substr(s, 1, index(s, "=") - 1) }
		function after(s) { return substr(s, index(s, "=") + 1) }' "$results/summary.csv" -
}

# data_file NAME YARDSTICK=NAME PLACE=NAME,... TITLE WORK=LABEL...
data_file() {
	local file=$folder/$1.csv yardstick=$2 places=$3 title=$4 lines
	shift 4
	lines=$(printf '%s\n' "$@" | rows "${yardstick%%=*}" "$places")
	[ -n "$lines" ] || return 0
	cat >"$file" <<-END
		# title: $title
		# caption: $(cat "$results/caption.txt")
		# caption: Medians of one run over the median of ${yardstick#*=}. Thin lines: lowest to highest.
		# ylabel: speed / speed of ${yardstick#*=}
		# scale: log
		$lines
	END
}

make_data() {
	local blocks=("randread-4k-d1=read 4 KiB; depth 1" "randread-4k-d16=read 4 KiB; depth 16"
		"randwrite-4k-d1=write 4 KiB; depth 1" "randwrite-4k-d16=write 4 KiB; depth 16"
		"read-1M-d1=read 1 MiB; depth 1" "read-1M-d4=read 1 MiB; depth 4"
		"write-1M-d1=write 1 MiB; depth 1" "write-1M-d4=write 1 MiB; depth 4")
	local names=("create-unlink=create + unlink; empty file" "create-write-close=create; + write; + close"
		"open-read-close=open; + read; + close" "unlink=unlink" "stat-warm=stat; cached")
	local in_guest="verbs=rmemfs over verbs,tcp=rmemfs over tcp,nfs-tcp=NFS over TCP"
	local files=("${names[@]}" "stat-first=stat; after a write" "untar=untar; of small files")
	data_file native-blocks "null-stock=the null FUSE server" \
		"shm=rmemfs over shm,tcp=rmemfs over tcp,tmpfs=tmpfs" \
		"Direct reads and writes of one file, beside a FUSE server that keeps nothing" "${blocks[@]}"
	data_file native-names tmpfs=tmpfs "shm=rmemfs over shm,tcp=rmemfs over tcp,sshfs=sshfs" \
		"Small files, one after the other, beside tmpfs" "${names[@]}"
	data_file guest-blocks "nfs-rdma=NFS over RDMA" "$in_guest" \
		"Direct reads and writes of one file, beside NFS over RDMA" "${blocks[@]}"
	data_file guest-names "nfs-rdma=NFS over RDMA" "names=rmemfs over verbs with names=local,$in_guest" \
		"Small files, one after the other, beside NFS over RDMA" "${files[@]}"
}

# ---- drawing -------------------------------------------------------------------------------------

# A place without any value gets no bars and no key.
script_of() {
	awk '
		function quoted(s) { gsub(/["\\]/, "", s); gsub(/; /, "\\n", s); return "\"" s "\"" }
		/^# [a-z]+: / {
			key = $2
			sub(/:$/, "", key)
			value = substr($0, length($1 $2) + 3)
			head[key] = head[key] (head[key] == "" ? "" : "; ") value
			next
		}
		/^#/ || /^ *$/ { next }
		!nplaces {
			nplaces = split($0, f, ",") - 1
			for (p = 1; p <= nplaces; p++) place[p] = f[p + 1]
			next
		}
		{
			if (split($0, f, ",") != nplaces + 1) { print "bad line: " $0 > "/dev/stderr"; exit failed = 1 }
			works++
			tics = tics (works > 1 ? ", " : "") quoted(f[1]) " " works
			for (p = 1; p <= nplaces; p++) {
				if (f[p + 1] == "-") continue
				if (f[p + 1] !~ /^[0-9.]+( [0-9.]+ [0-9.]+)?$/) { print "bad line: " $0 > "/dev/stderr"; exit failed = 1 }
				n = split(f[p + 1], v, " ")
				if (!(p in rows)) drawn[++ndrawn] = p
				rows[p] = rows[p] works " " v[1] " " v[n > 1 ? 2 : 1] " " v[n > 1 ? 3 : 1] "\n"
				if (!least || v[n > 1 ? 2 : 1] + 0 < least) least = v[n > 1 ? 2 : 1] + 0
				if (v[n > 1 ? 3 : 1] + 0 > most) most = v[n > 1 ? 3 : 1] + 0
			}
		}
		END {
			if (failed) exit 1
			if (!ndrawn) { print "no values" > "/dev/stderr"; exit 1 }
			split("#0072b2 #e69f00 #999999 #56b4e9", colour, " ")
			width = 0.8 / ndrawn
			print "set title " quoted(head["title"]) " font \",15\""
			print "set xlabel " quoted(head["caption"]) " offset 0,-1.3 font \",11\""
			print "set ylabel " quoted(head["ylabel"])
			print "set xtics (" tics ") scale 0 font \",12\""
			printf "set xrange [0.4:%g]\n", works + 0.6
			print "set bmargin 6.5"
			print "set key top center horizontal outside"
			print "set grid y lc rgb \"#dddddd\""
			print "set style fill solid 1"
			printf "set boxwidth %g\n", width * 0.94
			if (head["scale"] == "log") {
				for (bottom = 1; bottom > least * 0.8; bottom /= 10) continue
				print "set logscale y"
				print "set format y \"%g\""
				printf "set yrange [%g:%g]\n", bottom, (most > 1 ? most : 1) * 2
			} else
				print "set yrange [0:*]\nset offsets 0, 0, graph 0.08, 0"
			print "set arrow from graph 0, first 1 to graph 1, first 1 nohead lc rgb \"#cc0000\" lw 1.5 front"
			plot = ""
			for (d = 1; d <= ndrawn; d++) {
				p = drawn[d]
				printf "$p%d << END\n%sEND\n", p, rows[p]
				x = sprintf("($1%+g)", (d - (ndrawn + 1) / 2) * width)
				plot = plot (d > 1 ? ", " : "") \
					sprintf("$p%d using %s:2 with boxes lc rgb \"%s\" title %s", p, x, colour[(d - 1) % 4 + 1], quoted(place[p])) \
					sprintf(", $p%d using %s:3:(0):($4 - $3) with vectors nohead lc rgb \"#333333\" notitle", p, x) \
					sprintf(", $p%d using %s:4:(stringcolumn(2)) with labels offset 0,0.6 font \",10\" notitle", p, x)
			}
			print "plot " plot
		}' "$1"
}

draw() {
	local file
	for file in "$folder"/*.csv; do
		[ -e "$file" ] || continue
		{
			echo "set terminal svg size 1200,560 background 'white' font 'sans-serif,13' noenhanced"
			echo "set output '${file%.csv}.svg'"
			script_of "$file"
		} >"$work/script"
		gnuplot "$work/script"
	done
}

work=$(mktemp -d "${TMPDIR:-/tmp}/rmemfs-bars.XXXXXX")
trap 'rm -rf "$work"' EXIT
case "${1:-} $#" in
"data 3")
	results=$2 folder=$3
	mkdir -p "$folder"
	make_data
	;;
"draw 2")
	folder=$2
	draw
	;;
*) usage ;;
esac
