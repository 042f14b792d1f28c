#!/bin/bash
# summary.sh RESULTS - from RESULTS/raw.csv (work,place,x,rep,value,unit) a line for each work at
# each place: the number of measurements, median, lowest and highest value, all values. Of an even
# number of values the median is the mean of the middle two.
set -euo pipefail

results=${1:?usage: summary.sh RESULTS}
echo "work,x,place,unit,n,median,min,max,values"
sort -t, -k1,1 -k3,3 -k2,2 -k5,5g "$results/raw.csv" | awk -F, '
	function put() {
		if (n == 0) return
		m = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
		printf "%s,%d,%.6g,%.6g,%.6g,%s\n", head, n, m, v[1], v[n], all
	}
	{
		key = $1 "," $3 "," $2 "," $6
		if (key != head) { put(); head = key; n = 0; all = "" }
		v[++n] = $5 + 0
		all = all (all == "" ? "" : " ") sprintf("%.4g", $5)
	}
	END { put() }'
