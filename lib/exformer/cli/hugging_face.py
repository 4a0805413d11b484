"""``exformer import`` and ``exformer export``: models of Hugging Face's transformers, and GGUF files."""

import argparse

from exformer.hub.gguf import from_gguf
from exformer.hub.hugging_face.folder import from_hugging_face, to_hugging_face
from exformer.hub.pretrained import load_model, save_model
from exformer.tokenizers.hugging_face import HuggingFaceTokenizer


def import_model(args: argparse.Namespace) -> None:
    """Write a model of Hugging Face, or of a GGUF file, as one of ours, and print what it is."""
    read = from_gguf if args.folder.endswith(".gguf") else from_hugging_face
    model, tokenizer, card = read(args.folder)
    if tokenizer is None:
        raise ValueError(
            f"{args.folder} has no tokenizer.json: write one with save_pretrained of a fast tokenizer of "
            "transformers"
        )
    save_model(args.out, model, tokenizer, card=card)
    n_parameters = sum(p.numel() for p in model.parameters())
    print(f"{args.out}: {card['architecture']}, {n_parameters:,} parameters")


def export_model(args: argparse.Namespace) -> None:
    """Write a model of ours as one of Hugging Face."""
    model, tokenizer, _ = load_model(args.model)
    to_hugging_face(args.hf, model, tokenizer)
    print(f"{args.hf}: config.json, model.safetensors")
    if not isinstance(tokenizer, HuggingFaceTokenizer):
        print("its tokenizer is one of this library and has no tokenizer.json: encode texts with it")
