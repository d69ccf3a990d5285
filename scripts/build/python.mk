# SPDX-License-Identifier: MIT
# How to compile against and link with $(PYTHON), shared or static.

python_config = $(shell $(PYTHON) scripts/build/python_flags.py $(1))
PYTHON_CFLAGS := $(call python_config,cflags)
PYTHON_LIBS := $(call python_config,libs)
PYTHON_CFLAGS += -DPS_PYTHON_EXECUTABLE='"$(call python_config,executable)"'
