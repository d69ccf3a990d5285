# SPDX-License-Identifier: MIT
# install and uninstall: command, module with its stub, shipped scripts, man page, header and library for programs.

bindir ?= $(prefix)/bin
includedir ?= $(prefix)/include
libdir ?= $(prefix)/lib
man1dir ?= $(prefix)/share/man/man1
INSTALL ?= install

SITE_FILES := $(wildcard src/python/*.pyi)
SHIPPED_SCRIPTS := $(wildcard scripts/*.py)
MAN_PAGES := $(wildcard docs/*.1)
PUBLIC_HEADERS := $(wildcard include/perfscope/region.h)

# $(call install_files,MODE,FILES,FOLDER)
install_files = $(if $(strip $(2)),$(INSTALL) -d $(DESTDIR)$(3) && $(INSTALL) -m $(1) $(2) $(DESTDIR)$(3))

define tell_unless_found
import sys; "$(PYTHON_SITE)" in sys.path or print("perfscope: for $(PYTHON) to find the module: PYTHONPATH=$(PYTHON_SITE)")
endef

.PHONY: install uninstall
install: all ## Install below prefix (/usr/local) and DESTDIR
	$(call install_files,755,$(COMMAND),$(bindir))
	$(call install_files,755,$(MODULE),$(PYTHON_SITE))
	$(call install_files,644,$(SITE_FILES),$(PYTHON_SITE))
	$(call install_files,644,$(SHIPPED_SCRIPTS),$(scripts_dir))
	$(call install_files,644,$(MAN_PAGES),$(man1dir))
	$(call install_files,644,$(PUBLIC_HEADERS),$(includedir)/perfscope)
	$(call install_files,644,$(REGION_LIBRARY),$(libdir))
	$(call install_files,644,$(REGION_PKGCONFIG),$(libdir)/pkgconfig)
	$(if $(DESTDIR),,@$(PYTHON) -c '$(tell_unless_found)')

INSTALLED = $(bindir)/perfscope $(addprefix $(PYTHON_SITE)/,$(notdir $(MODULE) $(SITE_FILES))) \
	$(addprefix $(scripts_dir)/,$(notdir $(SHIPPED_SCRIPTS))) $(addprefix $(man1dir)/,$(notdir $(MAN_PAGES))) \
	$(addprefix $(includedir)/perfscope/,$(notdir $(PUBLIC_HEADERS))) \
	$(libdir)/$(notdir $(REGION_LIBRARY)) $(libdir)/pkgconfig/$(notdir $(REGION_PKGCONFIG))

uninstall: ## Remove what install installed, with the same prefix, DESTDIR and PYTHON
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))
	@rmdir --ignore-fail-on-non-empty $(DESTDIR)$(scripts_dir) $(dir $(DESTDIR)$(scripts_dir)) $(DESTDIR)$(includedir)/perfscope 2>/dev/null || true
