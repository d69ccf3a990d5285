#!/bin/sh
# SPDX-License-Identifier: MIT
# Install the Debian packages that are missing to build and test against the Python given, and those named behind it; quick
# when none is missing.
set -eu
python=${1:-/usr/bin/python3}

packages="gcc libc6-dev pkg-config xz-utils libtraceevent-dev libpfm4-dev libdw-dev libelf-dev libiberty-dev libdebuginfod1 systemtap-sdt-dev libcmocka-dev g++ man-db linux-perf"
[ $# -lt 2 ] || { shift && packages="$packages $*"; }
# libperf: its own package where there is one, else it is built from the kernel's source.
if ! pkg-config --exists libperf 2>/dev/null && ! ls /usr/src/linux-source-*.tar.xz >/dev/null 2>&1; then
	packages="$packages linux-source"
fi
case $python in
/usr/bin/*) packages="$packages python3 python3-dev python3-pytest python3-hypothesis cython3 python3-pip mypy" ;;
esac

if ! command -v dpkg-query >/dev/null; then
	echo "perfscope: this is not Debian; build and tests need: gcc, pkg-config, libtraceevent, libpfm4, libdw, libelf, libiberty, sys/sdt.h, cmocka, g++, man," \
		"libperf, Python with its headers, pytest, hypothesis, Cython, pip, mypy" >&2
	exit 0
fi

# shellcheck disable=SC2086 # a list of words
missing=$(for package in $packages; do
	case $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) in
	installed) ;;
	*) echo "$package" ;;
	esac
done | tr '\n' ' ')
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "perfscope: packages are missing; run: sudo apt-get install --no-install-recommends $missing" >&2
	exit 1
fi

echo "perfscope: installing $missing"
export DEBIAN_FRONTEND=noninteractive
install_missing() {
	# shellcheck disable=SC2086
	apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=120 $missing </dev/null >/dev/null
}
# The lists of a fresh machine are empty or old: fetch them, once, when the first try fails.
install_missing 2>/dev/null || { apt-get update -qq -o Acquire::Retries=3 && install_missing; }
