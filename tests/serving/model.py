"""Make a tiny Qwen3 with saved random weights and a byte-level tokenizer; runs in the environment of the engine.

The weights are large enough that the best token leads by far more than what another order of sums changes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

WORDS = 512


def main(folder: Path) -> None:
    """Write the checkpoint."""
    torch.manual_seed(7)
    config = Qwen3Config(
        vocab_size=WORDS, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=4, head_dim=32, max_position_embeddings=512, initializer_range=0.5,
        tie_word_embeddings=False, bos_token_id=0, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    Qwen3ForCausalLM(config).to(torch.float32).save_pretrained(folder, safe_serialization=True)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = ["<s>", "</s>", *letters, *(f"<{number}>" for number in range(WORDS - 2 - len(letters)))]
    tokenizer = Tokenizer(models.BPE({word: number for number, word in enumerate(words)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>").save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
