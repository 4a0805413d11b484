"""The command: exformer train | translate | generate | tokenize | bench."""
