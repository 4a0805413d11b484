"""Text <-> token ids: characters, words, byte-pair encoding."""
