#!/usr/bin/env bats
# page.bats - the status page of rmemfs-metrics: its figures, the findings, whose names it shows, and how browsers
# show it. RMEMFS_TEST_PICTURES=FOLDER keeps the pictures that Chromium has taken.
#
# bats file_tags=once

bats_require_minimum_version 1.5.0
load helpers

metrics_pid=''

setup() {
	setup_rmem
	start_server
}

teardown() {
	[ -z "$server_pid" ] || kill -CONT "$server_pid"
	[ -z "$daemon_pid" ] || kill -CONT "$daemon_pid"
	[ -z "$metrics_pid" ] || stop_serving
	teardown_rmem
}

listens() {
	curl -s -o /dev/null "$url"
}

# serve [OPTION]...: samples each second.
serve() {
	local http
	http=$(free_port)
	url=http://127.0.0.1:$http/
	rmemfs-metrics --listen "127.0.0.1:$http" --server "$socket" --interval 1 "$@" 2>"$dir/metrics.log" 3>&- &
	metrics_pid=$!
	until_true 10 listens
}

stop_serving() {
	kill -TERM "$metrics_pid"
	exit_status "$metrics_pid" 10
	metrics_pid=''
}

# shows PATTERN: the page, which stays in $dir/page, is well-formed and has a line with it.
shows() {
	curl -s "$url" >"$dir/page"
	xmllint --noout "$dir/page"
	grep -qE -- "$1" "$dir/page"
}

# drawn CHART: its first line has a point that is not 0, which is above y = 120.
drawn() {
	curl -s "$url" | sed -n "/<h3 id=\"$1\">/,/<\/figure>/p" | grep -o 'class="line a" d="[^"]*' |
		grep -qE '[ML][0-9.]+ ([0-9]|[1-9][0-9]|1[01][0-9])\.'
}

# finding: the first one, as text.
finding() {
	sed -n '/<ol class="findings">/,/<\/li>/p' "$dir/page" | sed 's/<[^>]*>/ /g' | tr -s ' \n' ' '
}

works() {
	dd if=/dev/zero of="$mnt/file" bs=64K count=16 oflag=direct conv=notrunc status=none
	dd if="$mnt/file" of=/dev/null bs=64K iflag=direct status=none
}

draws_all() {
	local chart
	works
	for chart in throughput operations times served; do
		drawn $chart || return 1
	done
}

# The style's hash, without which it has no effect.
style_hash() {
	sed -n '/<style>/,/<\/style>/p' "$dir/page" | sed 's/.*<style>//; s/<\/style>.*//' | head -c -1 |
		sha256sum | cut -d ' ' -f 1 | tr a-f A-F | basenc -d --base16 | base64
}

# A browser may load nothing but the page, keep nothing, and do nothing.
is_harmless() {
	local hash header
	curl -s -D - -o "$dir/page" "$url" | tr -d '\r' >"$dir/headers"
	for header in 'Content-Type: text/html; charset=utf-8' 'Cache-Control: no-store' 'X-Content-Type-Options: nosniff'; do
		grep -qx "$header" "$dir/headers"
	done
	hash=$(style_hash)
	grep -qF "default-src 'none'; style-src 'sha256-$hash'; base-uri 'none'" "$dir/headers" ||
		die "page_style.c needs the hash $hash"
	run ! grep -E '<script|<link|<img|<iframe|<object| style=| on[a-z]+=|url\(|@import|https?:' \
		<(grep -v 'xmlns="http://www.w3.org/1999/xhtml"' "$dir/page")
	[ "$(curl -s -o /dev/null -w '%{http_code}' -X POST -d x "$url")" = 405 ]
	[ "$(curl -s -o /dev/null -w '%{http_code}' -X DELETE "$url")" = 405 ]
	[ "$(curl -s -I -o "$dir/head" -w '%{http_code} %{size_download}' "$url")" = '200 0' ]
}

@test "the page has the rates of a load and the map of an export, and names without details nobody" {
	local strange="$dir/a \"b\" <i>&amp;'"
	mkdir "$strange"
	mnt=$strange
	mount_rmem
	dd if=/dev/zero of="$mnt/filler" bs=1M count=20 conv=fsync status=none
	serve
	until_true 20 draws_all || die "a chart has no line"
	until_true 10 shows 'in files</dt><dd>2[0-9](\.[0-9])? MiB <small>1[0-9] %'
	shows '<title>all is well: '
	shows '<rect class="used" height="10" x="0.00" width="1[0-9][0-9]\.'
	shows '<h3>default</h3>'
	shows '<span class="badge ok">connected</span>'
	shows '<meta http-equiv="refresh" content="1"/>'
	run ! grep -F -e "$dir" -e "$(mount_source)" -e "${key_file:-no key}" -e "$(hostname):" -e test- "$dir/page"
	curl -s "${url}still" >"$dir/still"
	xmllint --noout "$dir/still"
	run ! grep refresh "$dir/still"
	is_harmless
	stop_serving
	serve --details
	until_true 10 shows "a &quot;b&quot; &lt;i&gt;&amp;amp;&#39; <small>$(mount_source)</small>"
	shows "$(hostname):$dir/a"
}

@test "a daemon that stands still and a server that is gone come first" {
	mount_rmem
	suspend "$daemon_pid"
	serve
	until_true 10 shows '<title>1 critical: '
	[[ "$(finding)" == *" critical mount $(mountpoint -d "$mnt" | cut -d : -f 2): no answer from its daemon "* ]]
	shows '<span class="badge critical">no answer</span>'
	kill -CONT "$daemon_pid"
	kill_server
	until_true 10 shows 'this machine&#39;s server: no answer'
	until_true 10 shows 'mount [0-9]+: no connection to its server'
	run ! grep -F -e "$dir" -e "$(mount_source)" "$dir/page"
	start_server
}

# ---- browsers ------------------------------------------------------------------------------------

browse() {
	timeout 60 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$dir/chromium" \
		--enable-logging=stderr "$@" 2>>"$dir/chromium.log" 3>&-
}

# pictures WIDTH NAME: of the page, in both colours.
pictures() {
	browse --window-size="$1,4200" --screenshot="$dir/$2-$1.png" "${url}still"
	browse --window-size="$1,4200" --blink-settings=preferredColorScheme=0 --screenshot="$dir/$2-$1-dark.png" "${url}still"
	[ "$(od -An -j 16 -N 4 -t u1 "$dir/$2-$1.png" | awk '{ print $3 * 256 + $4 }')" = "$1" ] || die "the picture has another width"
	[ -z "${RMEMFS_TEST_PICTURES:-}" ] || cp "$dir/$2-$1.png" "$dir/$2-$1-dark.png" "$RMEMFS_TEST_PICTURES"
}

# fits WIDTH: no part of the page is beyond a window of that width. The page is the document of a frame, since
# only a script of this test can look at it.
fits() {
	curl -s "${url}still" | sed 's/&/\&amp;/g; s/"/\&quot;/g' >"$dir/quoted"
	{
		echo "<!DOCTYPE html><iframe id=frame style='width:$1px;height:900px;border:0' srcdoc=\""
		cat "$dir/quoted"
		cat <<-'END'
			"></iframe><script>
			frame.onload = () => {
				const page = frame.contentDocument, width = frame.clientWidth, wide = [];
				for (const e of page.body.querySelectorAll('*'))
					if (e.getBoundingClientRect().right > width + 0.5 && !e.closest('thead'))
						wide.push(e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 40));
				document.body.textContent = 'RESULT ' + (page.documentElement.scrollWidth <= width) + ' ' +
					page.querySelectorAll('h2').length + ' ' + JSON.stringify(wide);
			};
			</script>
		END
	} >"$dir/frame.html"
	browse --window-size=1600,1000 --virtual-time-budget=5000 --dump-dom "file://$dir/frame.html" >"$dir/dom"
	grep -oE 'RESULT [^<]*' "$dir/dom" >"$dir/result"
	grep -qE "^RESULT true $2 \[\]" "$dir/result" || die "at $1: $(cat "$dir/result")"
}

# has_moments N: works until so many were drawn.
has_moments() {
	works
	[ "$(curl -s "$url" | sed -n '/id="throughput"/,/<.figure>/p' | grep -o 'class="line a" d="[^"]*' | grep -oE '[ML][0-9]' | wc -l)" -ge "$1" ]
}

# bats test_tags=long
@test "Chromium shows the page at the width of a phone and of a desk, and nothing is cut or beyond it" {
	mnt="$dir/$(printf 'a-mount-point-with-a-long-name-%.0s' {1..5})"
	mount_rmem
	dd if=/dev/zero of="$mnt/filler" bs=1M count=100 conv=fsync status=none
	serve --details
	until_true 60 has_moments 20
	for width in 320 390 700 1000 1280; do
		fits $width 5
	done
	pictures 390 well
	pictures 1280 well
	suspend "$daemon_pid"
	until_true 10 shows 'no answer from its daemon'
	for width in 390 1280; do
		pictures $width wrong
		fits $width 5
	done
	run ! grep -i 'content security policy\|refused to' "$dir/chromium.log"
}
