"""Greedy tokens of one rank alone, as the engine itself gives them; runs in the environment of the engine."""

from __future__ import annotations

import json
import sys

from vllm import LLM, SamplingParams

if __name__ == "__main__":
    folder, prompt, count = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
    engine = LLM(folder, dtype="float32", enforce_eager=True, max_model_len=256, max_num_seqs=2)
    asked = SamplingParams(temperature=0, max_tokens=count, ignore_eos=True)
    (answer,) = engine.generate([{"prompt_token_ids": prompt}], asked)
    print("tokens", json.dumps(list(answer.outputs[0].token_ids)))
