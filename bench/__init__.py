"""Time and memory of the library beside PyTorch's and Hugging Face's: `python bench/run.py`."""
