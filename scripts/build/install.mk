# SPDX-License-Identifier: MIT
# install and uninstall: command, module with its stubs, shipped scripts, man page, header and library for programs.

bindir ?= $(prefix)/bin
includedir ?= $(prefix)/include
libdir ?= $(prefix)/lib
man1dir ?= $(prefix)/share/man/man1
INSTALL ?= install

STUB := src/python/perfscope.pyi
SUBMODULE_STUBS := $(wildcard src/python/stubs/*.pyi)
# Editors look for a stub beside the module; type checkers, as it is no package, only in a folder of this name (PEP 561).
STUBS_FOLDER = $(PYTHON_SITE)/perfscope-stubs
SHIPPED_SCRIPTS := $(wildcard scripts/*.py)
MAN_PAGES := $(wildcard docs/*.1)
PUBLIC_HEADERS := $(wildcard include/perfscope/region.h)

# $(call install_files,MODE,FILES,FOLDER)
install_files = $(if $(strip $(2)),$(INSTALL) -d $(DESTDIR)$(3) && $(INSTALL) -m $(1) $(2) $(DESTDIR)$(3))

define tell_unless_found
import sys; "$(PYTHON_SITE)" in sys.path or print("perfscope: for $(PYTHON) to find the module: PYTHONPATH=$(PYTHON_SITE)")
endef

.PHONY: install install-module uninstall
# What a wheel holds.
install-module: $(MODULE) ## Install the extension module with its stubs alone
	$(call install_files,755,$(MODULE),$(PYTHON_SITE))
	$(call install_files,644,$(STUB),$(PYTHON_SITE))
	$(call install_files,644,$(SUBMODULE_STUBS),$(STUBS_FOLDER))
	$(INSTALL) -m 644 $(STUB) $(DESTDIR)$(STUBS_FOLDER)/__init__.pyi

install: all install-module ## Install below prefix (/usr/local) and DESTDIR
	$(call install_files,755,$(COMMAND),$(bindir))
	$(call install_files,644,$(SHIPPED_SCRIPTS),$(scripts_dir))
	$(call install_files,644,$(MAN_PAGES),$(man1dir))
	$(call install_files,644,$(PUBLIC_HEADERS),$(includedir)/perfscope)
	$(call install_files,644,$(REGION_LIBRARY),$(libdir))
	$(call install_files,644,$(REGION_PKGCONFIG),$(libdir)/pkgconfig)
	$(if $(DESTDIR),,@$(PYTHON) -c '$(tell_unless_found)')

INSTALLED_MODULE = $(addprefix $(PYTHON_SITE)/,$(notdir $(MODULE) $(STUB))) \
	$(addprefix $(STUBS_FOLDER)/,__init__.pyi $(notdir $(SUBMODULE_STUBS)))
INSTALLED = $(bindir)/perfscope $(INSTALLED_MODULE) \
	$(addprefix $(scripts_dir)/,$(notdir $(SHIPPED_SCRIPTS))) $(addprefix $(man1dir)/,$(notdir $(MAN_PAGES))) \
	$(addprefix $(includedir)/perfscope/,$(notdir $(PUBLIC_HEADERS))) \
	$(libdir)/$(notdir $(REGION_LIBRARY)) $(libdir)/pkgconfig/$(notdir $(REGION_PKGCONFIG))
INSTALLED_FOLDERS = $(STUBS_FOLDER) $(scripts_dir) $(dir $(scripts_dir)) $(includedir)/perfscope

uninstall: ## Remove what install installed, with the same prefix, DESTDIR and PYTHON
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))
	@rmdir --ignore-fail-on-non-empty $(addprefix $(DESTDIR),$(INSTALLED_FOLDERS)) 2>/dev/null || true
