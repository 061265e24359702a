#!/usr/bin/env bash
# Checks that code for traces identifies actors, stages and messages by their types
# (trace/actor_id.hpp, MessageRole) and does not parse names. Prints lines that do and exits with 1.
set -euo pipefail
cd "$(dirname "$0")/.."

kinds='(director|node |stage |leader |phase |feed of |update of |lock step |device )'
patterns=(
  "(find|starts_with|ends_with|contains|compare|substr)\([^;]*\"$kinds"
  "[=!]= *\"$kinds"
  '"(To|From)Set<'
  'find\("\.s"'
)

bad=0
for pattern in "${patterns[@]}"; do
  if grep -rnE "$pattern" trace cli/trace --include='*.hpp' --include='*.cpp'; then bad=1; fi
done
[ $bad -eq 0 ] || echo "a name is read back: decide by ActorId, StageId or MessageRole instead"
exit $bad
