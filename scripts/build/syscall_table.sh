#!/bin/sh
# SPDX-License-Identifier: MIT
# Print the initialisers of a table number -> name of the system calls of the machine that $CC compiles for.
#
# The kernel's headers know the calls of their own version. The calls that came later are below: since 5.1 new calls
# have one number on every architecture but alpha.
set -eu

headers() {
	echo '#include <asm/unistd.h>' | ${CC:-cc} -E -dM - |
		sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9][0-9]*\)$/\2 \1/p'
}

later() {
	cat <<-END
		451 cachestat
		452 fchmodat2
		453 map_shadow_stack
		454 futex_wake
		455 futex_wait
		456 futex_requeue
		457 statmount
		458 listmount
		459 lsm_get_self_attr
		460 lsm_set_self_attr
		461 lsm_list_modules
		462 mseal
		463 setxattrat
		464 getxattrat
		465 listxattrat
		466 removexattrat
		467 open_tree_attr
		468 file_getattr
		469 file_setattr
	END
	# Numbers of one architecture, beside the common ones.
	if echo '__x86_64__' | ${CC:-cc} -E -P - | grep -qx 1; then
		printf '335 uretprobe\n336 uprobe\n'
	fi
}

# The headers' name wins where both know a number.
{ headers; later; } | sort -n -s -k1,1 | awk '!seen[$1]++ { printf "[%d] = \"%s\",\n", $1, $2 }'
