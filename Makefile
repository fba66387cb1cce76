# The front door. Meson and ninja do the work below it; `make help` lists what there is.

BUILD  ?= build
PREFIX ?= /usr/local
DESTDIR ?=
LISTEN ?= 127.0.0.1:8000

MESON ?= meson
# the version that the first line of .clang-format names
FORMAT ?= clang-format-14

.DEFAULT_GOAL := all
.PHONY: all deps run test check dist install uninstall clean format bench bench-check bench-peers pictures help

all: $(BUILD)/build.ninja ## build build/glovebox and what it needs
	@ninja -C $(BUILD)

# The release flags are for people who run it; developers may configure build/ as they like, it is kept.
$(BUILD)/build.ninja:
	@command -v $(MESON) >/dev/null || { echo "meson is missing: run 'make deps' (installs it and the libraries)" >&2; exit 1; }
	@$(MESON) setup $(BUILD) --buildtype=debugoptimized --prefix=$(PREFIX)

deps: ## install the packages that building and running need (apt; sudo only when not root)
	@scripts/install-deps --run

run: deps ## install what is missing, build, and start the server on LISTEN (127.0.0.1:8000)
	@$(MAKE) --no-print-directory all
	@exec $(BUILD)/glovebox serve --listen $(LISTEN)

test: ## install what is missing, build, and run every test; ends with `N passed, N failed`
	@scripts/install-deps --test
	@$(MAKE) --no-print-directory all
	@scripts/node-for-tests $(BUILD) mcp e2b console >/dev/null || echo "The tests that run programs of JavaScript cannot run."
	@BUILD=$(BUILD) scripts/run-tests

check: ## the quick part of the tests, for daily work (under four minutes)
	@scripts/install-deps --test
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) scripts/run-tests --quick

install: all ## install under PREFIX (/usr/local), below DESTDIR when packaging
	@$(MESON) configure $(BUILD) --prefix=$(PREFIX)
	@DESTDIR=$(DESTDIR) $(MESON) install -C $(BUILD)
	@# after `sudo make install` the build still belongs to the user
	@[ -z "$$SUDO_UID" ] || chown -R "$$SUDO_UID:$$SUDO_GID" $(BUILD)

uninstall: ## remove what `make install` put there
	@ninja -C $(BUILD) uninstall

dist: ## build the packages of a release in dist/: .deb, tarball, wheel, SBOM, checksums
	@scripts/install-deps --run
	@scripts/make-dist

clean: ## remove everything that was built
	@rm -rf build build-* dist

format: ## lay the C code out by .clang-format
	@find src tests bench -name '*.[ch]' -print0 | xargs -0 -r $(FORMAT) -i

bench: bench-peers ## measure speed and memory beside what people use instead (ten to thirteen minutes)
	@BUILD=$(BUILD) bench/run

bench-check: bench-peers ## measure, and fail when a ratio is worse than the accepted one in bench/ratios.json
	@BUILD=$(BUILD) bench/run --gate

bench-peers: all
	@scripts/install-deps --bench
	@bench/install-peers

pictures: all ## make the pictures of the console and of MCP in docs/img anew (npm, chromium, ffmpeg)
	@scripts/make-pictures $(BUILD)
	@scripts/draw-mcp-conversation $(BUILD)

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
