"""Compares the event files of a run with its metrics.jsonl, read by TensorBoard's own loader.

    python tools/oracle/check_tensorboard.py RUN

Exits with 1 if a number differs by more than single precision, or a step is missing or there twice.
"""
import json
import sys
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

run = Path(sys.argv[1])
events = EventAccumulator(str(run / "tensorboard"), size_guidance=dict(scalars=0))
events.Reload()
lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
STEP = {"loss": "train/loss", "gradient_norm": "gradient_norm/all",
        "tokens_per_second": "speed/tokens_per_second",
        "samples_per_second": "speed/samples_per_second", "bubble": "speed/bubble",
        "memory_bytes": "memory/resident_bytes"}
HELD_OUT = {"loss": "held_out/loss", "accuracy": "held_out/accuracy",
            "content_accuracy": "held_out/content_accuracy"}

wrong = 0
for kind, tags in (("step", STEP), ("held_out", HELD_OUT)):
    expected = [line for line in lines if line["kind"] == kind]
    for key, tag in tags.items():
        if not expected:
            continue
        scalars = events.Scalars(tag)
        steps = [scalar.step for scalar in scalars]
        if steps != [line["step"] for line in expected]:
            print(f"{tag}: expected steps {[line['step'] for line in expected]}, got {steps}")
            wrong += 1
            continue
        for line, scalar in zip(expected, scalars):
            if abs(scalar.value - line[key]) > 1e-6 * abs(line[key]):
                print(f"{tag}, step {scalar.step}: expected {line[key]}, got {scalar.value}")
                wrong += 1
tags = events.Tags()["scalars"]
parts = [tag for tag in tags if tag.startswith("gradient_norm/") and tag != "gradient_norm/all"]
for index, whole in enumerate(events.Scalars("gradient_norm/all")):
    squares = sum(events.Scalars(tag)[index].value ** 2 for tag in parts)
    if abs(squares ** 0.5 - whole.value) > 1e-5 * whole.value:
        print(f"gradient norms of the parts, step {whole.step}: {squares ** 0.5} of {whole.value}")
        wrong += 1
print(f"{len(tags)} tags, {sum(len(events.Scalars(tag)) for tag in tags)} scalars: {wrong} wrong")
print("\n".join(f"  {tag}: {events.Scalars(tag)[-1].value:g}" for tag in tags))
sys.exit(wrong > 0)
