#!/usr/bin/env bash
# Collects the needs of a build for a bare GPU machine, so that bench/gpu_check.sh builds the checkout
# there without a package manager. Run it on a Debian machine after `make packages`.
#   bench/gpu_deps.sh OUT.tar.gz [--programs BUILD_DIR]
#
# The archive holds usr/ (headers, libraries, CMake's and pkg-config's files of the packages of
# tools/install_packages.sh but libtorch). With --programs it also holds programs/ from a build with
# the same PyTorch version as the target machine's, for a machine without compilers. The
# target needs a C library as new as this one's, and the same processor architecture.
set -euo pipefail

usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; }
case "${1:-}" in
  -h | --help) usage; exit 0 ;;
  "") usage >&2; exit 2 ;;
esac
out=$(realpath -m "$1")
programs=
if [ "${2:-}" = --programs ]; then programs=$(cd "$3" && pwd); fi
triplet=$(gcc -print-multiarch)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The development packages of the list that `make packages` installs, and the packages with the targets of
# their unversioned .so links. No Google Benchmark: no program that runs there needs it.
listed=$(sed -n '/^packages=(/,/^)/p' "$(dirname "$0")/../tools/install_packages.sh" |
  sed '1d;$d;s/#.*//' | tr -s ' ' '\n' | grep -E '(-dev|^catch2)$' |
  grep -vE '^lib(torch|benchmark)-dev$')
mapfile -t packages <<< "$listed"
packages+=(libucx0 pkgconf-bin)
for package in "${packages[@]}"; do
  dpkg-query -W "$package" > /dev/null 2>&1 ||
    { echo "gpu_deps.sh: $package is not installed: run tools/install_packages.sh" >&2; exit 1; }
done

mkdir -p "$work/usr/lib/$triplet"
# bin: only pkgconf, which finds UCX.
dpkg -L "${packages[@]}" |
  grep -E "^/usr/(include|lib|share/cmake|share/pkgconfig)/|^/usr/bin/pkgconf$" |
  grep -v '\.a$' | sort -u | while read -r file; do
  # Leaves out static archives, since everything links shared libraries; Catch2 has only an archive.
  if [ -f "$file" ]; then echo "${file#/}"; fi
done > "$work/list"
[ -f /usr/lib/libCatch2WithMain.a ] && echo usr/lib/libCatch2WithMain.a >> "$work/list"
tar -C / -chf - -T "$work/list" | tar -C "$work" -xf -

# The dependencies of these libraries, except the C and C++ libraries, which the machine has.
libraries() { find "$work/usr/lib" "$@" -name '*.so*' -type f; }
{ libraries; echo "$work/usr/bin/pkgconf"; } | xargs ldd 2> /dev/null |
  awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -vE '/(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s|gomp))\.so' |
  while read -r file; do cp -L "$file" "$work/usr/lib/$triplet/"; done
# Programs look for a library by its SONAME.
libraries | while read -r file; do
  name=$(objdump -p "$file" 2> /dev/null | awk '$1 == "SONAME" {print $2}')
  if [ -n "$name" ] && [ ! -e "$(dirname "$file")/$name" ]; then
    ln -s "$(basename "$file")" "$(dirname "$file")/$name"
  fi
done
# Files of pkg-config contain paths of this machine; makes them relative to the archive.
find "$work" -name '*.pc' -exec sed -i -E \
  's#^(prefix *= *)/usr$#\1${pcfiledir}/../../..#; s#=(/usr)?/lib/#=${prefix}/lib/#' {} +
find "$work"/usr/share/pkgconfig -name '*.pc' -exec sed -i 's#/../../..#/../..#' {} +

if [ -n "$programs" ]; then
  mkdir -p "$work/programs"
  for name in troupe tests/test_gpu tests/test_torch tests/test_parity bench/bench_gpu_kernels \
    bench/bench_model_flops; do
    [ -x "$programs/$name" ] || { echo "gpu_deps.sh: $programs/$name: not built" >&2; exit 1; }
    strip -o "$work/programs/$(basename "$name")" "$programs/$name"
  done
fi
rm "$work/list"
mkdir -p "$(dirname "$out")"
tar -C "$work" -czf "$out" .
echo "$out: $(du -m "$out" | cut -f1) MiB, unpacked $(du -sm "$work" | cut -f1) MiB"
