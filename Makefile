# The usual words. Meson and Ninja do the work; see ARCHITECTURE.md.
#
#	make                    optimised, hardened build in build/
#	make demo               build, then a tour of what works
#	make test               all tests of that build
#	make test SANITIZE=address,undefined      the same with sanitizers (or: thread)
#	make test ALL=1         gcc, clang with sanitizers, the thread sanitizer and a minute of fuzzing, as CI does
#	make bench              the figures of README.md, measured here (as root, about six minutes)
#	make bench ALL=1        every benchmark of its own
#	make fuzz  install  deps  clean

SANITIZE ?= none
comma := ,
BUILD ?= build$(if $(filter none,$(SANITIZE)),,-$(subst $(comma),-,$(SANITIZE)))
FUZZ_SECONDS ?= 600
PREFIX ?= /usr/local

OPTIONS := $(if $(filter none,$(SANITIZE)),,-Db_sanitize=$(SANITIZE) -Db_lundef=false -Doptimization=1)

all: $(BUILD)/ready
	ninja -C $(BUILD)

# Once per build directory, and again when tools/deps asks for another package. Changes of meson.build are Ninja's affair.
$(BUILD)/ready: tools/deps
	tools/deps
	test -f $(BUILD)/build.ninja || meson setup $(BUILD) $(OPTIONS)
	touch $@

demo: $(BUILD)/ready
	ninja -C $(BUILD) c8s c8s-pod kubectl
	examples/tour $(BUILD)/c8s

test: $(BUILD)/ready
	tests/run $(if $(ALL),--all,$(BUILD))

bench: all
	$(if $(ALL),meson test -C $(BUILD) --benchmark --verbose,C8S=$(abspath $(BUILD))/c8s bench/figures.py)

fuzz:
	tools/deps
	tests/run --fuzz $(FUZZ_SECONDS)

install: all
	meson configure $(BUILD) -Dprefix=$(PREFIX)
	meson install -C $(BUILD) --strip

deps:
	tools/deps

clean:
	rm -rf build build-*

.PHONY: all demo test bench fuzz install deps clean
