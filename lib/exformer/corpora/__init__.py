"""Text: small languages with known answers."""
