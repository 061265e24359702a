#!/usr/bin/env bash
# Checks that every folder includes only itself and the folders above it in docs/architecture.md, and
# that libtorch stays in modules/torch/, NCCL in transport/nccl/, CAF in messages/, actors/, app/ and
# cli/. Prints violations and exits with 1.
set -euo pipefail
cd "$(dirname "$0")/.."

order=(files layout kinds models configs schedule trace plan gpu transport cluster modules feed messages actors data answers checkpoint app cli)
declare -A place
for i in "${!order[@]}"; do place[${order[$i]}]=$i; done

bad=0
complain() { echo "$1"; bad=1; }

for folder in "${order[@]}"; do
  while IFS=: read -r file line text; do
    target=$(sed -E 's/.*"([a-z_]+)\/.*/\1/' <<<"$text")
    [ -n "${place[$target]:-}" ] || { complain "$file:$line: includes $target/, which is not a layer"; continue; }
    [ "${place[$target]}" -le "${place[$folder]}" ] ||
      complain "$file:$line: $folder/ includes $target/, which is below it"
  done < <(grep -rnE '^#include "[a-z_]+/' "$folder" --include='*.hpp' --include='*.cpp' || true)
done

# configs/ includes no later folder, and these folders do not include each other. Exception: analyses
# of traces call the stage rule.
for pair in schedule:configs trace:configs transport:configs \
            transport:schedule transport:trace transport:plan checkpoint:data; do
  from=${pair%%:*}
  to=${pair##*:}
  while IFS=: read -r file line _; do
    complain "$file:$line: $from/ includes $to/"
  done < <(grep -rnE "^#include \"$to/" "$from" --include='*.hpp' --include='*.cpp' || true)
done

while IFS=: read -r file line _; do
  complain "$file:$line: libtorch outside modules/torch/"
done < <(grep -rnE '^#include *[<"](torch/|ATen/|c10/)' "${order[@]}" --include='*.hpp' --include='*.cpp' |
         grep -v '^modules/torch/' || true)
while IFS=: read -r file line _; do
  complain "$file:$line: NCCL outside transport/nccl/"
done < <(grep -rnE '^#include *[<"]nccl' "${order[@]}" --include='*.hpp' --include='*.cpp' --include='*.cu' |
         grep -v '^transport/nccl/' || true)
while IFS=: read -r file line _; do
  complain "$file:$line: CAF in a layer that must not know it"
done < <(grep -rnE '^#include *[<"]caf/' layout kinds models configs schedule trace plan transport cluster modules feed data answers checkpoint \
         --include='*.hpp' --include='*.cpp' || true)
exit $bad
