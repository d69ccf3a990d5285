# SPDX-License-Identifier: MIT
# The guest with a PMU: Debian's arm64 kernel in QEMU, with perfscope built for it. These are doors too.
#
# All of it lies in $(VM): packages and root are fetched once, and again after `make clean`.

VM := $(BUILD)/vm
VM_SCRIPTS := scripts/build/vm
VM_PACKAGES := qemu-system-arm gcc-aarch64-linux-gnu libc6-dev-arm64-cross cpio
VM_TIMEOUT ?= 600
# Its dollars are the shell's in the guest.
override VM_RUN := $(value VM_RUN)
export VM_RUN
VM_FILES ?=

# Whole-program optimisation would double the time of this build, and nothing is measured against the host's.
VM_BUILD = CROSS_COMPILE=aarch64-linux-gnu- SYSROOT=$(abspath $(VM)/sysroot) BUILD=$(VM)/build LTO=

.PHONY: vm-root
vm-root: ## Fetch the guest's kernel and root: once, by apt, without a change to this machine
	@scripts/build/deps.sh "$(PYTHON)" $(VM_PACKAGES)
	+@$(SUBMAKE) -s $(VM)/root.cpio

$(VM)/sysroot.stamp: $(VM_SCRIPTS)/sysroot.sh
	@$< $(VM) arm64
	@touch $@

$(VM)/root.cpio: $(VM_SCRIPTS)/root.sh $(VM_SCRIPTS)/init $(VM)/sysroot.stamp
	@$< $(VM)

.PHONY: vm-programs
vm-programs: vm-root ## Build the command and the programs of the tests for the guest
	+@$(SUBMAKE) -s $(VM_BUILD) all load probed passes $(VM)/build/tests/region_loop $(VM)/build/tests/test_counter

# The suite, or VM_RUN="command line", with VM_FILES="path ..." beside it in files/.
.PHONY: test-vm
test-vm: vm-programs ## Run the tests that need hardware counters or kprobes in a guest that has them; VM_RUN="command"
ifeq ($(VM_RUN),)
	@$(PYTHON) $(RUN_TESTS) vm
else
	@$(PYTHON) $(VM_SCRIPTS)/guest.py --timeout $(VM_TIMEOUT) $(VM_FILES:%=--file %) $(VM) "$$VM_RUN"
endif
