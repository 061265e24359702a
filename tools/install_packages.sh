#!/usr/bin/env bash
# Installs missing Debian packages for building and testing. Does nothing, and needs no privileges,
# if all are installed.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache mold                # the build
  libcaf-dev                                       # actors
  libucx-dev ucx-utils pkg-config                  # tensors between processes
  libssl-dev                                       # run keys and TLS
  libtorch-dev libopenblas0-pthread                # tensors; the reference BLAS is 25 times slower
  libtomlplusplus-dev libcli11-dev nlohmann-json3-dev  # configuration, command line, JSON
  libsqlite3-dev                                   # queries on traces
  libjpeg62-turbo-dev libpng-dev libwebp-dev libgif-dev  # images
  libarchive-dev zlib1g-dev                        # shards of data
  libsentencepiece-dev libpcre2-dev libutf8proc-dev  # tokenizers
  catch2 libbenchmark-dev iproute2                 # tests and benchmarks
)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

echo "installing ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "not root and no sudo: install by hand: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
