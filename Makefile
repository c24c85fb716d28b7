# The usual words. Meson and Ninja do the work; see ARCHITECTURE.md.
#
#	make                    optimised, hardened build in build/
#	make demo               build, then a tour of what works
#	make test               all tests of that build
#	make test SANITIZE=address,undefined      the same with sanitizers (or: thread)
#	make test-all           gcc, clang, both sanitizer builds and a short fuzz run, as CI does
#	make bench  fuzz  install  deps  clean

SANITIZE ?= none
comma := ,
BUILD ?= build$(if $(filter none,$(SANITIZE)),,-$(subst $(comma),-,$(SANITIZE)))
FUZZ_SECONDS ?= 600
PREFIX ?= /usr/local

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	tools/deps
	meson setup $(BUILD) --prefix=$(PREFIX) -Db_sanitize=$(SANITIZE) -Db_lundef=$(if $(filter none,$(SANITIZE)),true,false)

demo: all
	examples/tour $(BUILD)/c8s

test: $(BUILD)/build.ninja
	tests/run $(BUILD)

test-all:
	tools/deps
	tests/run --all

bench: $(BUILD)/build.ninja
	ninja -C $(BUILD) && meson test -C $(BUILD) --benchmark --verbose

fuzz:
	tools/deps
	tests/run --fuzz $(FUZZ_SECONDS)

install: all
	meson install -C $(BUILD)

deps:
	tools/deps

clean:
	rm -rf build build-*

.PHONY: all demo test test-all bench fuzz install deps clean
