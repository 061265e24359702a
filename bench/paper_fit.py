#!/usr/bin/env python3
"""Fits the constants of bench/paper_tables.sh on the step times of H (needs numpy and scipy).

    bench/paper_fit.py BUILD_DIR FOLDER [--leave-one-out]

Prints them as lines "NAME VALUE", for --constants. With --leave-one-out it fits once without each row and
prints by mode the median and the worst error of the row that was left out. Settings are those of the
folder. The sum of squares is robust: errors well above 2 % count by their size, not by its square. Each
constant has a prior, its usual value and the deviation of its logarithm, which keeps physical those that
few rows determine.
"""
import csv
import math
import statistics
import subprocess
import sys
import tempfile

import numpy
from scipy.optimize import least_squares

PRIORS = {
    "linear_efficiency": (0.8, 0.15),
    "encoder_efficiency": (0.5, 0.3),
    "attention_efficiency": (0.4, 0.3),
    "tensor_exposed": (0.9, 0.1),
    "context_exposed": (0.5, 0.5),
    "gradients_exposed": (0.4, 0.5),
    "slow": (1.14, 0.05),
}
SCALE = 2.0  # percent


def predict(build, folder, constants):
    """The rows of tables A2 to A4 as (id, mode, error in percent)."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("".join(f"{name} {value!r}\n" for name, value in constants.items()))
        file.flush()
        out = subprocess.run(["bench/paper_tables.sh", build, folder, "--constants", file.name],
                             check=True, capture_output=True, text=True).stdout
    rows = [row for row in csv.DictReader(out.splitlines())
            if row["measured_ms"] and not row["id"].startswith("A5")]
    return [(row["id"], row["mode"],
             100 * math.log(float(row["predicted_ms"]) / float(row["measured_ms"])))
            for row in rows]


def fit(build, folder, without=None):
    def constants_of(logs):
        return dict(zip(PRIORS, (float(value) for value in numpy.exp(logs))))

    def residuals(logs):
        errors = numpy.array([error for row, mode, error in predict(build, folder, constants_of(logs))
                              if mode == "H" and row != without]) / SCALE
        robust = numpy.sign(errors) * numpy.sqrt(2 * (numpy.sqrt(1 + errors**2) - 1))
        prior = [(log - math.log(usual)) / deviation
                 for log, (usual, deviation) in zip(logs, PRIORS.values())]
        return numpy.concatenate([robust, prior])

    start = numpy.log([usual for usual, _ in PRIORS.values()])
    # Printed times are rounded, and which stage is slowest changes: small steps end too early.
    return constants_of(least_squares(residuals, start, diff_step=1e-2).x)


def leave_one_out(build, folder):
    errors = {}
    for left in sorted({row for row, _, _ in predict(build, folder, {})}):
        for row, mode, error in predict(build, folder, fit(build, folder, left)):
            if row == left:
                errors.setdefault(mode, []).append(abs(error))
    for mode, sizes in errors.items():
        print(f"{mode}: median {statistics.median(sizes):.2f} %, worst {max(sizes):.1f} %")


def main():
    build, folder = sys.argv[1:3]
    if "--leave-one-out" in sys.argv[3:]:
        leave_one_out(build, folder)
        return
    for name, value in fit(build, folder).items():
        print(name, round(value, 3))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main()
