"""Folders of Hugging Face's transformers <-> our models: GPT-2, Llama, Mistral, Mixtral, BERT, Marian."""
