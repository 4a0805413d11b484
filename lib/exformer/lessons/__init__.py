"""What the lessons use: claims, figures, exercises."""
