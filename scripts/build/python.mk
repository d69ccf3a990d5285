# SPDX-License-Identifier: MIT
# How to compile against and link with $(PYTHON), shared or static; with SYSROOT, with the same version there.

PYTHON_FLAGS := $(shell $(PYTHON) scripts/build/python_flags.py --prefix $(prefix) \
	$(if $(filter file,$(origin prefix)),--prefix-is-default) $(if $(SYSROOT),--sysroot $(SYSROOT)) make)
ifeq ($(PYTHON_FLAGS),)
$(error perfscope: cannot build against $(PYTHON); run: make deps, or name another: make PYTHON=/path/to/python3)
endif
# One word a variable: NAME=value, the blanks of the value as '|'.
python_flag = $(subst |, ,$(patsubst $(1)=%,%,$(filter $(1)=%,$(PYTHON_FLAGS))))
PYTHON_CFLAGS := $(call python_flag,cflags)
# Only the command has to know which Python it is; for the module it may be that of any virtual environment.
PYTHON_PLACE := -DPS_PYTHON_EXECUTABLE='"$(call python_flag,executable)"' -DPS_PYTHON_HOME='"$(call python_flag,home)"'
PYTHON_LIBS := $(call python_flag,libs)
PYTHON_SUFFIX := $(call python_flag,suffix)
PYTHON_SITE := $(call python_flag,site)
