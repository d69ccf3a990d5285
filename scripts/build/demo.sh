#!/bin/sh
# SPDX-License-Identifier: MIT
# Run a real script on real events of a load whose size is known, and check that it saw all of them: demo.sh BUILD
set -eu
build=${1:-build}
nr_calls=100000
script=scripts/build/demo.py

show() {
	echo
	echo "\$ $*"
}

run() {
	show "$@"
	"$@"
}

echo "perfscope runs a Python script on kernel events. What this machine and this user can do:"
if ! run "$build/perfscope" doctor; then
	echo
	echo "Perf events are closed here; 'no' above names the knob for each. What works without them:"
	run "$build/perfscope" --version
	run "$build/perfscope" list 'page*'
	exit 0
fi

echo
echo "The script, $script:"
sed 's/^/    /' $script

echo
echo "A program that makes $nr_calls getppid calls and touches 2000 fresh pages, seen from its first instruction:"
events=raw_syscalls:sys_enter,task-clock,page-faults
show "$build/perfscope python -e $events $script --run load getppid $nr_calls + touch 2000"
output=$("$build/perfscope" python -e $events $script --run "$build/tests/load" getppid $nr_calls + touch 2000)
echo "$output"
seen=$(echo "$output" | awk '$3 == "getppid" { print $1 }')

echo
if [ "$seen" != "$nr_calls" ]; then
	echo "The load made $nr_calls getppid calls, the script saw ${seen:-none}: that is a fault."
	exit 1
fi
echo "The load made $nr_calls getppid calls; the script saw $seen."
