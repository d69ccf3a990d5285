#!/bin/bash
# SPDX-License-Identifier: MIT
# Make FOLDER/root.cpio of FOLDER/sysroot: busybox, Python and the libraries that perfscope runs on. usage: root.sh FOLDER
set -euo pipefail
shopt -s nullglob
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
folder=$(realpath -m "$1")
sysroot=$folder/sysroot root=$folder/root

printf '  %-4s %s\n' CPIO "$folder/root.cpio"
rm -rf "$root"
mkdir -p "$root"/{bin,dev,etc,proc,root,run,sys,tmp,usr/bin,usr/lib}
install -m 755 "$here/init" "$root/init"
cp "$sysroot/bin/busybox" "$root/bin/"
cp -a "$sysroot/lib" "$root/"
cp -a "$sysroot"/usr/bin/python3* "$root/usr/bin/"
rm -f "$root"/usr/bin/*-config
cp -a "$sysroot"/usr/lib/python3* "$root/usr/lib/"
rm -rf "$root"/usr/lib/python3*/{config-*,test,idlelib,lib2to3,ensurepip,pydoc_data,distutils}
# libdw and what it needs, but not the compiler's own.
for libraries in "$sysroot"/usr/lib/*-linux-gnu; do
	mkdir -p "$root/usr/lib/${libraries##*/}"
	find "$libraries" -maxdepth 1 \( -name '*.so.*' -o -name '*.so' -type f \) ! -name 'lib[a-z]*san.so*' ! -name 'libicu*' \
		-exec cp -a -t "$root/usr/lib/${libraries##*/}" {} +
done
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"

# Compiling there, under emulation, would take each start of Python a second and a half.
for library in "$root"/usr/lib/python3.*; do
	/usr/bin/"${library##*/}" -m compileall -q -j 2 -s "$root" -p / "$library" || true
done
(cd "$root" && find . -print0 | LC_ALL=C sort -z | cpio --null -o -H newc -R 0:0 --quiet) >"$folder/root.cpio.new"
rm -rf "$root"
mv "$folder/root.cpio.new" "$folder/root.cpio"
