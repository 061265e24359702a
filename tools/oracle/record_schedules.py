"""Records the learning rates of transformers' schedules, step by step.

    python tools/oracle/record_schedules.py > tests/oracle/schedules.txt

A run is a line `run SCHEDULE STEPS RATIO WARMUP RATE`: the steps of the run, the warm-up as a ratio
(or - where it is stated in steps), the steps that this means, and the highest rate. After it come
STEPS lines: the rates that the optimizer has at each update, as the shortest decimals that give the
same doubles.
"""
import torch
from transformers import TrainingArguments, __version__, get_scheduler

assert __version__ == "4.57.6", "the recordings are those of transformers 4.57.6"

# The third run has the shape of LLaVA-1.5's second stage: cosine to 0 with a warm-up ratio of 0.03.
RUNS = [("cosine", 40, None, 7, 1.0), ("linear", 40, None, 7, 1.0), ("cosine", 173, 0.03, None, 2e-5),
        ("cosine", 29, 0.03, None, 1e-3), ("linear", 53, 0.1, None, 3e-4),
        ("constant_with_warmup", 20, None, 6, 5e-3), ("constant_with_warmup", 9, None, 0, 5e-3),
        ("cosine", 12, None, 0, 1.0), ("linear", 10, 1.0, None, 0.7)]

for kind, steps, ratio, warmup, rate in RUNS:
    stated = dict(warmup_steps=warmup) if ratio is None else dict(warmup_ratio=ratio)
    arguments = TrainingArguments(output_dir="unused", use_cpu=True, report_to=[], **stated)
    warmup = arguments.get_warmup_steps(steps)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=rate)
    schedule = get_scheduler(kind, optimizer, num_warmup_steps=warmup, num_training_steps=steps)
    print("run", kind.split("_")[0], steps, "-" if ratio is None else repr(ratio), warmup,
          repr(rate))
    for _ in range(steps):
        print(repr(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        schedule.step()
