"""Loads adapters that `troupe export --adapters apart` wrote over the folder that the run started
from, and compares them with what `troupe export` wrote of the same run.

    python tools/oracle/check_adapters.py BASE ADAPTERS MERGED

Prints the largest difference of logits, relative to the largest logit, and the names that PEFT
misses. Exit code: 0 the two models are the same to 1e-4, 1 they are not.
"""
import json
import sys
from pathlib import Path

import peft
import torch
import transformers

base, adapters, merged = map(Path, sys.argv[1:4])
kind = getattr(transformers, json.loads((base / "config.json").read_text())["architectures"][0])
tokens = torch.arange(1, 25).view(1, 24)
with torch.no_grad():
    wanted = kind.from_pretrained(merged)(input_ids=tokens).logits
    model = kind.from_pretrained(base)
    plain = model(input_ids=tokens).logits
    model = peft.PeftModel.from_pretrained(model, adapters)
    got = model(input_ids=tokens).logits
result = peft.utils.set_peft_model_state_dict(
    model, peft.utils.load_peft_weights(str(adapters)))
unexpected = list(result.unexpected_keys)
difference = ((got - wanted).abs().max() / wanted.abs().max()).item()
effect = ((plain - wanted).abs().max() / wanted.abs().max()).item()
print(f"{kind.__name__}, PEFT {peft.__version__}: {difference:.1e} from the merged folder, which is "
      f"{effect:.1e} from the base; unexpected names: {unexpected}")
sys.exit(difference > 1e-4 or effect < 1e-3 or bool(unexpected))
