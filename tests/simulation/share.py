#!/usr/bin/env python3
"""Prints which share of the product's lines runs in simulated worlds.

    cmake -S . -B build/coverage -G Ninja -DCMAKE_CXX_FLAGS="--coverage -fprofile-abs-path" \\
        -DCMAKE_EXE_LINKER_FLAGS=-Wl,-u,__gcov_dump
    ninja -C build/coverage test_simulation
    TROUPE_SEEDS=480 build/coverage/tests/test_simulation "[.seeds]"
    tests/simulation/share.py build/coverage
"""
import collections
import json
import pathlib
import re
import subprocess
import sys

# The first pattern that a path matches decides.
PARTS = [
    ("TLS", r"cluster/tls"),
    ("join", r"cluster/(join|acceptor|dialer|handshake|hello|latecomers|mesh|places|sealed|spare)"),
    ("watch", r"cluster/(watch|pulse|silence|heartbeat|tcp_progress|own_connections)"),
    ("generations", r"app/(generations|held_state|run_among_processes)|plan/reduced_job"),
    ("Director", r"actors/(director|checkpoint_course|mirror_course|job_course)"),
    ("Nodes", r"actors/(node_|files_elsewhere|connections|job_builder|spawn_actors)"),
    ("devices, stages, leaders, updates",
     r"actors/(device|stage|update|lock_step|source|destination|boundary|feed|debts)"),
    ("checkpoint writer", r"checkpoint/(sharded|safetensors|manifest|run_checkpoints|saved_state)"),
    ("tensor store and TCP plane", r"transport/(tensor_store|store|plane_engine|tcp/|patient|pump)"),
    ("UCX", r"transport/ucx"),
]


def counts(build: pathlib.Path) -> dict[str, dict[int, int]]:
    """How often each line of each file has run, by path in the tree."""
    root = pathlib.Path(__file__).resolve().parents[2]
    lines: dict[str, dict[int, int]] = collections.defaultdict(dict)
    for data in build.rglob("*.gcno"):
        if "tests" in data.relative_to(build).parts:
            continue
        text = subprocess.run(["gcov", "-t", "-j", str(data.resolve())], capture_output=True, check=False)
        for line in text.stdout.splitlines():
            if not line.startswith(b"{"):
                continue
            found = json.loads(line)
            for file in found["files"]:
                path = (pathlib.Path(found["current_working_directory"]) / file["file"]).resolve()
                if not path.is_relative_to(root) or path.is_relative_to(build.resolve()):
                    continue
                of_file = lines[str(path.relative_to(root))]
                for entry in file["lines"]:
                    number = entry["line_number"]
                    of_file[number] = max(of_file.get(number, 0), entry["count"])
    return lines


def main() -> None:
    ran: collections.Counter[str] = collections.Counter()
    total: collections.Counter[str] = collections.Counter()
    for path, of_file in counts(pathlib.Path(sys.argv[1])).items():
        part = next((name for name, pattern in PARTS if re.match(pattern, path)), None)
        if part is None:
            continue
        total[part] += len(of_file)
        ran[part] += sum(count > 0 for count in of_file.values())
    print("| part | lines that run in simulated worlds | of |\n|---|---|---|")
    for name, _ in PARTS:
        if total[name] > 0:
            print(f"| {name} | {ran[name]} ({100 * ran[name] / total[name]:.0f}%) | {total[name]} |")


main()
