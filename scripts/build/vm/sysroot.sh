#!/bin/bash
# SPDX-License-Identifier: MIT
# Fill FOLDER/sysroot with Debian's packages for ARCH: what perfscope is built with and runs on, and FOLDER/kernel with a kernel.
#
#	sysroot.sh FOLDER ARCH
#
# apt works with a state of its own below FOLDER, so that nothing of this machine changes and no architecture is added to it.
# What is downloaded stays in FOLDER/apt/archives.
set -euo pipefail
folder=$(realpath -m "$1") arch=$2
# Built against, as in deps.sh, and run with. The kernel for clouds needs no module where its root is an initramfs.
packages="libc6-dev libpython3-dev libtraceevent-dev libpfm4-dev libdw-dev libelf-dev libiberty-dev systemtap-sdt-dev
	libcmocka-dev python3 busybox-static"
kernel=linux-image-cloud-$arch

step() {
	printf '  %-4s %s\n' "$1" "$2"
}

# The sources of this machine that are of Debian: others need not have this architecture.
copy_sources() {
	mkdir -p "$1"
	local file
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
		if grep -qsE '^(deb|URIs:).*/debian' "$file"; then
			cp "$file" "$1/"
		fi
	done
}

write_apt_conf() {
	cat >"$folder/apt/conf" <<-END
		APT::Architecture "$arch";
		APT::Architectures { "$arch"; };
		APT::Install-Recommends "false";
		APT::Sandbox::User "root";
		Acquire::Languages "none";
		Acquire::Retries "3";
		Acquire::http::Timeout "30";
		Dir::State "$folder/apt";
		Dir::State::status "$folder/apt/status";
		Dir::Cache "$folder/apt";
		Dir::Etc::sourcelist "/dev/null";
		Dir::Etc::sourceparts "$folder/apt/sources";
	END
}

private() {
	APT_CONFIG=$folder/apt/conf "$@"
}

# apt-get succeeds where its servers cannot be reached, and then knows no package.
update_lists() {
	if ! private apt-get -qq update -o APT::Update::Error-Mode=any; then
		echo "perfscope: apt cannot reach its servers, which have the guest's packages: is there a network?" >&2
		exit 1
	fi
}

download() {
	mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial"
	: >"$folder/apt/status"
	copy_sources "$folder/apt/sources"
	write_apt_conf
	step APT "lists of Debian's $arch packages"
	update_lists
	private apt-get -qq autoclean
	step APT "$kernel and what perfscope needs"
	# shellcheck disable=SC2086 # a list of words
	private apt-get -qq -y install --download-only $packages >/dev/null
	# The kernel alone, without what would install it; the name has its version in it.
	local image
	image=$(private apt-cache depends "$kernel" | sed -n 's/ *Depends: \(linux-image-[0-9].*\)/\1/p')
	(cd "$folder/apt/archives" && private apt-get -qq download "$image")
}

unpack() {
	rm -rf "$folder/sysroot" "$folder/kernel"
	mkdir -p "$folder/sysroot" "$folder/kernel"
	local deb
	for deb in "$folder"/apt/archives/*.deb; do
		case $deb in
		*/linux-image-*) dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$folder/kernel" --strip-components=2 --wildcards './boot/*-*' ;;
		*) dpkg -x "$deb" "$folder/sysroot" ;;
		esac
	done
	# Links to /lib would lead to this machine's.
	find "$folder/sysroot" -type l -lname '/*' | while read -r link; do
		ln -sfnr "$folder/sysroot$(readlink "$link")" "$link"
	done
}

download
step TAR "$(find "$folder/apt/archives" -name '*.deb' | wc -l) packages, $(du -m "$folder/apt/archives" | tail -1 | cut -f1) MB"
unpack
