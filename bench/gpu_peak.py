"""The peak rate of a device in dense products of bfloat16: the reference of MFU."""

import time

# FLOP/s without sparsity, from the makers' data sheets, by words in the device's name.
DATA_SHEET = (
    (("H100", "PCIe"), 756e12),
    (("H100", "NVL"), 835e12),
    (("H100",), 989.4e12),
    (("H200",), 989.4e12),
    (("H800",), 989.4e12),
    (("A100",), 312e12),
    (("A800",), 312e12),
)


def stated_peak(name):
    """The data sheet's number for a device of this name; None if unknown."""
    for words, peak in DATA_SHEET:
        if all(word in name for word in words):
            return peak
    return None


def measured_rate(device, size=8192, dtype="bfloat16", repeats=20):
    """FLOP/s of a large square product of random numbers, the best of `repeats`."""
    import torch  # only here: the table above is for programs that do without

    dtype = getattr(torch, dtype)
    a = torch.randn(size, size, device=device, dtype=dtype)
    b = torch.randn(size, size, device=device, dtype=dtype)
    best = float("inf")
    for _ in range(repeats):
        wait(device)
        begin = time.perf_counter()
        torch.matmul(a, b)
        wait(device)
        best = min(best, time.perf_counter() - begin)
    return 2.0 * size**3 / best


def peak_of(device):
    """FLOP/s of a torch.device, and their source."""
    import torch

    if device.type == "cuda":
        stated = stated_peak(torch.cuda.get_device_name(device))
        if stated:
            return stated, "data sheet"
        return measured_rate(device), "8192 x 8192 x 8192 in this run"
    return measured_rate(device, 512, "float32", 3), "512 x 512 x 512 in this run, float32"


def wait(device):
    if device.type == "cuda":
        import torch

        torch.cuda.synchronize(device)
