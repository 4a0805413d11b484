"""What the lesson on pretrained weights needs: wrong imports, what they do, graders."""
