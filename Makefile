# rdmatrace and rdmagen. `make help` lists what there is to make.
CC      ?= gcc
CFLAGS  ?= -O2 -g
PREFIX  ?= /usr/local
BUILD   ?= build
WARN     = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla
ALL_CFLAGS = -std=gnu11 $(WARN) $(if $(WERROR),-Werror) $(SANFLAGS) $(CFLAGS) -MMD -MP -D_GNU_SOURCE -Iinclude -I.
LIBS     = -lpcap -ldeflate -lz -lzstd

BASE  := $(wildcard src/base/*.c)
WIRE  := $(wildcard dissect/*.c)
CAP   := $(wildcard src/cap/*.c)
TRANS := $(wildcard src/transport/*.c)
TRACE := $(wildcard src/trace/*.c)
GEN   := $(wildcard gen/*.c)
CLI   := $(wildcard src/cli/*.c)
GENCLI := $(wildcard gen/cli/*.c)
UNIT  := $(wildcard tests/unit/*.c)
CORE  := $(BASE) $(WIRE) $(CAP) $(TRANS)

obj = $(1:%.c=$(BUILD)/%.o)
PROGRAMS = $(if $(CLI),$(BUILD)/rdmatrace) $(if $(GENCLI),$(BUILD)/rdmagen)

all: $(PROGRAMS) ## build the programs into build/

$(BUILD)/rdmatrace: $(call obj,$(CORE) $(TRACE) $(CLI))
	$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/rdmagen: $(call obj,$(CORE) $(GEN) $(GENCLI))
	$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/unit: $(call obj,$(filter-out src/cli/main.c,$(CORE) $(TRACE) $(CLI)) $(GEN) $(UNIT))
	$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) -lcriterion

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c -o $@ $<

check: all $(BUILD)/unit ## run the tests (everything they need must be installed)
	$(BUILD)/unit -j2 --short-filename
	@for t in $(wildcard tests/*.test); do echo "== $$t"; BUILD=$(BUILD) $$t || exit 1; done

clean: ## remove what was built
	rm -rf $(BUILD)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

.PHONY: all check clean help
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
