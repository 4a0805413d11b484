"""The command: exformer train | translate | generate | tokenize | bench | import | export | doctor."""
