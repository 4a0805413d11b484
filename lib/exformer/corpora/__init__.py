"""Text: small languages with known answers, and real corpora."""
