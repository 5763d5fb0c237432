# rdmatrace and rdmagen. `make help` lists what there is to make.
ifeq ($(origin CC),default)
CC = gcc
endif
ifeq ($(origin CFLAGS),undefined)
CFLAGS   = -O3 -g
# gcc optimises the files that every packet goes through together: `rdmatrace check` takes 8 % less, `rdmagen sim` on a network 7 %. clang needs lld.
LTO     := $(if $(findstring Free Software Foundation,$(shell $(CC) --version)),-flto=auto)
endif
PREFIX  ?= /usr/local
ZSH_COMPLETIONS ?= $(PREFIX)/share/zsh/site-functions
BUILD   ?= build
FUZZ_SECONDS ?= 60
SOAK_PACKETS ?= 100000000
SOAK_CONVERSATIONS ?= 1000000
WARN     = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla -Wno-missing-field-initializers
ALL_CFLAGS = -std=gnu11 $(WARN) $(if $(WERROR),-Werror) $(SANFLAGS) $(CPPFLAGS) $(CFLAGS) -MMD -MP -D_GNU_SOURCE -Iinclude -I.
CURSES  := $(or $(shell pkg-config --libs ncursesw 2>/dev/null),-lncursesw -ltinfo)
LIBS     = -Wl,--as-needed -lpcap -lnet -ldeflate -lisal -lz -lzstd -lpcre2-8 -lsqlite3 -lsodium -ljansson -lxdp -lbpf $(CURSES) -lm -pthread
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer

BASE  := $(wildcard src/base/*.c)
WIRE  := $(wildcard dissect/*.c dissect/*/*.c)
CAP   := $(wildcard src/cap/*.c)
TRANS := $(wildcard src/transport/*.c)
CONN  := $(wildcard src/conn/*.c src/iwarp/*.c src/shadow/*.c src/account/*.c src/taps/*.c src/counters/*.c)
CC_ROOM := $(wildcard src/cc/*.c)
TRACE := $(filter-out $(BASE) $(CAP) $(TRANS) $(CONN) $(CC_ROOM) src/cli/% src/mpi/%,$(wildcard src/*/*.c src/*/*/*.c))
# `rdmagen agent` loads libibverbs and librdmacm when it starts; without their headers it says that it was built without them.
IBV   := $(shell printf '\043include <infiniband/verbs.h>\n\043include <rdma/rdma_cma.h>\n' | $(CC) -fsyntax-only -xc - 2>/dev/null && echo yes)
GEN   := $(filter-out $(if $(IBV),gen/rnic/no_ibv.c,gen/rnic/ibv_%.c),$(foreach room,verbs traffic storage endpoint cm net fabric workload live peers sim script rnic agent conform replay,$(wildcard gen/$(room)/*.c gen/$(room)/*/*.c)))
# `rdmatrace-mpi` is built where there is a compiler for MPI.
MPI   := $(if $(shell command -v mpicc),$(wildcard src/mpi/*.c))
CLI   := $(wildcard src/cli/*.c src/cli/*/*.c)
GENCLI := $(wildcard gen/cli/*.c gen/cli/*/*.c)
UNIT  := $(wildcard tests/unit/*.c)
PROPERTY := $(wildcard tests/property/*.c)
FUZZ  := $(wildcard tests/fuzz/fuzz_*.c)
CORE  := $(BASE) $(WIRE) $(CAP) $(TRANS) $(CC_ROOM) $(CONN)
READER := $(CORE) $(TRACE) $(filter-out src/cli/main.c,$(CLI))

# The pages of `rdmatrace report`, and the library that draws in them: a package, see tests/deps, or of npm.
DYGRAPHS ?= /usr/share/javascript/dygraphs
PAGE := $(BUILD)/src/report/page_text.o
# The tests of `rdmagen conformance`, and what is known of devices.
BATTERY := $(BUILD)/gen/conform/battery/battery_text.o

HOT := src/base/buf% src/cap/% src/transport/% src/conn/conn% src/conn/observer% src/conn/req% src/conn/resp% src/conn/go_back% src/conn/annotate% src/judge/% src/shadow/% src/findings/% \
 src/show/print% src/show/text% src/show/json% src/show/fields% dissect/pkt% dissect/columns% dissect/ib/bth% dissect/ib/icrc% dissect/ib/opcode% \
 src/cli/capture_cmd% src/cli/decode_run% \
 src/cc/mp% gen/endpoint/% gen/fabric/% gen/sim/sim% gen/workload/workload%

obj = $(1:%.c=$(BUILD)/%.o)
LINK = $(CC) $(SANFLAGS) $(LDFLAGS) $(if $(LTO),$(or $(TOGETHER),-fno-lto)) -o $@ $^ $(LIBS)
PROGRAMS = $(if $(CLI),$(BUILD)/rdmatrace) $(if $(MPI),$(BUILD)/rdmatrace-mpi) $(if $(GENCLI),$(BUILD)/rdmagen)
TEST_PROGRAMS = $(addprefix $(BUILD)/,unit hostile leaky mkcap property experiments)
MAN  = $(wildcard man/*.[1-8])
COMPLETIONS = $(wildcard src/cli/*.bash gen/cli/*.bash)
SCHEMAS = $(wildcard share/*.schema.json)
WIRESHARK = $(wildcard src/wireshark/*)

all: $(PROGRAMS) ## build the programs into build/

$(BUILD)/rdmatrace $(BUILD)/rdmagen: TOGETHER = $(LTO) $(CFLAGS)
$(BUILD)/rdmatrace: $(call obj,$(CORE) $(TRACE) $(CLI)) $(PAGE)
	$(LINK)
$(BUILD)/rdmatrace-mpi: $(call obj,$(READER) $(MPI)) $(PAGE)
	$(LINK) $(shell mpicc --showme:link)
$(call obj,$(MPI)): CPPFLAGS += $(shell mpicc --showme:compile 2>/dev/null | sed 's/-I/-isystem /g')
$(BUILD)/rdmagen: $(call obj,$(CORE) $(GEN) $(GENCLI)) $(BATTERY)
	$(LINK)
$(BUILD)/unit: $(call obj,$(READER) $(GEN) $(UNIT)) $(PAGE) $(BATTERY)
	$(LINK) -lcriterion
$(BUILD)/leaky: $(BUILD)/tests/asan/leaky.o
	$(LINK) -lcriterion
$(BUILD)/hostile: $(call obj,$(READER) $(wildcard tests/hostile/*.c)) $(PAGE)
	$(LINK)
$(BUILD)/property: $(call obj,$(CORE) $(TRACE) $(GEN) $(PROPERTY)) $(PAGE) $(BATTERY)
	$(LINK) -Wl,--wrap=mmap,--wrap=munmap
$(BUILD)/mkcap: $(call obj,$(BASE) $(WIRE)) $(BUILD)/tests/bench/mkcap.o
	$(LINK)
$(BUILD)/bare: $(call obj,$(BASE) $(WIRE)) $(BUILD)/tests/bench/bare.o
	$(LINK)
$(BUILD)/bare_sqlite: $(BUILD)/tests/bench/bare_sqlite.o
	$(LINK)
$(BUILD)/near: $(BUILD)/tests/bench/near.o
	$(LINK)
$(BUILD)/ep_bench: $(call obj,$(CORE) $(GEN)) $(BATTERY) $(BUILD)/tests/bench/ep_bench.o
	$(LINK)
$(BUILD)/frame_bench: $(call obj,$(CORE) $(GEN)) $(BATTERY) $(BUILD)/tests/bench/frame_bench.o
	$(LINK)
$(BUILD)/echo_bench: $(BUILD)/tests/bench/echo_bench.o
	$(LINK)
$(BUILD)/experiments: $(call obj,$(BASE) $(CC_ROOM) $(wildcard tests/experiments/*.c))
	$(LINK)
$(BUILD)/fuzz_%: $(call obj,$(READER) $(GEN)) $(PAGE) $(BATTERY) $(BUILD)/tests/fuzz/fuzz_%.o
	$(LINK) -fsanitize=fuzzer

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)$(if $(DOTS), && printf .)
	$(CC) $(ALL_CFLAGS) $(if $(filter $(HOT),$<),$(LTO:%=% -ffat-lto-objects)) -c -o $@ $<

$(BUILD)/page.html: src/report/page.sh src/report/body.html src/report/report.css src/report/dygraphs.txt $(wildcard src/report/*.js src/report/package*.json $(DYGRAPHS)/dygraph.min.*)
	@mkdir -p $(@D)
	src/report/page.sh report $(DYGRAPHS) $(BUILD)/npm/report >$@.part && mv $@.part $@
$(BUILD)/cards.html: src/report/page.sh src/report/cards.html src/report/report.css src/report/tables.js src/report/cards.js
	@mkdir -p $(@D)
	src/report/page.sh cards >$@.part && mv $@.part $@
$(BUILD)/tutorial.html: src/report/page.sh src/report/report.css man/rdma-on-the-wire.7
	@mkdir -p $(@D)
	src/report/page.sh tutorial man/rdma-on-the-wire.7 >$@.part && mv $@.part $@
$(PAGE): src/report/page_text.S $(BUILD)/page.html $(BUILD)/cards.html $(BUILD)/tutorial.html
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -DPAGE='"$(BUILD)/page.html"' -DCARDS='"$(BUILD)/cards.html"' -DTUTORIAL='"$(BUILD)/tutorial.html"' -c -o $@ $<

$(BATTERY): gen/conform/battery/battery_text.S $(wildcard gen/conform/tests/*.rdma gen/conform/*/*.tsv)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -c -o $@ $<

demo: ## install the packages to build with, build, decode a real capture
	@tests/deps build
	@echo "Building rdmatrace and rdmagen in $(BUILD), which takes some minutes; each dot is a file:"
	@$(MAKE) --no-print-directory -s DOTS=1 all
	@echo
	@tests/demo $(BUILD)/rdmatrace

test: ## install the packages to test with, then `make check`, and what runs behind it: `make interop`
	@tests/deps test
	@TEST_PARTS="main behind" $(MAKE) --no-print-directory check

check: all $(TEST_PROGRAMS) ## run the tests, in five minutes on two cores (everything they need must be installed; tests/budget)
	@BUILD=$(BUILD) tests/run

interop: all ## test against Linux soft-RoCE in virtual machines (without root; packages are fetched once)
	@BUILD=$(BUILD) UNIT= tests/run tests/interop/interop.test

interop-image: ## fetch the packages of the virtual machines and build their image
	@tests/interop/image.py
	@tests/interop/newer.py || [ $$? = 77 ]

cluster: all ## scan, merge and rdmatrace-mpi under a real Slurm of two nodes on this machine (root; slurmctld, slurmd, slurm-client, munge): half a minute
	@BUILD=$(BUILD) tests/cluster || [ $$? = 77 ]

machines: all ## MACHINES_MB megabytes (4000) of captures of 50 simulated hosts, analysed by one process, and shared out by files and by MPI (MACHINES_ONLY: one of them), some of them killed at moments of SEED: equal to the byte
	@BUILD=$(BUILD) tests/bench/machines $(or $(MACHINES_MB),4000) $(or $(SEED),1) $(MACHINES_ONLY)

experiments: all $(BUILD)/experiments ## congestion control, networks and workloads against published values, as one table: build/experiments.tsv
	@BUILD=$(BUILD) tests/experiments/run -o $(BUILD)/experiments.tsv

soak: all $(TEST_PROGRAMS) ## run the tests in full, play SOAK_PACKETS (100 million), kill parts of runs and ranks of MPI (`make machines`), judge SOAK_CONVERSATIONS (a million), move 1 GiB each way with a guest, and play the whole conformance battery against it
	@TEST_FULL=1 BUILD=$(BUILD) tests/run
	@BUILD=$(BUILD) tests/soak $(SOAK_PACKETS)
	@BUILD=$(BUILD) tests/bench/machines $(or $(MACHINES_MB),4000)
	@$(BUILD)/property --count $(SOAK_CONVERSATIONS)
	@BUILD=$(BUILD) BULK_MIB=1024 tests/interop/run.py 'bulk_.*' || [ $$? -eq 77 ]
	@BUILD=$(BUILD) CONFORMANCE_FULL=1 INTEROP_CASE_SECONDS=1500 tests/interop/run.py 'conformance_quick.*' 'bare_.*' || [ $$? -eq 77 ]

reproducible: ## build rdmagen with gcc and clang, optimised or not, and compare what they write; ten minutes on two cores
	@tests/reproducible

# The tests start thousands of processes: what UBSan would print of each place, and the relocations of a PIE, would be half of the start of
# each. UBSan traps instead, and ASan reports the trap with its file and line.
asan: ## run the tests under AddressSanitizer, LeakSanitizer and UBSan
	@rm -rf build/asan/log && mkdir -p build/asan/log
	@ASAN_LOG=$(CURDIR)/build/asan/log/report \
	 ASAN_OPTIONS=detect_leaks=1:handle_sigill=1:log_path=$(CURDIR)/build/asan/log/report \
	 $(MAKE) --no-print-directory BUILD=build/asan SANFLAGS="$(SANITIZE) -fsanitize-undefined-trap-on-error" LDFLAGS=-no-pie CFLAGS="-O1 -g" check

keys: ## press 100,000 random keys on every capture in the terminal UI, under ASan and UBSan
	@$(MAKE) --no-print-directory BUILD=build/asan SANFLAGS="$(SANITIZE) -fsanitize-undefined-trap-on-error" LDFLAGS=-no-pie CFLAGS="-O1 -g" build/asan/rdmatrace
	@BUILD=build/asan OUT=build/asan/keys SANITIZE=1 TEST_FULL=1 tests/tui.test --keys

mutants: ## change one operator or constant at a time, MUTANTS of them (200) drawn by SEED (1), and see whether a test fails (CONTRIBUTING.md)
	@BUILD=$(BUILD) tests/mutate $(or $(MUTANTS),200) $(or $(SEED),1)

fuzz: ## fuzz each target for FUZZ_SECONDS (60) with libFuzzer; needs clang
	@$(MAKE) --no-print-directory CC=clang BUILD=build/fuzz CFLAGS="-O1 -g" SANFLAGS="$(SANITIZE) -fsanitize=fuzzer-no-link" \
	 $(FUZZ:tests/fuzz/%.c=build/fuzz/%)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run $(FUZZ:tests/fuzz/%.c=build/fuzz/%)

bench: all $(BUILD)/mkcap $(BUILD)/bare $(BUILD)/bare_sqlite $(BUILD)/near $(BUILD)/ep_bench $(BUILD)/echo_bench $(BUILD)/frame_bench ## compare our speed with that of tshark, tcpdump and trafgen; the endpoints' own
	@$(BUILD)/ep_bench
	@BUILD=$(BUILD) tests/bench/fabric
	@BUILD=$(BUILD) tests/bench/wire
	@BUILD=$(BUILD) tests/bench/live
	@BUILD=$(BUILD) tests/bench/run

install: all ## install into DESTDIR and PREFIX (/usr/local)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install -m 755 $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin
	for f in $(MAN); do install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man$${f##*.} $$f || exit 1; done
	for f in $(COMPLETIONS); do \
	 install -m 644 $$f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$(basename $$f .bash) || exit 1; done
	install -D -m 644 -t $(DESTDIR)$(ZSH_COMPLETIONS) src/packaging/_rdmatrace
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/rdmatrace $(SCHEMAS) $(filter %.lua,$(WIRESHARK))
	install -m 755 $(filter-out %.lua,$(WIRESHARK)) $(DESTDIR)$(PREFIX)/share/rdmatrace

uninstall: ## remove what `make install` installed
	rm -f $(PROGRAMS:$(BUILD)/%=$(DESTDIR)$(PREFIX)/bin/%)
	for f in $(MAN); do rm -f $(DESTDIR)$(PREFIX)/share/man/man$${f##*.}/$${f#man/}; done
	for f in $(COMPLETIONS); do rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$(basename $$f .bash); done
	rm -f $(DESTDIR)$(ZSH_COMPLETIONS)/_rdmatrace
	rm -f $(SCHEMAS:share/%=$(DESTDIR)$(PREFIX)/share/rdmatrace/%) $(WIRESHARK:src/wireshark/%=$(DESTDIR)$(PREFIX)/share/rdmatrace/%)

dist: ## pack the committed sources: build/packages/rdmatrace-VERSION.tar.gz
	@src/packaging/build dist $(BUILD)/packages

deb: ## build the Debian package, source and binary, in build/packages, and check it with lintian
	@tests/deps deb
	@src/packaging/build deb $(BUILD)/packages
	@lintian --fail-on error $(BUILD)/packages/*.changes

rpm: ## build the RPM package, source and binary, in build/packages
	@tests/deps rpm
	@src/packaging/build rpm $(BUILD)/packages

format: ## lay out all C sources as .clang-format says
	clang-format -i $(shell find src dissect gen include tests -name '*.[ch]')

clean: ## remove what was built
	rm -rf $(BUILD)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

.PHONY: all demo test check cluster machines experiments soak reproducible interop interop-image asan keys mutants fuzz bench install uninstall dist deb rpm format clean help
.SECONDARY:
-include $(patsubst %.c,$(BUILD)/%.d,$(CORE) $(TRACE) $(GEN) $(CLI) $(GENCLI) $(UNIT) $(FUZZ) $(wildcard tests/*/*.c))
