"""Loads the modelling sources of transformers with float64 where they say float32.

transformers computes norms, rotary tables and softmax in float32 whatever the type of the model, so
that its float64 results are good to seven digits only. Import this before transformers.
"""
import importlib.machinery
import re

_PATTERN = re.compile(r"transformers/(models/\w+/modeling_\w+|modeling_rope_utils)\.py$")
_load = importlib.machinery.SourceFileLoader.get_code


def _get_code(self, fullname):
    path = self.get_filename(fullname)
    if not _PATTERN.search(path):
        return _load(self, fullname)
    source = self.get_data(path).decode()
    source = source.replace("torch.float32", "torch.float64").replace(".float()", ".double()")
    source = source.replace("dtype=torch.float)", "dtype=torch.float64)")
    return compile(source, path, "exec", dont_inherit=True)


importlib.machinery.SourceFileLoader.get_code = _get_code
