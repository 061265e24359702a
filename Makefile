# The two commands of the README (run, test) and the larger test suites.
BUILD ?= build/cpu
CONFIG ?= configs/shapes.toml
CMAKE_FLAGS ?=

.PHONY: run test quick build configure packages asan tsan parity soak oracle bench clean

run: configure
	cmake --build $(BUILD) --target troupe
	$(BUILD)/troupe train $(CONFIG)

test: build
	cd $(BUILD) && ctest --output-on-failure

# Without the tests that start jobs: while you edit.
quick: configure
	cmake --build $(BUILD) --target quick_tests
	cd $(BUILD) && ctest --output-on-failure -L quick

build: configure
	cmake --build $(BUILD)

configure: packages
	cmake -S . -B $(BUILD) -G Ninja $(CMAKE_FLAGS)

packages:
	tools/install_packages.sh

# AddressSanitizer and UBSan over the whole suite; ThreadSanitizer over everything without libtorch.
asan:
	$(MAKE) test BUILD=build/asan CMAKE_FLAGS="-DTROUPE_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=RelWithDebInfo"
tsan:
	$(MAKE) test BUILD=build/tsan CMAKE_FLAGS="-DTROUPE_SANITIZE=thread -DTROUPE_WITH_TORCH=OFF -DCMAKE_BUILD_TYPE=RelWithDebInfo"

# The long versions: every layout of the parity matrix, 10,000 delivery orders.
parity: build
	$(BUILD)/tests/test_parity "[slow]"
soak: build
	$(BUILD)/tests/test_actors "[slow]"

# Compares with transformers and PEFT, live: installs them, about 6 GB, in BUILD/oracle.
oracle: build
	tools/oracle/run.sh $(BUILD)

bench: build
	bench/run.sh $(BUILD)

clean:
	rm -rf build
